"""Time of one decode attention call over the cache shard of one GPU."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number, combine
from helicube.planner.constants import AttentionConstants
from helicube.specs.attention import AttentionSpec, LinearAttentionSpec
from helicube.specs.hardware import HardwareSpec

__all__ = ["attention_time", "linear_attention_time"]


def attention_time(hardware: HardwareSpec, c: AttentionConstants, a: AttentionSpec, *, batch: Number, heads: Number,
                   kv_heads: Number, tokens: Number, cache_bytes: float) -> Array:  # fmt: skip
    """Seconds of one decode attention call without its launch; MLA runs with absorbed projections.

    Args:
        hardware: peaks.
        c: fitted shares of them.
        a: sizes of the heads.
        batch: sequences on this GPU.
        heads: query heads on this GPU.
        kv_heads: KV heads on this GPU; ignored for MLA, whose latent is shared.
        tokens: cached tokens per sequence on this GPU, S / KVP.
        cache_bytes: bytes per cached value.
    """
    rows = np.multiply(batch, tokens)
    if a.is_mla:
        values: Number = float(a.cache_values)
        per_token = 2.0 * (2 * a.kv_lora_rank + a.rope_head_size)
        query_bytes = 2.0 * (2 * a.kv_lora_rank + a.rope_head_size)
    else:
        values = np.multiply(kv_heads, float(a.qk_head_size + a.v_head_size))
        per_token = 2.0 * (a.qk_head_size + a.v_head_size)
        query_bytes = 2.0 * (a.qk_head_size + a.v_head_size)
    # fp8 latents are multiplied at twice the bf16 rate; fp8 GQA caches are widened first.
    rate = hardware.bf16_flops * (2.0 if a.is_mla and cache_bytes <= 1 and hardware.fp8_flops else 1.0)
    read = rows * values * (cache_bytes / (hardware.hbm_bytes_per_s * c.hbm_efficiency))
    math = rows * heads * (per_token / (rate * c.math_efficiency))
    query = np.multiply(batch, heads) * (query_bytes * c.query_passes / hardware.hbm_bytes_per_s)
    # A long cache is split among tiles and merged: with the best number of splits both parts grow as its square root.
    split = np.sqrt(tokens)
    if np.isfinite(c.linear_beyond):
        split = split * np.maximum(1.0, np.sqrt(np.multiply(tokens, 1 / c.linear_beyond)))
    return combine(read, math, split * c.split_s) + query


def linear_attention_time(hardware: HardwareSpec, a: LinearAttentionSpec, batch: Number, ranks: Number) -> Array:
    """Seconds of one decode step of a linear-attention layer without its launch: its state is read and written.

    0.6 of peak bandwidth is assumed: no table measures this kernel.
    """
    return np.multiply(batch, 2.0 * a.state_bytes / (0.6 * hardware.hbm_bytes_per_s)) / ranks
