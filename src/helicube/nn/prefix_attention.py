"""Attention of a few queries over a long run of cached keys, with the log-sum-exp that an exact merge needs.

L queries, Q query heads, K key-value heads, G = Q/K, M cached keys, d key size, v value size.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["attend_prefix"]

# Scores held at once; bounds the memory of a long prefill, and is far above what a decode step needs.
MAX_SCORES = 1 << 21


def attend_prefix(
    q_LQd: Tensor, k_KMd: Tensor, v_KMv: Tensor, limits: list[int], scale: float
) -> tuple[Tensor, Tensor]:
    """Attention in which query l sees the first limits[l] keys.

    The keys of a shard are in the order of their positions, so causality is a prefix of them, and an empty shard is
    the prefix 0. Plain PyTorch in float32: the twin that any fast kernel must equal.

    Args:
        limits: L numbers, not falling.

    Returns:
        Output (L, Q, v) and natural-log LSE (L, Q), both float32; (0, −∞) for a query that sees no key.
    """
    num_queries, num_heads, _ = q_LQd.shape
    num_kv, _, value_size = v_KMv.shape
    groups = num_heads // num_kv
    # (K, L·G, d): the query heads of one key-value head share one matrix product.
    q = (q_LQd.float() * scale).view(num_queries, num_kv, groups, -1).transpose(0, 1).flatten(1, 2)
    state = _Running(q.shape[:2], value_size, q.device)
    step = max(256, MAX_SCORES // (q.shape[0] * q.shape[1]))
    limit = torch.tensor(limits, device=q.device).repeat_interleave(groups)[:, None]
    for start in range(0, limits[-1], step):
        stop = min(start + step, limits[-1])
        scores = q @ k_KMd[:, start:stop].float().transpose(1, 2)
        if limits[0] < stop:
            hidden = torch.arange(start, stop, device=q.device) >= limit
            scores.masked_fill_(hidden, -torch.inf)
        state.add(scores, v_KMv[:, start:stop].float())
    o, lse = state.finish()
    o_LQv = o.view(num_kv, num_queries, groups, value_size).transpose(0, 1).flatten(1, 2)
    return o_LQv, lse.view(num_kv, num_queries, groups).transpose(0, 1).flatten(1, 2)


class _Running:
    """Online softmax over blocks of keys (Milakov and Gimelshein, 2018)."""

    def __init__(self, rows: torch.Size, value_size: int, device: torch.device) -> None:
        self.top = torch.full(rows, -torch.inf, device=device)
        self.total = torch.zeros(rows, device=device)
        self.sum = torch.zeros(*rows, value_size, device=device)

    def add(self, scores_KRm: Tensor, v_Kmv: Tensor) -> None:
        top = torch.maximum(self.top, scores_KRm.amax(dim=-1))
        # A row that has seen no key yet keeps −∞ as its top; subtract 0 there, as exp(−∞ − (−∞)) is NaN.
        base = torch.where(top == -torch.inf, 0.0, top)
        weight = (scores_KRm - base[..., None]).exp_()
        keep = (self.top - base).exp()
        self.total = self.total * keep + weight.sum(dim=-1)
        self.sum = self.sum * keep[..., None] + weight @ v_Kmv
        self.top = top

    def finish(self) -> tuple[Tensor, Tensor]:
        seen = self.total > 0
        o = self.sum / torch.where(seen, self.total, 1.0)[..., None]
        return o, self.top + torch.where(seen, self.total, 1.0).log()
