"""Colours of the default model: which entry of the palette stands where.

A coarser lattice of tokens, read together with the shape's own latents, gives for each point of the surface a choice
among the palette's entries.

Shapes: B objects, N shape tokens, D their width, M colour tokens, K palette entries, P points.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.models.cube.lattice import Block, LatticeConfig
from helicube.nn.fsq import FSQ

__all__ = ["ColorConfig", "LatticeColors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColorConfig:
    """Sizes of the colour tokenizer."""

    # Most colours of one object.
    palette_size: int = 6
    # Cells of the shape's lattice, along each side, that share one colour token.
    merge: int = 2
    # Width, heads and layers of each of the two transformers.
    width: int = 128
    num_heads: int = 4
    num_layers: int = 2
    # Values of each quantised channel.
    levels: tuple[int, ...] = (5, 5, 5, 5)
    # Sub-cells along each side of a shape cell, and channels, of the volume behind the choice.
    sub_cells: int = 2
    channels: int = 24
    head_width: int = 48


class LatticeColors(nn.Module):
    """Tokens for the choice of palette entries over a surface."""

    # What ids depend on. Positions serve both halves.
    ENCODER = ("shape_in.", "share_in.", "encoder.", "c_in.", "position")

    def __init__(self, config: ColorConfig, shape: LatticeConfig) -> None:
        super().__init__()
        assert shape.grid % config.merge == 0, f"merge={config.merge} must divide the grid of {shape.grid} cells"
        self.config, self.grid = config, shape.grid
        self.num_tokens = (shape.grid // config.merge) ** 3
        self.quantizer = FSQ(config.levels)
        w, merged = config.width, config.merge**3
        self.shape_in = nn.Linear(len(shape.levels), w)
        self.share_in = nn.Linear(config.palette_size + 1, w)
        self.position = nn.Parameter(torch.randn(shape.num_tokens, w) * 0.02)
        self.encoder = nn.ModuleList(Block(w, config.num_heads) for _ in range(config.num_layers))
        self.c_in = nn.Linear(w * merged, len(config.levels))
        self.c_out = nn.Linear(len(config.levels), w * merged)
        self.shape_out = nn.Linear(shape.width, w)
        self.decoder = nn.ModuleList(Block(w, config.num_heads) for _ in range(config.num_layers))
        self.ln_f = nn.LayerNorm(w)
        self.to_volume = nn.Linear(w, config.channels * config.sub_cells**3)
        self.head_in = nn.Linear(config.channels + 3, config.head_width)
        self.head_out = nn.Linear(config.head_width, config.palette_size)

    def shares(self, points_BP3: Tensor, entries_BP: Tensor) -> Tensor:
        """Share of each palette entry among the points of a cell, then 1 where it has none; (B, N, K + 1)."""
        g, k = self.grid, self.config.palette_size
        cell = ((points_BP3 + 1) * (g / 2)).long().clamp(0, g - 1)
        flat = (cell[..., 0] * g + cell[..., 1]) * g + cell[..., 2]
        counts = torch.zeros(len(points_BP3), g**3 * k, device=points_BP3.device)
        counts.scatter_add_(1, flat * k + entries_BP, torch.ones_like(entries_BP, dtype=counts.dtype))
        counts = counts.view(-1, g**3, k)
        total = counts.sum(-1, keepdim=True)
        return torch.cat([counts / total.clamp(min=1), (total == 0).to(counts.dtype)], dim=-1)

    def to_channels(self, shape_codes_BNF: Tensor, shares_BNK: Tensor) -> Tensor:
        """Unquantised channels, (B, M, F).

        Reads the shape's codes, not its latents: ids stay what they are when the shape's decoder is trained on.
        """
        x = self.shape_in(shape_codes_BNF) + self.share_in(shares_BNK) + self.position
        for block in self.encoder:
            x = block(x)
        z: Tensor = self.c_in(self._merge(x))
        return z

    def freeze_encoder(self) -> None:
        """Train only what reads codes."""
        for name, p in self.named_parameters():
            if name.startswith(self.ENCODER):
                p.requires_grad_(False)

    def volume(self, latents_BND: Tensor, codes_BMF: Tensor) -> Tensor:
        """Codes and the shape's latents to a (B, C, W, W, W) volume, W = grid · sub_cells."""
        x = self._split(self.c_out(codes_BMF)) + self.shape_out(latents_BND) + self.position
        for block in self.decoder:
            x = block(x)
        g, s, c = self.grid, self.config.sub_cells, self.config.channels
        v = self.to_volume(self.ln_f(x)).reshape(-1, g, g, g, s, s, s, c)
        volume: Tensor = v.permute(0, 7, 1, 4, 2, 5, 3, 6).reshape(-1, c, g * s, g * s, g * s)
        return volume

    def choose(self, volume_BCWWW: Tensor, points_BP3: Tensor) -> Tensor:
        """Logits of the palette entries at points of the surface; (B, P, K)."""
        where = points_BP3.flip(-1)[:, :, None, None]
        sampled = F.grid_sample(volume_BCWWW, where, mode="bilinear", padding_mode="border", align_corners=False)
        features = torch.cat([sampled[:, :, :, 0, 0].transpose(1, 2), points_BP3], dim=-1)
        logits: Tensor = self.head_out(F.relu(self.head_in(features)))
        return logits

    def _merge(self, x_BND: Tensor) -> Tensor:
        """(B, G³, D) to (B, (G/m)³, m³·D)."""
        g, m = self.grid // self.config.merge, self.config.merge
        x = x_BND.view(len(x_BND), g, m, g, m, g, m, -1)
        return x.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(len(x_BND), g**3, -1)

    def _split(self, x_BMD: Tensor) -> Tensor:
        """(B, (G/m)³, m³·D) to (B, G³, D)."""
        g, m = self.grid // self.config.merge, self.config.merge
        x = x_BMD.view(len(x_BMD), g, g, g, m, m, m, -1)
        return x.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(len(x_BMD), self.grid**3, -1)
