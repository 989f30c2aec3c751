"""Time of the routed experts of one layer on the busiest GPU."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number, combine
from helicube.planner.constants import MoeConstants
from helicube.planner.cost_gemm import FORMAT_BYTES, GEMM_MATH
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import FfnSpec

# Expected maximum of 1, 2, 4 … 512 standard normal values.
_EXPECTED_MAXIMUM = (0.0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5946, 2.8269, 3.0439)

__all__ = ["distinct_experts", "hot_rank_load", "moe_time"]


def distinct_experts(experts: Number, load: Number, spread: float) -> Array:
    """Expected number of experts that get at least one token.

    If the popularity of an expert follows a gamma law of shape `spread` with mean 1, the tokens it gets are negative
    binomial, and P(none) = (1 + load/spread)^−spread. spread → ∞ gives the even case, 1 − e^−load.

    Args:
        experts: experts looked at.
        load: mean tokens per expert.
        spread: shape of the gamma law.
    """
    return experts * -np.expm1(-spread * np.log1p(np.divide(load, spread)))


def hot_rank_load(num_experts: int, ep: Number, spread: float) -> Array:
    """Load of the busiest expert-parallel rank over the mean load.

    A rank holds E/EP experts, so that its load follows a gamma law of shape k = spread·E/EP; the Wilson–Hilferty cube
    turns the expected maximum of EP standard normal values into that of EP such loads.
    """
    ranks = np.maximum(ep, 1.0)
    deviations = np.interp(np.log2(ranks), np.arange(len(_EXPECTED_MAXIMUM)), _EXPECTED_MAXIMUM)
    small = ranks * (1.0 / (9.0 * spread * num_experts))
    cube = 1.0 - small + deviations * np.sqrt(small)
    return np.where(ranks > 1.0, cube * cube * cube, 1.0)


def moe_time(hardware: HardwareSpec, c: MoeConstants, f: FfnSpec, fmt: str, *, hidden: int, tokens: Number, tpf: Number,
             ep: Number) -> Array:  # fmt: skip
    """Seconds of the routed experts of one layer without the launch.

    Args:
        hardware: peaks.
        c: fitted shares of them.
        f: sizes of the experts.
        fmt: weight format.
        hidden: H.
        tokens: tokens of the whole pool.
        tpf: ranks that split an expert.
        ep: groups that split the experts.
    """
    hot = hot_rank_load(f.num_experts, ep, c.spread)
    routed = np.multiply(tokens, float(f.top_k)) / ep
    local = f.num_experts / np.asarray(ep, dtype=np.float64)
    hit = distinct_experts(local, routed * hot / local, c.spread)
    # A single token hits top_k experts, all different; a rank with any token reads at least one.
    hit = np.minimum(local, np.maximum(hit, np.minimum(routed, 1.0)))
    width = 3.0 * hidden * np.ceil(f.expert_size / np.asarray(tpf, dtype=np.float64))
    math = GEMM_MATH[fmt] if hardware.flops(GEMM_MATH[fmt]) else "bf16"
    read = hit * width * (FORMAT_BYTES[fmt] * c.serving_scale / (hardware.hbm_bytes_per_s * c.hbm_efficiency))
    flops = width * routed * hot * (2.0 * c.serving_scale / (hardware.flops(math) * c.math_efficiency))
    return combine(read, flops) + routed * (4.0 * hidden * c.token_passes / hardware.hbm_bytes_per_s)
