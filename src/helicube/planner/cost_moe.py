"""Time of the routed experts of one layer on the busiest GPU."""

from __future__ import annotations

from functools import cache
from math import ceil, lgamma

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array, Number, combine
from helicube.planner.constants import MoeConstants
from helicube.planner.cost_gemm import FORMAT_BYTES, GEMM_MATH, shard_width
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import FfnSpec

# Expected maximum of 1, 2, 4 … 512 standard normal values.
_EXPECTED_MAXIMUM = (0.0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5946, 2.8269, 3.0439)

__all__ = ["busiest_experts", "hit_share", "hot_rank_load", "moe_time"]


def hit_share(experts: int, top_k: int, tokens: Number, spread: float) -> Array:
    """Probability that an expert gets at least one of `tokens` tokens, each of which picks `top_k` different experts.

    Popularity follows a gamma law of shape `spread`, so that P(none) = (1 + tokens/c)^−spread; c is such that one token
    hits top_k experts exactly. spread → ∞ gives the even case, 1 − (1 − top_k/experts)^tokens.
    """
    if top_k >= experts:
        return np.minimum(1.0, np.asarray(tokens, dtype=np.float64))
    scale = float(np.expm1(-np.log1p(-top_k / experts) / spread))
    return -np.expm1(-spread * np.log1p(np.multiply(tokens, scale)))


# Shares at which the busiest rank is tabulated; between them it is interpolated.
_SHARES = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 200)])


@cache
def _busiest(local: int, ranks: int) -> NDArray[np.float64]:
    """(shares,) expected maximum of `ranks` binomial counts out of `local` experts: Σ_j 1 − F(j)^ranks."""
    hits = np.arange(local + 1)
    ways = np.array([lgamma(local + 1) - lgamma(j + 1) - lgamma(local - j + 1) for j in hits])
    inner = _SHARES[1:-1, None]
    mass = np.exp(ways + hits * np.log(inner) + (local - hits) * np.log1p(-inner))
    below = np.minimum(1.0, np.cumsum(mass, axis=1)[:, :-1])
    return np.concatenate([[0.0], np.sum(1.0 - below**ranks, axis=1), [float(local)]])


def busiest_experts(num_experts: int, ep: Number, share: Array) -> Array:
    """Expected distinct experts that the busiest expert-parallel rank reads.

    Experts are hit independently with probability `share`, whatever their popularity, so that a rank of E/EP experts
    hits a binomial number of them; the maximum over EP such numbers counts, at least one where any is hit.

    Args:
        num_experts: E.
        ep: (n,) ranks that split them.
        share: (..., n) from :func:`hit_share`.
    """
    widths = np.asarray(ep, dtype=np.float64)
    shape = np.broadcast_shapes(widths.shape, np.shape(share))
    mean = np.asarray(share, dtype=np.float64) * num_experts
    if widths.ndim == 2 and widths.shape[1] == 1 and len(share) == 1:
        # A grid: every layout of one width shares a row.
        rows = {ranks: _busiest_of(num_experts, ranks, share[0], mean[0]) for ranks in np.unique(widths).tolist()}
        return np.stack([rows[ranks] for ranks in widths[:, 0].tolist()])
    wide, share = np.broadcast_to(widths, shape), np.broadcast_to(share, shape)
    found = np.array(np.broadcast_to(mean, shape))
    for ranks in np.unique(widths).tolist():
        here = wide == ranks
        found[here] = _busiest_of(num_experts, ranks, share[here], found[here])
    return found


def _busiest_of(num_experts: int, ranks: float, share: Array, mean: Array) -> Array:
    """The same for one width; `mean` experts are hit over all ranks."""
    if ranks <= 1:
        return mean
    busiest = np.interp(share, _SHARES, _busiest(ceil(num_experts / ranks), int(ranks)))
    return np.maximum(busiest, np.minimum(1.0, mean))


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
    hit = busiest_experts(f.num_experts, ep, hit_share(f.num_experts, f.top_k, tokens, c.spread))
    # Each expert that is hit has a token at least: chance alone loads the busiest rank of few tokens.
    busiest = np.maximum(routed * hot, hit)
    width = 3.0 * hidden * shard_width(f.expert_size, tpf, fmt)
    math = GEMM_MATH[fmt] if hardware.flops(GEMM_MATH[fmt]) else "bf16"
    read = hit * width * (FORMAT_BYTES[fmt] * c.serving_scale / (hardware.hbm_bytes_per_s * c.hbm_efficiency))
    flops = width * busiest * (2.0 * c.serving_scale / (hardware.flops(math) * c.math_efficiency))
    return combine(read, flops) + busiest * (4.0 * hidden * c.token_passes / hardware.hbm_bytes_per_s)
