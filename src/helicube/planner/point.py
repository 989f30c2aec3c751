"""Point: n points of a search, each a layout with a batch and a context, with the widths that costs depend on.

Axes: (n,) one value per point; on a grid of layouts × batches, what depends on layouts alone is a column (l, 1), on
batches alone a row (1, b).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.cost_collective import all_reduce_time, move_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.layouts import LayoutArrays
from helicube.planner.setting import Setting

__all__ = ["Point", "Ranks", "make_point", "ranks_of"]


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
    # (n,) or () cached tokens per sequence.
    ffn_ranks: Array
    # (n,) ranks that share one copy of the FFN.
    shards_output: Array
    # (n,) ranks over which W_O is split.
    qkv_ranks: Array
    # (n,) ranks over which query heads of the QKV projection are split.
    head_ranks: Array
    # (n,) ranks over which the output embedding is split.

    def gemm(self, fmt: str, m: Number, n: Number, k: Number) -> Array:
        return gemm_time(self.s.hardware, self.s.gpu.gemm[fmt], fmt, m=m, n=n, k=k)

    def reduce(self, ranks: Number, tokens: Number) -> Array:
        buffer = np.multiply(tokens, 2.0 * self.s.model.hidden_size)
        return all_reduce_time(self.s.hardware, self.s.gpu, self.s.engine, ranks, buffer)

    def move(self, op: str, ranks: Number, received: Number) -> Array:
        """An all-gather, reduce-scatter or all-to-all."""
        return move_time(self.s.hardware, self.s.gpu, self.s.engine, op, ranks=ranks, received_bytes=received)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Ranks that share each weight, (n,) each."""

    qkv: Array
    # Query heads of the QKV projection: TPA; for DCP all ranks of one copy of attention.
    output: Array
    # W_O, linear attention: all ranks of one copy of attention; TPA for Medha, which copies all but the experts.
    ffn: Array
    # Dense FFN and shared experts.
    head: Array
    # Embeddings; data-parallel copies of attention hold them whole (the default of vLLM and TensorRT-LLM).


def ranks_of(x: LayoutArrays) -> Ranks:
    """The ranks that share each weight of n layouts; costs and memory follow it."""
    medha, one = x.is_family("medha"), x.kvp * x.tpa
    output = np.where(medha | (x.dp > 1), x.tpa, one)
    ffn = np.where(medha, x.tpa, x.dp * one)
    return Ranks(qkv=np.where(x.is_family("dcp"), one, x.tpa), output=output, ffn=ffn,
                 head=np.where(x.dp > 1, output, ffn))  # fmt: skip


def make_point(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> Point:
    tokens, ranks = ceil_div(batch, x.pp), ranks_of(x)
    return Point(
        s=s,
        x=x,
        tokens=tokens,
        local=ceil_div(tokens, x.dp),
        context=np.asarray(context, dtype=np.float64),
        ffn_ranks=ranks.ffn,
        shards_output=ranks.output,
        qkv_ranks=ranks.qkv,
        head_ranks=ranks.head,
    )
