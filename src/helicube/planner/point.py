"""Point: n points of a search, each a layout with a batch and a context, with the widths that costs depend on.

Axes: (n,) one value per point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.cost_collective import all_reduce_time, move_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.layouts import LayoutArrays
from helicube.planner.setting import Setting

__all__ = ["Point", "make_point"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """Batches and widths of n points, derived once."""

    s: Setting
    x: LayoutArrays
    tokens: Array
    # (n,) tokens of one pipeline stage.
    local: Array
    # (n,) tokens of one copy of attention.
    context: Array
    # (n,) cached tokens per sequence.
    ffn_ranks: Array
    # (n,) ranks that share one copy of the FFN.
    shards_output: Array
    # (n,) ranks over which W_O is split.
    qkv_ranks: Array
    # (n,) ranks over which query heads of the QKV projection are split.

    def gemm(self, fmt: str, m: Number, n: Number, k: Number) -> Array:
        return gemm_time(self.s.hardware, self.s.gpu.gemm[fmt], fmt, m=m, n=n, k=k)

    def reduce(self, ranks: Number, tokens: Number) -> Array:
        buffer = np.multiply(tokens, 2.0 * self.s.model.hidden_size)
        return all_reduce_time(self.s.hardware, self.s.gpu, self.s.engine, ranks, buffer)

    def move(self, op: str, ranks: Number, received: Number) -> Array:
        """An all-gather, reduce-scatter or all-to-all."""
        return move_time(self.s.hardware, self.s.gpu, self.s.engine, op, ranks=ranks, received_bytes=received)


def make_point(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> Point:
    tokens = ceil_div(batch, x.pp)
    pool = x.dp * x.kvp * x.tpa
    medha, dcp = x.is_family("medha"), x.is_family("dcp")
    shards_output = np.where(medha | (x.dp > 1), x.tpa, x.kvp * x.tpa)
    return Point(
        s=s,
        x=x,
        tokens=tokens,
        local=ceil_div(tokens, x.dp),
        context=np.broadcast_to(np.asarray(context, dtype=np.float64), tokens.shape),
        ffn_ranks=np.where(medha, x.tpa, pool),
        shards_output=shards_output,
        qkv_ranks=np.where(dcp, x.kvp * x.tpa, x.tpa),
    )
