"""The attention phase of one layer: projections, attention over the cache shard, exchange, HOP-B.

Axes: (n,) one value per point; seconds of one layer.
"""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.cost_attention import attention_time
from helicube.planner.cost_small import stream_time
from helicube.planner.point import Point

__all__ = ["attention_times", "exchange_times", "exposed_exchange", "merge_time", "projection_times"]

_HOP_B_PARTS = (2, 4, 8, 16)


def projection_times(p: Point) -> tuple[Array, Array, int]:
    """(QKV, output, GEMM launches) of one softmax-attention layer."""
    a, h, fmt = p.s.model.attention, p.s.model.hidden_size, p.s.formats.attention
    q = ceil_div(a.num_query_heads, p.qkv_ranks)
    out_heads = ceil_div(a.num_query_heads, p.shards_output)
    output = p.gemm(fmt, p.local, h, out_heads * a.v_head_size)
    if not a.is_mla:
        kv = ceil_div(a.num_kv_heads, p.x.tpa)
        columns = q * (a.qk_head_size * (2 if a.output_gate else 1)) + kv * (a.qk_head_size + a.v_head_size)
        return p.gemm(fmt, p.local, columns, h), output, 2
    nope, latent = a.qk_head_size - a.rope_head_size, a.kv_lora_rank
    down = p.gemm(fmt, p.local, a.q_lora_rank + latent + a.rope_head_size, h)
    up = p.gemm(fmt, p.local, q * a.qk_head_size, a.q_lora_rank or h)
    # Absorbed key up-projection before the scores, value up-projection after the merge: small bf16 GEMMs, one per head.
    absorb = p.gemm("bf16", p.local, q * latent, nope)
    values = p.gemm("bf16", p.local, out_heads * a.v_head_size, latent)
    return down + up + absorb, output + values, 5


def attention_times(p: Point, parts: int = 1) -> tuple[Array, Array]:
    """Attention of (one full layer, one windowed layer) for one of `parts` equal parts of the batch."""
    s, a = p.s, p.s.model.attention
    heads, kv = ceil_div(a.num_query_heads, p.x.tpa), ceil_div(a.num_kv_heads, p.x.tpa)
    element = s.formats.cache_stored_bytes

    def call(tokens: Number) -> Array:
        return s.engine.attention_scale * attention_time(
            s.hardware, s.attention_constants, a, batch=p.local / parts, heads=heads, kv_heads=kv, tokens=tokens,
            cache_bytes=element,
        )  # fmt: skip

    attended = np.minimum(p.context, a.index_top_k) if a.index_heads else p.context
    full = call(attended / p.x.kvp)
    if a.index_heads:
        keys = p.local / parts * (p.context / p.x.kvp) * (a.index_head_size * 1.0)
        full = full + keys / (s.hardware.hbm_bytes_per_s * s.attention_constants.hbm_efficiency)
    windowed = call(np.minimum(p.context, a.window) / p.x.kvp) if s.model.num_window_layers else np.zeros(1)
    return full, windowed


def exchange_times(p: Point) -> tuple[Array, Array]:
    """Exchange of partial outputs in a KVP group, one layer: (latency and volume, volume alone)."""
    x, a = p.x, p.s.model.attention
    width = a.kv_lora_rank if a.is_mla else a.v_head_size
    heads = ceil_div(a.num_query_heads, x.tpa)
    # 16-bit partial outputs and one float32 LSE for each head.
    row = p.local * heads * (2.0 * width + 4.0)
    helix = p.move("alltoall", x.kvp, row * (x.kvp - 1) / x.kvp)
    if not np.any(x.is_family("medha") | x.is_family("dcp")):
        return helix, p.move("alltoall", x.kvp, np.zeros(1))
    medha = p.move("all_gather", x.kvp, row * (x.kvp - 1))
    query = 2.0 * ((a.kv_lora_rank + a.rope_head_size) if a.is_mla else a.qk_head_size)
    dcp = (
        p.move("all_gather", x.kvp, p.local * heads * query * (x.kvp - 1) / x.kvp)
        + p.move("all_gather", x.kvp, p.local * heads * 4.0 * (x.kvp - 1))
        + p.move("reduce_scatter", x.kvp, p.local * heads * (2.0 * width) * (x.kvp - 1) / x.kvp)
    )
    total = np.where(x.is_family("medha"), medha, np.where(x.is_family("dcp"), dcp, helix))
    return total, p.move("alltoall", x.kvp, np.zeros(1))


def merge_time(p: Point) -> Array:
    """Merge of partial outputs after the exchange of one layer: a read of them and a write of their sum.

    At the bandwidth of element-wise kernels (assumed); DCP scales its partial outputs before they are summed.
    """
    x, a = p.x, p.s.model.attention
    values = p.local * ceil_div(a.num_query_heads, x.tpa) * (2.0 * (a.kv_lora_rank if a.is_mla else a.v_head_size))
    passes = np.where(x.is_family("medha"), x.kvp + 1.0, np.where(x.is_family("dcp"), 2.0, 1.0 + 1.0 / x.kvp))
    return np.where(x.kvp > 1, stream_time(p.s.hardware, values * passes), 0.0)


def exposed_exchange(p: Point, which: int, exchange: Array, latency: Array) -> Array:
    """Exposed exchange when P parts of the batch overlap: min over P of c + x + (P−1)·max(c, x) − attention.

    Source: Helix paper, HOP-B. Each part pays its own launches, latency and serial walk over the cache, so that more
    parts are not always better. `which`: 0 a full layer, 1 a windowed one.
    """
    if not np.any(p.x.overlap):
        return exchange
    volume = exchange - latency
    best, attention = exchange, attention_times(p)[which]
    for parts in _HOP_B_PARTS:
        c = attention_times(p, parts)[which] + p.s.engine.attention_s + p.s.engine.gemm_s
        x = volume / parts + latency
        overlapped = c + x + (parts - 1) * np.maximum(c, x) - p.s.engine.attention_s - p.s.engine.gemm_s - attention
        best = np.where(p.local >= parts, np.minimum(best, overlapped), best)
    return np.where(p.x.overlap, best, exchange)
