"""Attention of new tokens over the runs of slots that their sequences have in a rank's cache.

b sequences, L new tokens of each, Q query heads, K key-value heads, T slots, d key size, v value size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.nn.prefix_attention import attend_prefix

__all__ = ["Attend", "Run", "attend_plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One sequence's keys on this rank."""

    # First slot.
    start: int
    # How many of the slots from there on each of the L new tokens sees; not falling.
    limits: list[int]


# (q (b, L, Q, d), keys (K, T, d), values (K, T, v), b runs, scale of the scores)
# -> output (b, L, Q, v) and natural-log LSE (b, L, Q), both float32; (0, −∞) where a token sees no key.
Attend = Callable[[Tensor, Tensor, Tensor, Sequence[Run], float], tuple[Tensor, Tensor]]


def attend_plain(
    q_bLQd: Tensor, keys_KTd: Tensor, values_KTv: Tensor, runs: Sequence[Run], scale: float
) -> tuple[Tensor, Tensor]:
    """Sequence by sequence in plain PyTorch, without padding to one length; the twin of any other `Attend`."""
    found = []
    for q, run in zip(q_bLQd, runs, strict=True):
        place = slice(run.start, run.start + run.limits[-1])
        found.append(attend_prefix(q, keys_KTd[:, place], values_KTv[:, place], run.limits, scale))
    return torch.stack([o for o, _ in found]), torch.stack([lse for _, lse in found])
