"""Rotary position embedding over interleaved pairs.

Source: Su et al., "RoFormer" (2021), equation 34; channels (2i, 2i + 1) of a head are one pair.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["apply_rotary", "rotary_table"]


def rotary_table(num_positions: int, head_dim: int, theta: float, device: torch.device | str = "cpu") -> Tensor:
    """Cosines and sines of all positions; (L, head_dim/2, 2) float32."""
    frequency = theta ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angle = torch.arange(num_positions, device=device, dtype=torch.float32)[:, None] * frequency
    return torch.stack([angle.cos(), angle.sin()], dim=-1)


def apply_rotary(x: Tensor, table: Tensor) -> Tensor:
    """Rotate the pairs of x by the angles of its positions, in float32.

    Args:
        x: (..., L, head_dim).
        table: rows of `rotary_table` that broadcast against x: (..., L, head_dim/2, 2).
    """
    pairs = x.float().view(*x.shape[:-1], -1, 2)
    cos, sin = table[..., 0], table[..., 1]
    a, b = pairs[..., 0], pairs[..., 1]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)
