"""Attention of new tokens over the runs of slots that their sequences have in a rank's cache.

b sequences, L new tokens of each, Q query heads, K key-value heads, T slots, d key size, v value size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from helicube.kernels.choose import TRITON_CAPABILITY, facts_of
from helicube.nn.prefix_attention import attend_prefix

__all__ = ["Attend", "Runs", "attend_plain", "attend_triton", "choose_attend"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The keys of some sequences on this rank, the same in every layer."""

    # First slot of each.
    starts: list[int]
    # How many of the slots from there on each of the L new tokens sees; not falling.
    limits: list[list[int]]
    # Both on a device, once a step has asked for them.
    _tensors: dict[torch.device, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False)

    def last(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Starts, and keys that the last new token sees, (b,) int64 each."""
        if device not in self._tensors:
            pair = torch.tensor([self.starts, [limits[-1] for limits in self.limits]], device=device)
            self._tensors[device] = pair[0], pair[1]
        return self._tensors[device]


# (q (b, L, Q, d), keys (K, T, d), values (K, T, v), runs of b sequences, scale of the scores)
# -> output (b, L, Q, v) and natural-log LSE (b, L, Q), both float32; (0, −∞) where a token sees no key.
Attend = Callable[[Tensor, Tensor, Tensor, Runs, float], tuple[Tensor, Tensor]]


def attend_plain(
    q_bLQd: Tensor, keys_KTd: Tensor, values_KTv: Tensor, runs: Runs, scale: float
) -> tuple[Tensor, Tensor]:
    """Sequence by sequence in plain PyTorch, without padding to one length; the twin of any other `Attend`."""
    found = []
    for q, start, limits in zip(q_bLQd, runs.starts, runs.limits, strict=True):
        place = slice(start, start + limits[-1])
        found.append(attend_prefix(q, keys_KTd[:, place], values_KTv[:, place], limits, scale))
    return torch.stack([o for o, _ in found]), torch.stack([lse for _, lse in found])


def attend_triton(
    q_bLQd: Tensor, keys_KTd: Tensor, values_KTv: Tensor, runs: Runs, scale: float
) -> tuple[Tensor, Tensor]:
    """Flash-decoding for all sequences at once; prefills, and MLA's wide keys, take the plain road."""
    if q_bLQd.shape[1] != 1 or keys_KTd.shape[2] != values_KTv.shape[2]:
        return attend_plain(q_bLQd, keys_KTd, values_KTv, runs, scale)
    from helicube.kernels.triton.attention import CachedKeys, attend_split, split_count
    from helicube.kernels.triton.merge import merge

    starts, lengths = runs.last(q_bLQd.device)
    cached = CachedKeys(keys=keys_KTd, values=values_KTv, lengths=lengths, starts=starts)
    # By the size of the cache, not by the runs: a sequence's sums keep their order whatever its neighbours are.
    o, lse = attend_split(q_bLQd[:, 0].contiguous(), cached, num_splits=split_count(keys_KTd.shape[1]), scale=scale)
    o, lse = merge(o, lse)
    return o[:, None], lse[:, None]


def choose_attend(device: torch.device | str) -> Attend:
    """The fastest for a device."""
    if torch.device(device).type == "cpu":
        return attend_plain
    facts = facts_of(device)
    fits = facts.has_triton and facts.capability is not None and facts.capability >= TRITON_CAPABILITY
    return attend_triton if fits else attend_plain
