"""Time of one decode step, phase by phase, for many layouts at once.

Axes: n points, each a layout with a batch and a context. Phases are seconds of the whole step, all layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.cost_attention import attention_time, linear_attention_time
from helicube.planner.cost_collective import all_reduce_time, move_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.cost_moe import moe_time
from helicube.planner.cost_small import elementwise_time, launch_time, sampling_time
from helicube.planner.layouts import LayoutArrays
from helicube.planner.setting import Setting

__all__ = ["CATEGORIES", "PHASES", "decode_phases", "total_time"]

# Phase → what limits it.
CATEGORIES = {
    "qkv": "weights",
    "attention": "cache",
    "exchange": "links",
    "output": "weights",
    "attention_reduce": "links",
    "ffn": "weights",
    "experts": "weights",
    "ffn_reduce": "links",
    "norms": "weights",
    "head": "weights",
    "pipeline": "links",
    "kernels": "launches",
    "host": "launches",
}
PHASES = tuple(CATEGORIES)
_HOP_B_PARTS = (2, 4, 8, 16)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
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


def _point(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> _Point:
    tokens = ceil_div(batch, x.pp)
    pool = x.dp * x.kvp * x.tpa
    medha, dcp = x.is_family("medha"), x.is_family("dcp")
    shards_output = np.where(medha | (x.dp > 1), x.tpa, x.kvp * x.tpa)
    return _Point(
        s=s,
        x=x,
        tokens=tokens,
        local=ceil_div(tokens, x.dp),
        context=np.broadcast_to(np.asarray(context, dtype=np.float64), tokens.shape),
        ffn_ranks=np.where(medha, x.tpa, pool),
        shards_output=shards_output,
        qkv_ranks=np.where(dcp, x.kvp * x.tpa, x.tpa),
    )


def _projections(p: _Point) -> tuple[Array, Array, int]:
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


def _attention(p: _Point) -> tuple[Array, Array]:
    """Attention of (one full layer, one windowed layer)."""
    s, a = p.s, p.s.model.attention
    heads, kv = ceil_div(a.num_query_heads, p.x.tpa), ceil_div(a.num_kv_heads, p.x.tpa)
    element = s.formats.cache_element_bytes

    def call(tokens: Number) -> Array:
        return s.engine.attention_scale * attention_time(
            s.hardware, s.attention_constants, a, batch=p.local, heads=heads, kv_heads=kv, tokens=tokens,
            cache_bytes=element,
        )  # fmt: skip

    attended = np.minimum(p.context, a.index_top_k) if a.index_heads else p.context
    full = call(attended / p.x.kvp)
    if a.index_heads:
        keys = p.local * (p.context / p.x.kvp) * (a.index_head_size * 1.0)
        full = full + keys / (s.hardware.hbm_bytes_per_s * s.attention_constants.hbm_efficiency)
    windowed = call(np.minimum(p.context, a.window) / p.x.kvp) if s.model.num_window_layers else np.zeros_like(full)
    return full, windowed


def _exchange(p: _Point) -> tuple[Array, Array]:
    """Exchange of partial outputs in a KVP group, one layer: (latency and volume, volume alone)."""
    x, a = p.x, p.s.model.attention
    width = a.kv_lora_rank if a.is_mla else a.v_head_size
    heads = ceil_div(a.num_query_heads, x.tpa)
    # 16-bit partial outputs and one float32 LSE for each head.
    row = p.local * heads * (2.0 * width + 4.0)
    helix = p.move("alltoall", x.kvp, row * (x.kvp - 1) / x.kvp)
    if not np.any(x.is_family("medha") | x.is_family("dcp")):
        return helix, p.move("alltoall", x.kvp, np.zeros_like(row))
    medha = p.move("all_gather", x.kvp, row * (x.kvp - 1))
    query = 2.0 * ((a.kv_lora_rank + a.rope_head_size) if a.is_mla else a.qk_head_size)
    dcp = (
        p.move("all_gather", x.kvp, p.local * heads * query * (x.kvp - 1) / x.kvp)
        + p.move("all_gather", x.kvp, p.local * heads * 4.0 * (x.kvp - 1))
        + p.move("reduce_scatter", x.kvp, p.local * heads * (2.0 * width) * (x.kvp - 1) / x.kvp)
    )
    total = np.where(x.is_family("medha"), medha, np.where(x.is_family("dcp"), dcp, helix))
    return total, p.move("alltoall", x.kvp, np.zeros_like(row))


def _hop_b(p: _Point, attention: Array, exchange: Array, latency: Array) -> Array:
    """Exposed exchange when P parts of the batch overlap: min over P of c + x + (P−1)·max(c, x) − attention.

    Source: Helix paper, HOP-B. Each part pays its own launch and latency, so that more parts are not always better.
    """
    volume = exchange - latency
    best = exchange
    for parts in _HOP_B_PARTS:
        c = attention / parts + p.s.engine.attention_s
        x = volume / parts + latency
        overlapped = c + x + (parts - 1) * np.maximum(c, x) - p.s.engine.attention_s - attention
        best = np.where(p.local >= parts, np.minimum(best, overlapped), best)
    return np.where(p.x.overlap, best, exchange)


def _ffn(p: _Point) -> tuple[Array, Array, Array, Array]:
    """(dense layer, shared experts and router of a MoE layer, routed experts, collectives of a MoE layer)."""
    s, f, h, x = p.s, p.s.model.ffn, p.s.model.hidden_size, p.x
    zero = np.zeros_like(p.tokens)
    dense = zero
    if f.num_dense_layers:
        width = ceil_div(f.dense_size, p.ffn_ranks)
        dense = p.gemm(s.formats.ffn, p.tokens, 2 * width, h) + p.gemm(s.formats.ffn, p.tokens, h, width)
    if not f.is_moe:
        return dense, zero, zero, zero
    shared = p.gemm("bf16", p.local, float(f.num_experts), h)
    if f.shared_size:
        # Data-parallel attention keeps a copy of the shared expert beside each; the others split it over the pool.
        alone = x.dp > 1
        width, rows = (
            np.where(alone, f.shared_size, ceil_div(f.shared_size, p.ffn_ranks)),
            np.where(alone, p.local, p.tokens),
        )
        shared = shared + p.gemm(s.formats.ffn, rows, 2 * width, h) + p.gemm(s.formats.ffn, rows, h, width)
    constants = s.gpu.moe[s.formats.experts]
    routed = moe_time(s.hardware, constants, f, s.formats.experts, hidden=h, tokens=p.tokens, tpf=x.tpf, ep=x.ep)
    return dense, shared, routed, _moe_collective(p)


def _moe_collective(p: _Point) -> Array:
    """Collectives of one MoE layer: the cheaper of all-reduce over the pool and TPF all-reduce with EP all-gather; with
    data-parallel attention, gather and scatter of the tokens."""
    x, h = p.x, p.s.model.hidden_size
    pool = p.reduce(x.tpf * x.ep, p.tokens)
    grid = p.reduce(x.tpf, p.tokens) + p.move("all_gather", x.ep, p.tokens * (2.0 * h) * (x.ep - 1))
    best = np.minimum(pool, np.where(x.ep > 1, grid, np.inf))
    if not np.any(x.dp > 1):
        return best
    moved = p.tokens * (2.0 * h) * (x.dp - 1) / x.dp
    return np.where(x.dp > 1, p.move("all_gather", x.dp, moved) + p.move("reduce_scatter", x.dp, moved), best)


def decode_phases(s: Setting, x: LayoutArrays, batch: Number, context: Number) -> dict[str, Array]:
    """Seconds of each phase of one decode step.

    Args:
        s: model, accelerator, engine, formats.
        x: (n,) layouts.
        batch: (n,) users of the whole pool.
        context: (n,) or scalar, cached tokens per user.

    Returns:
        (n,) seconds by phase; their sum is the token-to-token latency.
    """
    p, m, e = _point(s, x, batch, context), s.model, s.engine
    softmax, full, windowed, linear = m.num_softmax_layers, m.num_full_layers, m.num_window_layers, m.num_linear_layers
    qkv, output, launches = _projections(p)
    attend, window = _attention(p)
    exposed = np.zeros_like(p.tokens)
    if np.any(x.kvp > 1):
        exchange, latency = _exchange(p)
        exposed = full * _hop_b(p, attend, exchange, latency)
        if windowed:
            exposed = exposed + windowed * _hop_b(p, window, exchange, latency)
    dense, shared, routed, moe_reduce = _ffn(p)
    nd, nm = m.ffn.num_dense_layers, m.num_moe_layers
    phases = {
        "qkv": softmax * qkv,
        "attention": full * attend + windowed * window,
        "exchange": exposed,
        "output": softmax * output,
        "attention_reduce": m.num_layers * p.reduce(p.shards_output, p.local),
        "ffn": nd * dense + nm * shared,
        "experts": nm * routed,
        "ffn_reduce": nd * p.reduce(p.ffn_ranks, p.tokens) + nm * moe_reduce,
        "norms": m.num_layers * elementwise_time(s.hardware, p.local, m.hidden_size),
        "head": p.gemm(s.formats.head, p.local, ceil_div(m.vocab_size, p.ffn_ranks), m.hidden_size)
        + sampling_time(s.hardware, p.local, m.vocab_size),
        "pipeline": np.zeros_like(p.tokens),
    }
    if m.attention.qk_norm_full:
        # A norm over all heads sums two values per token across the ranks that split the heads.
        sums = all_reduce_time(s.hardware, s.gpu, e, p.qkv_ranks, p.local * 8.0)
        phases["attention_reduce"] = phases["attention_reduce"] + softmax * sums
    if linear:
        _add_linear(p, phases)
    _add_launches(p, phases, launches)
    _add_pipeline(p, phases)
    host = e.step_s + e.request_s * np.asarray(batch) / x.dp
    if not s.graphs:
        host = host + launch_time(e, total_time(phases), m.num_layers)
    phases["host"] = np.zeros_like(p.tokens) + host
    return phases


def total_time(phases: dict[str, Array]) -> Array:
    """(n,) token-to-token latency: the sum of the phases."""
    first, *rest = phases.values()
    total = first
    for seconds in rest:
        total = total + seconds
    return total


def _add_linear(p: _Point, phases: dict[str, Array]) -> None:
    """Add the projections and the state of linear-attention layers."""
    m, a = p.s.model, p.s.model.linear
    assert a is not None, "ModelSpec checks that linear layers have sizes"
    ranks = p.x.kvp * p.x.tpa
    keys, values = a.num_key_heads * a.key_head_size, a.num_value_heads * a.value_head_size
    fmt = p.s.formats.attention
    phases["qkv"] = phases["qkv"] + m.num_linear_layers * p.gemm(
        fmt, p.local, (2 * keys + 2 * values) / ranks, m.hidden_size
    )
    phases["output"] = phases["output"] + m.num_linear_layers * p.gemm(fmt, p.local, m.hidden_size, values / ranks)
    state = linear_attention_time(p.s.hardware, a, p.local, ranks)
    phases["attention"] = phases["attention"] + m.num_linear_layers * state


def _add_launches(p: _Point, phases: dict[str, Array], attention_gemms: int) -> None:
    """Add the fixed times of all kernels of a step."""
    m, e = p.s.model, p.s.engine
    gemms = m.num_softmax_layers * attention_gemms + 2 * m.num_linear_layers + 2 * m.ffn.num_dense_layers + 1
    gemms += m.num_moe_layers * (3 if m.ffn.shared_size else 1)
    fixed = gemms * e.gemm_s + m.num_softmax_layers * e.attention_s + m.num_layers * e.layer_s
    fixed += m.num_moe_layers * e.moe_s.get(p.s.gpu.generation, 0.0) + m.num_linear_layers * e.linear_s
    if m.attention.qk_norm:
        fixed += m.num_softmax_layers * e.qk_norm_s
    phases["kernels"] = np.zeros_like(p.tokens) + fixed


def _add_pipeline(p: _Point, phases: dict[str, Array]) -> None:
    """Scale to the slowest stage, and add the sends between stages."""
    pp = p.x.pp
    if not np.any(pp > 1):
        return
    layers = p.s.model.num_layers
    uneven = ceil_div(layers, pp) * pp / layers
    for name, value in phases.items():
        if name not in {"head", "pipeline"}:
            phases[name] = value * uneven
    # A point-to-point send costs the latency and volume of a two-rank all-gather.
    send = p.move("all_gather", np.full_like(pp, 2.0), p.local * (2.0 * p.s.model.hidden_size))
    phases["pipeline"] = (pp - 1) * send
