"""Training a small published tokenizer on the same items, as the measure of the lattice tokenizer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.geometry.box_sample import EXTENT, RESOLUTION, unpack
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig
from helicube.train.shards import ItemSet

__all__ = ["CubeTask", "CubeTaskConfig", "small_cube"]

# Name of the command that trains it.
KIND = "tokenizer --kind cube"


def small_cube(num_latents: int = 64) -> TokenizerConfig:
    """The published tokenizer cut down to about the size of the lattice tokenizer."""
    return TokenizerConfig(
        num_encoder_latents=num_latents,
        embed_dim=16,
        width=192,
        num_heads=6,
        num_freqs=64,
        num_encoder_layers=4,
        encoder_cross_attention_levels=(0, 2),
        num_decoder_layers=6,
        num_codes=4096,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeTaskConfig:
    """What a step sees."""

    # Objects a step; surface points of each, and query points beside the surface and anywhere.
    batch: int = 12
    cloud_points: int = 1024
    band_points: int = 384
    uniform_points: int = 384
    # Items of the evaluation, and points asked of each.
    eval_items: int = 48
    eval_points: int = 8192


class CubeTask:
    """Occupancy of unseen points, given the latents without quantisation: an upper bound for the quantised tokens."""

    model: CubeTokenizer

    def __init__(
        self, model: TokenizerConfig, config: CubeTaskConfig, train: ItemSet, unseen: ItemSet, device: str = "cpu"
    ) -> None:
        torch.manual_seed(0)
        self.model = CubeTokenizer(model).to(device)
        self.config, self.train, self.unseen, self.device = config, train, unseen, device

    def describe(self) -> dict[str, Any]:
        return {"kind": KIND, "model": asdict(self.model.config), "task": asdict(self.config)}

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:  # noqa: ARG002 - Task's
        c = self.config
        chosen = rng.choice(len(self.train), min(c.batch, len(self.train)), replace=False)
        flat = [
            np.concatenate([
                rng.choice(self.train.band[i], c.band_points, replace=False),
                rng.integers(0, RESOLUTION**3, c.uniform_points, dtype=np.uint32),
            ])
            for i in chosen
        ]  # fmt: skip
        logits, inside = self._logits(self.model, self.train, chosen, flat, rng)
        error = F.binary_cross_entropy_with_logits(logits, inside)
        return error, {}

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Volume IoU at random points of the box, the same ones for every evaluation."""
        assert isinstance(model, CubeTokenizer)
        result = {}
        for name, items in (("iou_unseen", self.unseen), ("iou_seen", self.train)):
            rng = np.random.default_rng(0)
            ious = []
            for i in range(min(self.config.eval_items, len(items))):
                flat = rng.integers(0, RESOLUTION**3, self.config.eval_points, dtype=np.uint32)
                logits, inside = self._logits(model, items, np.array([i]), [flat], rng)
                predicted, truth = logits[0] > 0, inside[0] > 0.5
                ious.append(float((predicted & truth).sum() / (predicted | truth).sum().clamp(min=1)))
            result[name] = float(np.mean(ious))
        return result

    def _logits(
        self,
        model: CubeTokenizer,
        items: ItemSet,
        chosen: np.ndarray[Any, np.dtype[np.int64]],
        flat: list[np.ndarray[Any, np.dtype[np.uint32]]],
        rng: np.random.Generator,
    ) -> tuple[Tensor, Tensor]:
        """Field values and truth, (B, P) each, at flat voxel indices of each item."""
        # This tokenizer sees objects in their true proportions: box coordinates times the shape of the box.
        stretch = items.extents[chosen] / (2 * EXTENT)  # (B, 3)
        shown = rng.choice(items.points.shape[1], self.config.cloud_points, replace=False)
        points = items.points[chosen][:, shown].astype(np.float32) / 32767 * stretch[:, None]
        normals = items.normals[chosen][:, shown].astype(np.float32) / stretch[:, None]
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True).clip(1e-6)
        where = np.stack([np.stack(np.unravel_index(f, (RESOLUTION,) * 3), axis=-1) for f in flat])
        queries = ((where + 0.5) * (2 / RESOLUTION) - 1) * stretch[:, None]
        inside = np.stack([unpack(items.bits[i]).reshape(-1)[f] for i, f in zip(chosen, flat, strict=True)])
        shown_points, shown_normals, asked, truth = (
            torch.from_numpy(array).float().to(self.device) for array in (points, normals, queries, inside)
        )
        h = model.encoder(shown_points, shown_normals)
        latents = model.decoder(model.bottleneck.block.c_out(model.bottleneck.block.c_in(h)))
        return model.field(latents, asked), truth
