"""Time of one decode step, phase by phase, for many layouts at once.

Axes: n points, each a layout with a batch and a context. Phases are seconds of the whole step, all layers.
"""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number, ceil_div
from helicube.planner.constants import Kind
from helicube.planner.cost_attention import linear_attention_time
from helicube.planner.cost_collective import all_reduce_time
from helicube.planner.cost_small import elementwise_time, launch_time, sampling_time
from helicube.planner.layouts import LayoutArrays
from helicube.planner.point import Point, make_point
from helicube.planner.setting import Setting
from helicube.planner.step_attention import (
    attention_times,
    exchange_times,
    exposed_exchange,
    merge_time,
    projection_times,
)
from helicube.planner.step_ffn import ffn_times

__all__ = ["CATEGORIES", "PHASES", "decode_phases", "phase_kinds", "total_time"]

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


def phase_kinds(s: Setting) -> dict[str, Kind]:
    """Where each phase's time comes from: fitted, assumed (with a constant that no table decides) or bound."""
    if s.kind == "bound":
        return dict.fromkeys(PHASES, "bound")
    found: dict[str, Kind] = dict.fromkeys(PHASES, "fitted")
    # Element-wise kernels at 0.7 of bandwidth, a send as a gather of two ranks, an exchange as one read of all peers.
    found["norms"] = found["pipeline"] = "assumed"
    if s.gpu.fused_moves and s.hardware.link_kind != "pcie":
        found["exchange"] = "assumed"
    if not s.graphs:
        found["host"] = "assumed"
    return found


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
    p = make_point(s, x, batch, context)
    phases, attention_gemms = _layer_phases(p)
    if s.model.num_linear_layers:
        _add_linear(p, phases)
    kernels = _add_launches(p, phases, attention_gemms)
    _add_pipeline(p, phases)
    host = s.engine.step_s + s.engine.request_s * np.asarray(batch) / x.dp
    if not s.graphs:
        host = host + launch_time(kernels, total_time(phases))
    phases["host"] = np.asarray(host, dtype=np.float64)
    return phases


def total_time(phases: dict[str, Array]) -> Array:
    """(n,) token-to-token latency: the sum of the phases."""
    first, *rest = phases.values()
    total = first
    for seconds in rest:
        total = total + seconds
    return total


def _layer_phases(p: Point) -> tuple[dict[str, Array], int]:
    """(seconds of the work of all layers and of the head by phase, GEMM launches of one softmax-attention layer)."""
    s, m = p.s, p.s.model
    qkv, output, launches = projection_times(p)
    attend, window = attention_times(p)
    dense, shared, routed, dense_reduce, moe_reduce = ffn_times(p)
    nd, nm = m.ffn.num_dense_layers, m.num_moe_layers
    vocab = ceil_div(m.vocab_size, p.head_ranks)
    phases = {
        "qkv": m.num_softmax_layers * qkv,
        "attention": m.num_full_layers * attend + m.num_window_layers * window,
        "exchange": _exchange(p),
        "output": m.num_softmax_layers * output,
        "attention_reduce": m.num_layers * p.reduce(p.shards_output, p.local),
        "ffn": nd * dense + nm * shared,
        "experts": nm * routed,
        "ffn_reduce": nd * dense_reduce + nm * moe_reduce,
        "norms": m.num_layers * elementwise_time(s.hardware, p.local, m.hidden_size),
        "head": p.gemm(s.formats.head, p.local, vocab, m.hidden_size)
        + sampling_time(s.hardware, p.local, m.vocab_size),
        "pipeline": np.zeros(1),
    }
    if m.attention.qk_norm_full:
        # A norm over all heads sums two values per token across the ranks that split the heads.
        sums = all_reduce_time(s.hardware, s.gpu, s.engine, p.qkv_ranks, p.local * 8.0)
        phases["attention_reduce"] = phases["attention_reduce"] + m.num_softmax_layers * sums
    return phases, launches


def _exchange(p: Point) -> Array:
    """Exposed exchange and merge of all layers."""
    if not np.any(p.x.kvp > 1):
        return np.zeros(1)
    m = p.s.model
    exchange, latency = exchange_times(p)
    exposed = m.num_full_layers * exposed_exchange(p, 0, exchange, latency)
    if m.num_window_layers:
        exposed = exposed + m.num_window_layers * exposed_exchange(p, 1, exchange, latency)
    return exposed + m.num_softmax_layers * merge_time(p)


def _add_linear(p: Point, phases: dict[str, Array]) -> None:
    """Add the projections and the state of linear-attention layers."""
    m, a = p.s.model, p.s.model.linear
    assert a is not None, "ModelSpec checks that linear layers have sizes"
    ranks = p.shards_output
    keys, values = a.num_key_heads * a.key_head_size, a.num_value_heads * a.value_head_size
    fmt = p.s.formats.attention
    phases["qkv"] = phases["qkv"] + m.num_linear_layers * p.gemm(
        fmt, p.local, (2 * keys + 2 * values) / ranks, m.hidden_size
    )
    phases["output"] = phases["output"] + m.num_linear_layers * p.gemm(fmt, p.local, m.hidden_size, values / ranks)
    state = linear_attention_time(p.s.hardware, a, p.local, ranks)
    phases["attention"] = phases["attention"] + m.num_linear_layers * state


def _add_launches(p: Point, phases: dict[str, Array], attention_gemms: int) -> float:
    """Add the fixed times of all kernels of a step; returns how many kernels it launches."""
    m, e = p.s.model, p.s.engine
    gemms = m.num_softmax_layers * attention_gemms + 2 * m.num_linear_layers + 2 * m.ffn.num_dense_layers + 1
    gemms += m.num_moe_layers * (3 if m.ffn.shared_size else 1)
    fixed = gemms * e.gemm_s + m.num_softmax_layers * e.attention_s + m.num_layers * e.layer_s
    fixed += m.num_moe_layers * e.moe_s.get(p.s.gpu.generation, 0.0) + m.num_linear_layers * e.linear_s
    if m.attention.qk_norm:
        fixed += m.num_softmax_layers * e.qk_norm_s
    # The merge of partial outputs is one more small kernel.
    phases["kernels"] = fixed + np.where(p.x.kvp > 1, m.num_softmax_layers * e.gemm_s, 0.0)
    # Beside its GEMMs a layer launches attention, two norms, rotary, cache write, activation and two collectives; a MoE
    # layer also gating, permutation and its inverse.
    return float(gemms + 8 * m.num_layers + 3 * m.num_moe_layers)


def _add_pipeline(p: Point, phases: dict[str, Array]) -> None:
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
