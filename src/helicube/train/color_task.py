"""Training the colour tokens, given a trained shape tokenizer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from helicube.geometry.box_sample import pool_mean, unpack
from helicube.models.cube.lattice import LatticeTokenizer
from helicube.models.cube.lattice_colors import ColorConfig, LatticeColors
from helicube.models.cube.palette import find_palette
from helicube.train.shards import ItemSet

__all__ = ["ColorTask", "ColorTaskConfig"]

# Name of the command that trains it.
KIND = "colors"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColorTaskConfig:
    """What a step sees."""

    # Objects a step, and points of each whose entry is asked for; all points are shown to the encoder.
    batch: int = 32
    points: int = 1024
    # Steps before quantisation sets in.
    free_steps: int = 200
    # Items of the evaluation.
    eval_items: int = 64


class ColorTask:
    """The palette entry at unseen points of the surface, given the shape and the quantised paint tokens.

    Args:
        frozen: trained colours of the same sizes to go on from, whose encoder stays as it is: so do all ids.
    """

    model: LatticeColors

    def __init__(
        self,
        color: ColorConfig,
        config: ColorTaskConfig,
        tokenizer: LatticeTokenizer,
        train: ItemSet,
        unseen: ItemSet,
        *,
        device: str = "cpu",
        frozen: LatticeColors | None = None,
    ) -> None:
        torch.manual_seed(0)
        self.model = LatticeColors(color, tokenizer.config).to(device)
        self.is_frozen = frozen is not None
        if frozen is not None:
            self.model.load_state_dict(frozen.state_dict())
            self.model.freeze_encoder()
        self.config, self.train, self.unseen = config, train, unseen
        tokenizer = tokenizer.to(device).eval()
        self.train_view = _View(train, tokenizer, color.palette_size, device)
        self.unseen_view = _View(unseen, tokenizer, color.palette_size, device)

    def describe(self) -> dict[str, Any]:
        description = {"kind": KIND, "model": asdict(self.model.config), "task": asdict(self.config)}
        return description | ({"encoder": "frozen"} if self.is_frozen else {})

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:
        c = self.config
        chosen = rng.choice(len(self.train), min(c.batch, len(self.train)), replace=False)
        shape_codes, latents, points, entries = self.train_view.batch(chosen)
        asked = torch.from_numpy(rng.choice(points.shape[1], c.points, replace=False))
        z = self.model.to_channels(shape_codes, self.model.shares(points, entries))
        if self.is_frozen:
            codes = self.model.quantizer(z)
        else:
            codes = torch.tanh(z) if step < c.free_steps else self.model.quantizer(z, hardness=0.5)
        logits = self.model.choose(self.model.volume(latents, codes), points[:, asked])
        target = entries[:, asked]
        right = (logits.argmax(-1) == target).float().mean()
        return F.cross_entropy(logits.flatten(0, 1), target.flatten()), {"entry_accuracy": float(right)}

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, LatticeColors)
        model.eval()
        result = {}
        for name, view in (("accuracy_seen", self.train_view), ("accuracy_unseen", self.unseen_view)):
            shape_codes, latents, points, entries = view.batch(np.arange(min(self.config.eval_items, len(view))))
            codes = model.quantizer(model.to_channels(shape_codes, model.shares(points, entries)))
            logits = model.choose(model.volume(latents, codes), points)
            result[name] = float((logits.argmax(-1) == entries).float().mean())
        return result


class _View:
    """Shape latents and palette entries of items, computed once each and remembered."""

    def __init__(self, items: ItemSet, tokenizer: LatticeTokenizer, palette_size: int, device: str) -> None:
        self.items, self.tokenizer, self.palette_size, self.device = items, tokenizer, palette_size, device
        self.shape_ids: dict[int, Tensor] = {}
        self.entries: dict[int, NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self.items)

    @torch.no_grad()
    def batch(self, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Shape codes (B, N, F), latents (B, N, D), points (B, P, 3) and palette entries (B, P)."""
        for i in (int(i) for i in chosen if int(i) not in self.shape_ids):
            filled = torch.from_numpy(pool_mean(unpack(self.items.bits[i]), self.tokenizer.config.input_cells))[None]
            self.shape_ids[i] = self.tokenizer.encode(filled.to(self.device))[0]
            self.entries[i] = find_palette(self.items.colors[i], self.palette_size)[1]
        ids = torch.stack([self.shape_ids[int(i)] for i in chosen])
        codes = self.tokenizer.quantizer.to_codes(ids)
        latents = self.tokenizer.decoder.latents(codes)
        points = torch.from_numpy(self.items.points[chosen].astype(np.float32) / 32767)
        entries = torch.from_numpy(np.stack([self.entries[int(i)] for i in chosen]))
        return codes, latents, points.to(self.device), entries.to(self.device)
