"""Memory of one GPU: weights, cache, activations.

Axes: n points, each a layout with a batch and a context.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.cost_gemm import FORMAT_BYTES, shard_width
from helicube.planner.layouts import LayoutArrays
from helicube.planner.point import ranks_of
from helicube.planner.setting import Setting

__all__ = ["USABLE_SHARE", "Memory", "memory_of", "weight_bytes"]

# Engines leave a tenth to the driver, communication buffers, graphs and fragments (vLLM's gpu_memory_utilization and
# TensorRT-LLM's free_gpu_memory_fraction are 0.9 by default).
USABLE_SHARE = 0.9
# Tokens of the largest step: a chunk of prefill (vLLM's and TensorRT-LLM's default max_num_batched_tokens, 8,192).
_CHUNK_TOKENS = 8192.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes on the fullest GPU, one value per point."""

    weights: Array
    cache: Array
    activations: Array
    capacity: float
    # What weights, cache and activations must fit into: nine tenths of the GPU.

    @property
    def used(self) -> Array:
        """(n,) bytes needed."""
        return self.weights + self.cache + self.activations

    @property
    def free(self) -> Array:
        """(n,) bytes left; negative where the point does not fit."""
        return self.capacity - self.used

    @property
    def fits(self) -> NDArray[np.bool_]:
        """(n,) memory suffices."""
        return np.greater_equal(self.free, 0.0)


def _split(fmt: str, params: int, size: int, ranks: Number) -> Number:
    """Bytes on one rank of an FFN of `params` parameters whose width `size` is split over `ranks`, padding included."""
    return params * FORMAT_BYTES[fmt] / size * shard_width(size, ranks, fmt) if size else 0.0


def weight_bytes(s: Setting, x: LayoutArrays) -> Array:
    """(n,) bytes of weights on one GPU.

    Each is split over the ranks of :func:`ranks_of`, the down-projections of MLA not at all; the fullest pipeline stage
    counts.
    """
    m, f, a = s.model, s.model.ffn, s.model.attention
    h = m.hidden_size
    ranks = ranks_of(x)
    per = FORMAT_BYTES[s.formats.attention]
    attention = (
        m.num_softmax_layers
        * per
        * (a.down_params(h) + (a.qkv_params(h) - a.down_params(h)) / ranks.qkv + a.output_params(h) / ranks.output)
    )
    small = m.num_softmax_layers * 2.0 * a.small_params(h)
    if m.linear:
        attention = attention + m.num_linear_layers * per * m.linear.params(h) / ranks.output
    dense = f.num_dense_layers * _split(s.formats.ffn, f.dense_params(h), f.dense_size, ranks.ffn)
    experts = m.num_moe_layers * f.num_experts / x.ep
    experts = experts * _split(s.formats.experts, f.expert_params(h), f.expert_size, x.tpf)
    shared_ranks = np.where(x.dp > 1, 1.0, ranks.ffn)
    shared = m.num_moe_layers * (
        _split(s.formats.ffn, f.shared_params(h), f.shared_size, shared_ranks) + 2.0 * f.router_params(h)
    )
    embeddings = m.vocab_size * h * (2.0 if m.tied_embeddings else 2.0 + FORMAT_BYTES[s.formats.head]) / ranks.head
    layers = attention + small + dense + experts + shared
    stage = ceil_div(m.num_layers, x.pp) / m.num_layers
    return layers * stage + embeddings + 2.0 * m.idle_params / ranks.ffn


def cache_bytes(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> Array:
    """(n,) bytes of cache on one GPU: sequences of its copy of attention, their tokens over KVP, KV heads over TPA."""
    m, a = s.model, s.model.attention
    sequences = ceil_div(ceil_div(batch, x.pp), x.dp) * x.pp
    heads = ceil_div(a.num_kv_heads, x.tpa) / a.num_kv_heads
    per_token = (a.cache_values * heads + a.index_head_size) * s.formats.cache_stored_bytes
    # The round-robin blocks of KVP differ by one block at the most, which the tenth that stays free covers.
    tokens = m.num_full_layers * np.asarray(context, dtype=np.float64)
    windowed = (
        m.num_window_layers * np.minimum(context, a.window) * (a.cache_values * heads) * s.formats.cache_stored_bytes
    )
    total = tokens * per_token + windowed
    states = m.linear.state_bytes * m.num_linear_layers / ranks_of(x).output if m.linear else 0.0
    return sequences * (total / x.kvp + states) / x.pp


def memory_of(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> Memory:
    """Memory of n points.

    Args:
        s: model, accelerator, formats.
        x: (n,) layouts.
        batch: (n,) users of the whole pool.
        context: (n,) or scalar, cached tokens per user.
    """
    m = s.model
    tokens = ceil_div(batch, x.pp)
    # Double-buffered rows of H, gate and up of the widest part (all live at once, unfused), and float32 logits.
    widest = max(
        m.attention.num_query_heads * m.attention.qk_head_size, m.ffn.dense_size, m.ffn.top_k * m.ffn.expert_size
    )
    ranks = ranks_of(x)
    rows = 4.0 * m.hidden_size + 2.0 * widest / np.minimum(ranks.output, ranks.ffn)
    chunk = np.minimum(_CHUNK_TOKENS, np.asarray(context, dtype=np.float64))
    activations = np.maximum(tokens, chunk) * (2.0 * rows) + tokens * (4.0 * m.vocab_size) / ranks.head
    return Memory(
        weights=weight_bytes(s, x),
        cache=cache_bytes(s, x, batch, context),
        activations=activations,
        capacity=s.hardware.hbm_bytes * USABLE_SHARE,
    )
