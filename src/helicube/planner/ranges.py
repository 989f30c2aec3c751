"""Which points lie outside the range that the constants were fitted on, and why.

Axes: n points, each a layout with a batch and a context.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.layouts import LayoutArrays
from helicube.planner.setting import Setting

__all__ = ["outside_range", "range_remarks"]

# Ends of the kernel tables.
_MAX_CACHED_TOKENS = 131072
_MAX_SEQUENCES = 512
_MAX_TOKENS = 512
# Smaller ones are left out of the fits (fit_kernels.py).
_MIN_EXPERT_COLUMNS = 64
_MIN_INNER = 256


def _checks(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> list[tuple[str, NDArray[np.bool_]]]:
    tokens = ceil_div(batch, x.pp)
    local = ceil_div(tokens, x.dp)
    shard = np.asarray(context) / x.kvp
    widest = np.maximum(x.kvp * x.tpa, np.maximum(x.dp, x.tpf * x.ep))
    ranks, f, a = s.gpu.max_ranks, s.model.ffn, s.model.attention
    output = ceil_div(
        a.num_query_heads * a.v_head_size, np.where(x.is_family("medha") | (x.dp > 1), x.tpa, x.kvp * x.tpa)
    )
    experts = ceil_div(f.expert_size, x.tpf) if f.is_moe else np.full(len(x), np.inf)
    size = s.model.attention.qk_head_size
    return [
        (f"more than {_MAX_CACHED_TOKENS:,} cached tokens per GPU and sequence", shard > _MAX_CACHED_TOKENS + 1),
        (f"more than {_MAX_SEQUENCES} sequences per GPU", local > _MAX_SEQUENCES),
        (f"more than {_MAX_TOKENS} tokens in one FFN", tokens > _MAX_TOKENS),
        (f"collectives over more than the {ranks or 1} GPUs measured", widest > max(ranks, 1)),
        (f"expert shards of fewer than {_MIN_EXPERT_COLUMNS} columns", experts < _MIN_EXPERT_COLUMNS),
        (f"a W_O shard of fewer than {_MIN_INNER} rows", output < _MIN_INNER),
        ("a KV-parallel exchange by a fused kernel, assumed and not measured", (x.kvp > 1) & s.gpu.fused_moves),
        ("a head size that was not measured", np.full(len(x), not s.model.attention.is_mla and size not in {64, 128})),
        ("an fp4 cache, which was not measured", np.full(len(x), s.formats.cache == "fp4")),
        ("a GPU without kernel tables of its own", np.full(len(x), s.gpu.name != s.hardware.name)),
    ]


def outside_range(s: Setting, x: LayoutArrays, batch: Array, context: Number) -> NDArray[np.bool_]:
    """(n,) true where some time is extrapolated."""
    return np.asarray(np.logical_or.reduce([mask for _, mask in _checks(s, x, batch, context)]))


def range_remarks(s: Setting, x: LayoutArrays, batch: Array, context: Number) -> list[str]:
    """What is extrapolated at any of the points."""
    return [text for text, mask in _checks(s, x, batch, context) if np.any(mask)]
