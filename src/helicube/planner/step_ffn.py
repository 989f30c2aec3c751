"""The FFN phase of one layer: dense, shared and routed experts, collectives.

Axes: (n,) one value per point; seconds of one layer.
"""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array
from helicube.planner.cost_gemm import shard_width
from helicube.planner.cost_moe import moe_time
from helicube.planner.point import Point

__all__ = ["ffn_times"]


def ffn_times(p: Point) -> tuple[Array, Array, Array, Array, Array]:
    """(dense layer, shared experts and router, routed experts, collectives of a dense layer, those of a MoE layer)."""
    s, f, h, x = p.s, p.s.model.ffn, p.s.model.hidden_size, p.x
    zero = np.zeros(1)
    dense = zero
    if f.num_dense_layers:
        width = shard_width(f.dense_size, p.ffn_ranks, s.formats.ffn)
        dense = p.gemm(s.formats.ffn, p.tokens, 2 * width, h) + p.gemm(s.formats.ffn, p.tokens, h, width)
    if not f.is_moe:
        return dense, zero, zero, _gathered(p, p.reduce(p.ffn_ranks, p.tokens)), zero
    shared = p.gemm("bf16", p.local, float(f.num_experts), h)
    if f.shared_size:
        # Data-parallel attention keeps a copy of the shared expert beside each; the others split it over the pool.
        alone = x.dp > 1
        width = shard_width(f.shared_size, np.where(alone, 1.0, p.ffn_ranks), s.formats.ffn)
        rows = np.where(alone, p.local, p.tokens)
        shared = shared + p.gemm(s.formats.ffn, rows, 2 * width, h) + p.gemm(s.formats.ffn, rows, h, width)
    constants = s.gpu.moe[s.formats.experts]
    routed = moe_time(s.hardware, constants, f, s.formats.experts, hidden=h, tokens=p.tokens, tpf=x.tpf, ep=x.ep)
    return dense, shared, routed, _gathered(p, p.reduce(p.ffn_ranks, p.tokens)), _moe_collective(p)


def _moe_collective(p: Point) -> Array:
    """Collectives of one MoE layer: the cheaper of all-reduce over the pool and TPF all-reduce with EP all-gather."""
    x, h = p.x, p.s.model.hidden_size
    pool = p.reduce(x.tpf * x.ep, p.tokens)
    grid = p.reduce(x.tpf, p.tokens) + p.move("all_gather", x.ep, p.tokens * (2.0 * h) * (x.ep - 1))
    return _gathered(p, np.minimum(pool, np.where(x.ep > 1, grid, np.inf)))


def _gathered(p: Point, plain: Array) -> Array:
    """Collectives around an FFN: `plain`; for data-parallel attention, gather and scatter of tokens, sum over TPA."""
    x = p.x
    if not np.any(x.dp > 1):
        return plain
    moved = p.tokens * (2.0 * p.s.model.hidden_size) * (x.dp - 1) / x.dp
    inner = p.reduce(x.tpa, p.local)
    return np.where(x.dp > 1, p.move("all_gather", x.dp, moved) + p.move("reduce_scatter", x.dp, moved) + inner, plain)
