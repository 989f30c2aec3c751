"""Time to prefill a prompt: compute-bound work that is shared with decode steps."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number
from helicube.planner.cost_collective import all_reduce_time, move_time
from helicube.planner.cost_gemm import GEMM_MATH
from helicube.planner.cost_small import elementwise_time
from helicube.planner.layouts import LayoutArrays
from helicube.planner.setting import Setting

__all__ = ["prefill_time"]

# Share of peak bf16 FLOP/s of a prefill attention kernel (assumed: FlashAttention-3 and its successor for Blackwell
# reach more on long prompts, less on short ones).
_ATTENTION_EFFICIENCY = 0.45
# Tokens of one chunk: the default of vLLM, SGLang and TensorRT-LLM lies between 2,048 and 8,192.
_CHUNK = 4096.0


def _rate(s: Setting, fmt: str, *, experts: bool = False) -> float:
    """Effective FLOP/s of GEMMs in one format."""
    shares = s.engine.prefill_efficiency
    math = GEMM_MATH[fmt]
    if not s.hardware.flops(math):
        math, fmt = "bf16", "bf16"
    return s.hardware.flops(math) * shares[fmt] * (shares["moe"] if experts else 1.0)


def prefill_time(s: Setting, x: LayoutArrays, prompt: Number) -> Array:
    """(n,) seconds for which one prompt occupies the pool, when each copy of attention and each stage has one.

    A prompt alone takes that times dp · pp: it passes all stages, and the other copies idle.

    Args:
        s: model, accelerator, engine, formats.
        x: (n,) layouts.
        prompt: (n,) or scalar, tokens.
    """
    m, f, a = s.model, s.model.ffn, s.model.attention
    one = x.kvp * x.tpa
    ranks = x.dp * one
    routed = m.num_moe_layers * f.top_k * f.expert_params(m.hidden_size) if f.is_moe else 0
    rest = m.num_active_params - routed - m.vocab_size * m.hidden_size
    tokens = np.asarray(prompt, dtype=np.float64)
    work = tokens * (
        2.0 * rest / _rate(s, s.formats.attention) + 2.0 * routed / _rate(s, s.formats.experts, experts=True)
    )
    per_pair = a.num_query_heads * (a.qk_head_size + a.v_head_size)
    # Causal: half of all pairs, two FLOPs each for scores and for the weighted sum.
    pairs = m.num_full_layers * np.square(tokens) + m.num_window_layers * 2.0 * a.window * tokens
    work = work + pairs * (per_pair / (s.hardware.bf16_flops * _ATTENTION_EFFICIENCY))
    if m.linear:
        channels = m.num_linear_layers * m.linear.num_value_heads * m.linear.value_head_size
        work = work + tokens * (channels * s.engine.linear_prefill_s)
    chunk = np.minimum(tokens, _CHUNK)
    reduce = all_reduce_time(s.hardware, s.gpu, s.engine, ranks, chunk * (2.0 * m.hidden_size))
    moved = 2.0 * reduce * tokens / chunk + elementwise_time(s.hardware, tokens, m.hidden_size)
    if np.any(x.kvp > 1):
        # A chunk attends to earlier ones, on all ranks: its partial outputs cross the KVP group as in a decode step,
        # or the earlier cache is gathered (vLLM), whichever is less.
        earlier = np.maximum(tokens - chunk, 0.0) / 2.0 * s.formats.cache_stored_bytes * a.cache_values
        partial = chunk * a.num_query_heads * (2.0 * a.v_head_size + 4.0)
        row = np.minimum(earlier, partial) / x.tpa * (x.kvp - 1) / x.kvp
        swap = move_time(s.hardware, s.gpu, s.engine, "alltoall", ranks=x.kvp, received_bytes=row)
        moved = moved + np.where(row > 0, swap, 0.0) * tokens / chunk
    # Prefill runs without a captured graph: launches bound short prompts.
    return np.hypot(work / ranks + m.num_layers * moved, m.num_layers * s.engine.prefill_layer_s) / x.pp
