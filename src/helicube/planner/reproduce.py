"""The Helix paper's three claims, as this planner sees them, with a band over what is uncertain.

Source of the claims: arXiv 2507.07120, GB200 NVL72, up to 64 GPUs, fp4 weights, cache and arithmetic, 10⁶ tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from helicube.planner.arrays import Array
from helicube.planner.layouts import FAMILIES, LayoutArrays, enumerate_layouts
from helicube.planner.pareto import best_throughput_at, frontier
from helicube.planner.point import make_point
from helicube.planner.reproduce_variants import variants
from helicube.planner.search import Points, default_batches, evaluate, search
from helicube.planner.setting import Setting, make_setting, uniform_formats
from helicube.planner.step_attention import attention_times, exchange_times
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

__all__ = ["BASELINES", "CLAIMS", "MAX_GPUS", "Claim", "Outcome", "claim_setting", "outcome_of", "reproduce"]

CONTEXT = 10**6
MAX_GPUS = 64
BASELINES = ("tp", "pp", "dp", "medha")
# What the paper compares with. Its Medha ties the whole FFN to TPA, so that experts are not spread over KV ranks.


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What the paper reports for a model."""

    model: str
    interactivity: float
    # Best tokens/s/user of Helix over best of the baselines.
    users: float
    # Users at the same latency, at the most.
    hop_b_loss: float
    # Loss when HOP-B is off.


CLAIMS = (
    Claim(model="deepseek-r1", interactivity=1.5, users=32.0, hop_b_loss=0.01),
    Claim(model="llama-3.1-405b", interactivity=1.13, users=4.0, hop_b_loss=0.12),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The three ratios of one variant."""

    name: str
    interactivity: float
    users: float
    # Largest ratio of tokens/s/GPU at one latency.
    users_at_ttl_ms: float
    # Latency at which it is largest.
    hop_b_loss: float
    # Largest loss of tokens/s/user on the frontier when its layouts run without the overlap.
    hop_b_per_request: float
    # Median loss on the frontier if each request paid an exchange of its own, as in the paper's example.
    helix: str
    baseline: str
    # Fastest layouts.


def claim_setting(model: str, engine: str = "trtllm") -> Setting:
    """The paper's scene: GB200, everything in fp4."""
    spec = get_model(model)
    return make_setting(spec, load_hardware("gb200"), engine=engine, formats=uniform_formats(spec, "fp4", "fp4"))


def _hop_b_loss(s: Setting, helix: Points) -> float:
    """Largest loss of tokens/s/user on the frontier when its layouts run without the overlap, batch unchanged."""
    front = frontier(helix)
    front = front.where(front.layouts.overlap)
    if not len(front):
        return 0.0
    plain = replace(front.layouts, overlap=np.zeros(len(front), dtype=np.bool_))
    without = evaluate(s, plain, front.batch, CONTEXT)
    return float(np.max(1.0 - front.ttl_s / without.ttl_s))


def _hop_b_per_request(s: Setting, helix: Points) -> float:
    """Median loss on the frontier of batches without overlap, by the accounting of the paper's example.

    There B requests without overlap take B·(c + x), each with an exchange of its own instead of one for the batch; with
    it c + x + (B − 1)·max(c, x).
    """
    front = frontier(helix.where(~helix.layouts.overlap))
    front = front.where((front.layouts.kvp > 1) & (front.batch > 1))
    if not len(front):
        return 0.0
    x, layers = front.layouts, s.model.num_layers
    point = make_point(s, x, front.batch, CONTEXT)
    attention, batched = attention_times(point)[0], exchange_times(point)[0]
    one = exchange_times(make_point(s, x, np.ones(len(front)), CONTEXT))[0]
    compute = attention / front.batch
    rest: Array = front.ttl_s - layers * (attention + batched)
    off = rest + layers * front.batch * (compute + one)
    on = rest + layers * (compute + one + (front.batch - 1.0) * np.maximum(compute, one))
    return float(np.median(1.0 - on / off))


def _of_families(points: Points, names: Sequence[str], *, spread_experts: bool) -> Points:
    x = points.layouts
    mask = np.isin(x.family, [FAMILIES.index(name) for name in names])
    return points.where(mask if spread_experts else mask & ~(x.is_family("medha") & (x.ep > 1)))


def outcome_of(name: str, s: Setting, *, baselines: Sequence[str] = BASELINES, spread_experts: bool = False,
               layouts: LayoutArrays | None = None, batch_step: float = 1.1) -> Outcome:  # fmt: skip
    """The three ratios under one setting.

    Args:
        name: of the variant.
        s: the setting.
        baselines: families that Helix is compared with.
        spread_experts: Medha may spread experts over its KV ranks, which the paper's does not.
        layouts: (l,) layouts to search; all of up to 64 GPUs by default.
        batch_step: largest ratio of neighbouring batches.
    """
    grid = enumerate_layouts(s.model, MAX_GPUS) if layouts is None else layouts
    points = search(s, grid, CONTEXT, default_batches(step=batch_step))
    # Helix with KVP = 1 is tensor parallelism with TPA ≤ K, which both sides may use.
    helix = _of_families(points, ("helix", "tp"), spread_experts=False)
    base = _of_families(points, baselines, spread_experts=spread_experts)
    i, j = int(np.argmin(helix.ttl_s)), int(np.argmin(base.ttl_s))
    speeds = frontier(base).tokens_per_s_user
    ratio = best_throughput_at(helix, speeds) / best_throughput_at(base, speeds)
    k = int(np.argmax(ratio))
    return Outcome(
        name=name, interactivity=float(base.ttl_s[j] / helix.ttl_s[i]), users=float(ratio[k]),
        users_at_ttl_ms=float(1e3 / speeds[k]), hop_b_loss=_hop_b_loss(s, helix),
        hop_b_per_request=_hop_b_per_request(s, helix), helix=_named(helix, i), baseline=_named(base, j),
    )  # fmt: skip


def _named(points: Points, i: int) -> str:
    users = int(points.batch[i])
    return points.layouts.describe(i) + (f" ({users} users)" if users > 1 else "")


def reproduce(claim: Claim) -> list[Outcome]:
    """Outcomes of one claim: the variants, other baselines, and other resolutions of the grid."""
    s = claim_setting(claim.model)
    found = [outcome_of(name, setting) for name, setting in variants(s)]
    found.append(outcome_of("calibrated, baselines without KV shards", s, baselines=("tp", "pp", "dp")))
    if s.model.ffn.is_moe:
        found.append(outcome_of("calibrated, Medha with experts over its KV ranks", s, spread_experts=True))
    found.append(outcome_of("calibrated, DCP among the baselines", s, baselines=(*BASELINES, "dcp")))
    every = enumerate_layouts(s.model, MAX_GPUS)
    powers = np.isin(every.num_gpus, 2.0 ** np.arange(7))
    found.append(outcome_of("calibrated, only 1, 2, 4 … 64 GPUs", s, layouts=every.take(np.flatnonzero(powers))))
    found.append(outcome_of("calibrated, batches in steps of 3 %", s, batch_step=1.03))
    return found
