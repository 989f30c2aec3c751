"""Which points lie outside the range that the constants were fitted on, and why.

Axes: n points, each a layout with a batch and a context.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.cost_gemm import shard_width
from helicube.planner.layouts import LayoutArrays
from helicube.planner.point import ranks_of
from helicube.planner.setting import Setting

__all__ = ["outside_range", "range_remarks"]

# Head sizes of the attention tables that the fits use (fit_kernels.py).
_HEAD_SIZES = (64, 128)


def _checks(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> list[tuple[str, NDArray[np.bool_]]]:
    if s.gpu.range is None:
        return []
    r, f, a = s.gpu.range, s.model.ffn, s.model.attention
    tokens = ceil_div(batch, x.pp)
    local = ceil_div(tokens, x.dp)
    ranks = ranks_of(x)
    shard = context / x.kvp
    widest = np.maximum(x.kvp * x.tpa, np.maximum(x.dp, x.tpf * x.ep))
    output = ceil_div(a.num_query_heads * a.v_head_size, ranks.output)
    experts = shard_width(f.expert_size, x.tpf, s.formats.experts) if f.is_moe else np.full(len(x), np.inf)
    dense = np.full(len(x), np.inf)
    for size, apart in ((f.dense_size, False), (f.shared_size, True)):
        if size:
            shards = np.where(apart & (x.dp > 1), 1.0, ranks.ffn)
            dense = np.minimum(dense, shard_width(size, shards, s.formats.ffn))
    return [
        (f"more than {r.max_cached_tokens:,} cached tokens per GPU and sequence", shard > r.max_cached_tokens),
        (f"more than {r.max_sequences} sequences per GPU", local > r.max_sequences),
        (f"more than {r.max_rows} tokens in one FFN", tokens > r.max_rows),
        (f"collectives over more than the {r.max_ranks} GPUs measured", widest > r.max_ranks),
        (f"expert shards of fewer than {r.min_expert_columns} columns", experts < r.min_expert_columns),
        (f"a W_O shard of fewer than {r.min_inner} rows", output < r.min_inner),
        (f"a dense or shared FFN shard of fewer than {r.min_inner} columns", dense < r.min_inner),
        ("a KV-parallel exchange by a fused kernel, assumed and not measured", (x.kvp > 1) & s.gpu.fused_moves),
        ("a head size that was not measured", np.full(len(x), not a.is_mla and a.qk_head_size not in _HEAD_SIZES)),
        ("an fp4 cache, which was not measured", np.full(len(x), s.formats.cache == "fp4")),
        ("a GPU without kernel tables of its own", np.full(len(x), s.gpu.name != s.hardware.name)),
    ]


def outside_range(s: Setting, x: LayoutArrays, batch: Array, context: Number) -> NDArray[np.bool_]:
    """(n,) true where some time is extrapolated."""
    checks = [mask for _, mask in _checks(s, x, batch, context)]
    return np.asarray(np.logical_or.reduce(checks)) if checks else np.zeros(len(x), dtype=np.bool_)


def range_remarks(s: Setting, x: LayoutArrays, batch: Array, context: Number) -> list[str]:
    """What is extrapolated at any of the points."""
    return [text for text, mask in _checks(s, x, batch, context) if np.any(mask)]
