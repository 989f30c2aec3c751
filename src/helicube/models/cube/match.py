"""How well an object fits a prompt: two small encoders into one space, trained like CLIP (Radford et al., 2021).

The decoder draws several candidates; what it thinks of its own ids does not tell a good one from a bad one
(docs/log.md), but a network that has seen which objects go with which captions does. It reads ids alone, so that a
candidate is judged before any field is decoded.

Shapes: B objects or prompts, N cells of the lattice, F channels of a code, S cells in a patch, P patches, K palette
entries, D width, T width of a text state, E width of the common space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.models.cube.lattice import Block
from helicube.models.cube.lattice_code import BOX_LEVELS
from helicube.models.cube.palette import LEVELS, UNUSED
from helicube.nn.fsq import FSQ

__all__ = ["MatchConfig", "ShapeTextMatch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchConfig:
    """Sizes of the network."""

    # Of the ids that it reads; see `LatticeConfig` and `ColorConfig`.
    grid: int
    levels: tuple[int, ...]
    palette_size: int
    # T, width of the pooled text state.
    text_width: int
    # Cells along each side of a patch, which becomes one token.
    patch: int = 2
    # Width of a channel's level, of the transformer, and of the common space.
    level_width: int = 16
    width: int = 128
    num_heads: int = 4
    num_layers: int = 2
    embed: int = 128

    @property
    def num_patches(self) -> int:
        return (self.grid // self.patch) ** 3


class ShapeTextMatch(nn.Module):
    """Ids of objects and pooled text states to unit vectors whose inner product says how well they match."""

    offsets: Tensor

    def __init__(self, config: MatchConfig) -> None:
        super().__init__()
        c = self.config = config
        self.quantizer = FSQ(c.levels)
        starts = [sum(c.levels[:i]) for i in range(len(c.levels))]
        self.register_buffer("offsets", torch.tensor(starts), persistent=False)
        self.level = nn.Embedding(sum(c.levels), c.level_width)
        self.patch_in = nn.Linear(c.patch**3 * len(c.levels) * c.level_width, c.width)
        self.box_in = nn.Linear(3, c.width)
        self.palette_in = nn.Linear(4 * c.palette_size, c.width)
        self.position = nn.Parameter(torch.randn(c.num_patches + 2, c.width) * 0.02)
        self.blocks = nn.ModuleList(Block(c.width, c.num_heads) for _ in range(c.num_layers))
        self.ln_f = nn.LayerNorm(c.width)
        self.shape_out = nn.Linear(c.width, c.embed)
        self.text_in = nn.Linear(c.text_width, 2 * c.width)
        self.text_out = nn.Linear(2 * c.width, c.embed)
        # Logarithm of the inverse temperature of the softmax over pairs.
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def objects(self, box_B3: Tensor, shape_BN: Tensor, palette_BK: Tensor, drop: float = 0.0) -> Tensor:
        """Ids of B objects, each kind counted from its own first (see `LatticeCode.split`), to (B, E).

        Args:
            drop: share of the cells that are hidden, in training.
        """
        box = self.box_in(box_B3.float() / (BOX_LEVELS - 1))
        tokens = [self.patch_in(self._patches(shape_BN, drop)), box[:, None], self._palette(palette_BK)[:, None]]
        x = torch.cat(tokens, dim=1) + self.position
        for block in self.blocks:
            x = block(x)
        vectors: Tensor = F.normalize(self.shape_out(self.ln_f(x).mean(dim=1)), dim=-1)
        return vectors

    def prompts(self, pooled_BT: Tensor) -> Tensor:
        """(B, T) pooled text states to (B, E)."""
        vectors: Tensor = F.normalize(self.text_out(F.gelu(self.text_in(pooled_BT))), dim=-1)
        return vectors

    def _patches(self, shape_BN: Tensor, drop: float) -> Tensor:
        """(B, P, S · F · level_width)."""
        c, p = self.config, self.config.patch
        levels: Tensor = self.level(self.quantizer.digits(shape_BN) + self.offsets).flatten(
            2
        )  # (B, N, F · level_width)
        if drop:
            levels = levels * (torch.rand(levels.shape[:2], device=levels.device) >= drop).unsqueeze(-1)
        g = c.grid // p
        cells = levels.reshape(-1, g, p, g, p, g, p, levels.shape[-1]).permute(0, 1, 3, 5, 2, 4, 6, 7)
        return cells.reshape(len(shape_BN), c.num_patches, -1)

    def _palette(self, palette_BK: Tensor) -> Tensor:
        """(B, D): three channels of each entry in [-1, 1] and a 1, or four zeros where it is not used."""
        used = (palette_BK != UNUSED).unsqueeze(-1)
        steps = torch.stack([palette_BK // LEVELS**2, palette_BK // LEVELS % LEVELS, palette_BK % LEVELS], dim=-1)
        entries = torch.cat([steps * (2 / (LEVELS - 1)) - 1, torch.ones_like(palette_BK).unsqueeze(-1)], dim=-1)
        token: Tensor = self.palette_in((entries * used).flatten(1))
        return token
