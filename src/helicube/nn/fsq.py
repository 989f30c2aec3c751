"""Finite scalar quantisation.

Source: Mentzer et al., "Finite Scalar Quantization: VQ-VAE Made Simple" (2023): each channel is bounded and rounded to
a few levels, and the id is the mixed-radix number of the levels, so there is no codebook that could collapse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["FSQ"]


class FSQ(nn.Module):
    """Rounds F channels to `levels`; ids run from 0 to prod(levels) − 1.

    Args:
        levels: number of values of each channel.
    """

    def __init__(self, levels: Sequence[int]) -> None:
        super().__init__()
        self.levels = tuple(levels)
        self.radix = tuple(math.prod(levels[:i]) for i in range(len(levels)))
        self.num_codes = math.prod(levels)

    def bound(self, z_F: Tensor) -> Tensor:
        """Squash to [0, level − 1], still continuous."""
        return (torch.tanh(z_F) + 1) / 2 * self._top(z_F)

    def forward(self, z_F: Tensor, hardness: float = 1.0) -> Tensor:
        """Codes in [−1, 1].

        Args:
            z_F: (..., F), any range.
            hardness: 1 rounds, with a straight-through gradient; in training, a value below 1 leaves that share of
                rows unrounded but with uniform noise one level wide, which tells as little and has a true gradient.
        """
        u = self.bound(z_F)
        rounded = u + (u.round() - u).detach()
        if hardness < 1 and self.training:
            noisy = (u + torch.rand_like(u) - 0.5).clamp_min(0).minimum(self._top(u))
            keep = torch.rand(u.shape[:1] + (1,) * (u.dim() - 1), device=u.device) < hardness
            rounded = torch.where(keep, rounded, noisy)
        return self._centre(rounded)

    def moved(self, codes_F: Tensor, share: float) -> Tensor:
        """Codes of which a share has moved to a neighbouring level; those at an end that would leave it stay."""
        one = 2 / self._top(codes_F)
        up = torch.where(torch.rand_like(codes_F) < 0.5, one, -one)
        moving = torch.rand_like(codes_F) < share
        return torch.where(moving, codes_F + up, codes_F).clamp(-1, 1)

    def to_ids(self, z_F: Tensor) -> Tensor:
        """(..., F) to (...) int64."""
        return (self.bound(z_F).round().long() * torch.tensor(self.radix, device=z_F.device)).sum(-1)

    def to_codes(self, ids: Tensor) -> Tensor:
        """(...) int64 to (..., F) in [−1, 1]."""
        return self._centre(self.digits(ids).float())

    def digits(self, ids: Tensor) -> Tensor:
        """(...) int64 to (..., F) int64, the level of each channel."""
        radix, levels = (torch.tensor(numbers, device=ids.device) for numbers in (self.radix, self.levels))
        return ids.unsqueeze(-1).div(radix, rounding_mode="floor") % levels

    def _top(self, like: Tensor) -> Tensor:
        """Highest value of each channel, (F,)."""
        return torch.tensor([level - 1 for level in self.levels], device=like.device, dtype=torch.float32)

    def _centre(self, u: Tensor) -> Tensor:
        return u * 2 / self._top(u) - 1
