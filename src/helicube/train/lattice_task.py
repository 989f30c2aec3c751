"""Training the lattice tokenizer on prepared items."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.geometry.box_sample import RESOLUTION, pool_mean, unpack
from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.train.shards import ItemSet

__all__ = ["LatticeTask", "LatticeTaskConfig"]

# Name of the command that trains it.
KIND = "tokenizer"

# The 48 symmetries of the cube: a permutation of the axes, then flips. In box coordinates each gives a valid object.
PERMUTATIONS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeTaskConfig:
    """What a step sees."""

    # Objects a step, and query points of each: beside the surface, and anywhere.
    batch: int = 16
    band_points: int = 2048
    uniform_points: int = 1024
    # Steps without any quantisation; after them half of the objects are rounded, the others noisy. Too early, and the
    # channels shrink to a few levels before they mean anything: after 300 steps, 1.5 % of the codes were in use.
    free_steps: int = 2500
    # Weight of the loss beside the surface against that anywhere.
    band_weight: float = 1.0
    # Of a frozen encoder's codes, the share of levels that are moved by one, so that the decoder learns to make sense
    # of rows that no object has, as a decoder of ids writes them.
    noise: float = 0.05
    # Items of the evaluation.
    eval_items: int = 64


class LatticeTask:
    """Occupancy of unseen points, given the quantised tokens.

    Args:
        frozen: a trained tokenizer to go on from, whose encoder stays as it is: so do all ids. Of the decoder, it may
            lack the joints.
    """

    model: LatticeTokenizer

    def __init__(
        self,
        model_config: LatticeConfig,
        config: LatticeTaskConfig,
        train: ItemSet,
        unseen: ItemSet,
        device: str = "cpu",
        *,
        frozen: LatticeTokenizer | None = None,
    ) -> None:
        torch.manual_seed(0)
        self.model = LatticeTokenizer(model_config).to(device)
        self.is_frozen = frozen is not None
        if frozen is not None:
            missing, unexpected = self.model.load_state_dict(frozen.state_dict(), strict=False)
            assert not unexpected, "the decoder may have more than the one it goes on from, not less"
            assert all(name.startswith("decoder.joints.") for name in missing), missing
            self.model.encoder.requires_grad_(False)
        self.config, self.device = config, device
        self.train, self.unseen = train, unseen
        self.cells = model_config.input_cells

    def describe(self) -> dict[str, Any]:
        description = {"kind": KIND, "model": asdict(self.model.config), "task": asdict(self.config)}
        return description | ({"encoder": "frozen"} if self.is_frozen else {})

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:
        filled, points, inside, num_band = self._batch(rng)
        model = self.model
        z = model.encoder(filled)
        if self.is_frozen:
            codes = model.quantizer.moved(model.quantizer(z), self.config.noise)
        elif step < self.config.free_steps:
            codes = torch.tanh(z)
        else:
            codes = model.quantizer(z, hardness=0.5)
        logits = model.decoder(model.decoder.volume(model.decoder.latents(codes)), points)
        error = F.binary_cross_entropy_with_logits(logits, inside, reduction="none")
        band, uniform = error[:, :num_band].mean(), error[:, num_band:].mean()
        return self.config.band_weight * band + uniform, {
            "band_bce": float(band.detach()),
            "uniform_bce": float(uniform.detach()),
        }

    def _batch(self, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor, int]:
        c = self.config
        chosen = rng.choice(len(self.train), min(c.batch, len(self.train)), replace=False)
        filled, points, inside = [], [], []
        for i in chosen:
            voxels = unpack(self.train.bits[i])
            band = rng.choice(self.train.band[i], c.band_points, replace=False)
            flat = np.concatenate([band, rng.integers(0, RESOLUTION**3, c.uniform_points, dtype=np.uint32)])
            where = np.stack(np.unravel_index(flat, voxels.shape), axis=1)
            axes = PERMUTATIONS[rng.integers(6)]
            flips = rng.integers(0, 2, 3).astype(bool)
            seen = voxels.transpose(axes)
            seen = seen[tuple(slice(None, None, -1 if f else 1) for f in flips)]
            position = where[:, axes]
            position = np.where(flips, RESOLUTION - 1 - position, position)
            filled.append(pool_mean(seen, self.cells))
            points.append((position + 0.5) * (2 / RESOLUTION) - 1)
            inside.append(voxels.reshape(-1)[flat])
        tensors = (torch.from_numpy(np.stack(a).astype(np.float32)).to(self.device) for a in (filled, points, inside))
        return (*tensors, c.band_points)  # type: ignore[return-value]

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, LatticeTokenizer)
        model.eval()
        scores = {"iou_unseen": self.unseen, "iou_seen": self.train}
        result = {name: float(np.mean(self._ious(model, items))) for name, items in scores.items()}
        result["iou_unseen_unquantised"] = float(np.mean(self._ious(model, self.unseen, quantised=False)))
        result["codes_used"] = self._codes_used(model)
        return result

    def _ious(self, model: LatticeTokenizer, items: ItemSet, *, quantised: bool = True) -> list[float]:
        """Volume IoU at every second voxel along each axis, those of even index: an eighth of the voxels."""
        ious = []
        axis = (np.arange(0, RESOLUTION, 2) + 0.5) * (2 / RESOLUTION) - 1
        grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(1, -1, 3)
        points = torch.from_numpy(grid.astype(np.float32)).to(self.device)
        for i in range(min(self.config.eval_items, len(items))):
            voxels = unpack(items.bits[i])
            filled = torch.from_numpy(pool_mean(voxels, self.cells))[None].to(self.device)
            z = model.encoder(filled)
            codes = model.quantizer(z) if quantised else torch.tanh(z)
            volume = model.decoder.volume(model.decoder.latents(codes))
            predicted = model.field(volume, points)[0].cpu().numpy() > 0
            truth = voxels[::2, ::2, ::2].reshape(-1)
            ious.append(float((predicted & truth).sum() / max(1, (predicted | truth).sum())))
        return ious

    def _codes_used(self, model: LatticeTokenizer) -> float:
        """Share of the codes that the evaluated items use at all."""
        seen: set[int] = set()
        for i in range(min(self.config.eval_items, len(self.train))):
            filled = torch.from_numpy(pool_mean(unpack(self.train.bits[i]), self.cells))[None].to(self.device)
            seen.update(torch.unique(model.encode(filled)).tolist())
        return len(seen) / model.quantizer.num_codes
