"""The Helix paper's three claims, as this planner sees them, with a band over what is uncertain.

Source of the claims: arXiv 2507.07120, GB200 NVL72, up to 64 GPUs, fp4 weights, cache and arithmetic, 10⁶ tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from helicube.planner.constants import EngineConstants, GpuConstants
from helicube.planner.layouts import BASELINES, FAMILIES, LayoutArrays, enumerate_layouts
from helicube.planner.pareto import best_throughput_at, frontier
from helicube.planner.report import Table
from helicube.planner.search import Points, default_batches, evaluate, search
from helicube.planner.setting import Setting, make_setting, uniform_formats
from helicube.planner.shipped import BOUND_ENGINE
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

__all__ = ["CLAIMS", "Claim", "Outcome", "claim_setting", "outcome_of", "reproduce", "reproduction_tables", "variants"]

CONTEXT = 10**6
MAX_GPUS = 64


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
    users_at_ttl_ms: float
    # Latency at which the users ratio is largest.
    hop_b_loss: float
    # Largest loss of tokens/s/user on the frontier when its layouts run without the overlap.
    helix: str
    baseline: str
    # Fastest layouts.


def claim_setting(model: str, engine: str = "trtllm") -> Setting:
    """The paper's scene: GB200, everything in fp4."""
    spec = get_model(model)
    return make_setting(spec, load_hardware("gb200"), engine=engine, formats=uniform_formats(spec, "fp4", "fp4"))


def _cheap_collectives(gpu: GpuConstants, latency_s: float) -> GpuConstants:
    """Every collective at one latency, whatever its ranks; bandwidths stay."""
    flat = {op: replace(c, base_s=latency_s, step_s=0.0, root_s=0.0) for op, c in gpu.collectives.items()}
    one = replace(gpu.one_shot, base_s=latency_s, step_s=0.0, two_base_s=latency_s, two_step_s=0.0)
    return replace(gpu, collectives=flat, one_shot=one)


def _launches(engine: EngineConstants, factor: float) -> EngineConstants:
    return replace(
        engine, gemm_s=engine.gemm_s * factor, attention_s=engine.attention_s * factor, layer_s=engine.layer_s * factor,
        moe_s={key: value * factor for key, value in engine.moe_s.items()}, step_s=engine.step_s * factor,
        request_s=engine.request_s * factor,
    )  # fmt: skip


def _paper_like(s: Setting) -> Setting:
    """Peak bandwidth, 2.5 µs for each kernel, 5 µs for each collective."""
    kernel = 2.5e-6
    # A layer launches about four kernels beside its GEMMs and attention; routing and grouped GEMMs make about four.
    engine = replace(
        BOUND_ENGINE, gemm_s=kernel, attention_s=kernel, layer_s=4 * kernel, moe_s={"blackwell": 4 * kernel}
    )
    peak = replace(
        s.gpu,
        gemm={
            f: replace(c, hbm_efficiency=1.0, math_efficiency=1.0, loop_s=0.0, serving_scale=1.0)
            for f, c in s.gpu.gemm.items()
        },
        moe={f: replace(c, hbm_efficiency=1.0, serving_scale=1.0) for f, c in s.gpu.moe.items()},
        attention={
            f: replace(c, hbm_efficiency=1.0, split_s=0.0, query_passes=1.0) for f, c in s.gpu.attention.items()
        },
    )
    return replace(s, engine=engine, gpu=_cheap_collectives(peak, 5e-6))


def variants(s: Setting) -> list[tuple[str, Setting]]:
    """Settings over the uncertain constants; the first is the calibrated one."""
    attention = {f: replace(c, hbm_efficiency=1.0, split_s=0.0) for f, c in s.gpu.attention.items()}
    linear = {f: replace(c, linear_beyond=131072.0) for f, c in s.gpu.attention.items()}
    return [
        ("calibrated", s),
        ("launches halved", replace(s, engine=_launches(s.engine, 0.5))),
        ("launches doubled", replace(s, engine=_launches(s.engine, 2.0))),
        (
            "collectives: 5 µs each",
            replace(s, gpu=_cheap_collectives(s.gpu, 5e-6), engine=replace(s.engine, collective_s=0.0)),
        ),
        ("collectives: latency doubled", replace(s, gpu=_slow_collectives(s.gpu))),
        ("gathers and exchanges by NCCL", replace(s, gpu=replace(s.gpu, fused_moves=False))),
        ("exchange: 34 µs, published for a fused kernel on 4 GB200", replace(s, gpu=_exchange_at(s.gpu, 34e-6))),
        ("attention: linear beyond 131,072 tokens per GPU", replace(s, gpu=replace(s.gpu, attention=linear))),
        ("attention at peak bandwidth", replace(s, gpu=replace(s.gpu, attention=attention))),
        ("peak bandwidth, 2.5 µs a kernel, 5 µs a collective", _paper_like(s)),
        (
            "roofline: no latency at all",
            replace(_paper_like(s), engine=BOUND_ENGINE, gpu=_cheap_collectives(_paper_like(s).gpu, 0.0)),
        ),
    ]


def _exchange_at(gpu: GpuConstants, latency_s: float) -> GpuConstants:
    """Every all-to-all at one latency; gathers, which the baselines use, stay."""
    flat = replace(gpu.collectives["alltoall"], base_s=latency_s, step_s=0.0, root_s=0.0)
    return replace(gpu, fused_moves=False, collectives={**gpu.collectives, "alltoall": flat})


def _slow_collectives(gpu: GpuConstants) -> GpuConstants:
    slow = {op: replace(c, base_s=2 * c.base_s, step_s=2 * c.step_s) for op, c in gpu.collectives.items()}
    one = gpu.one_shot
    doubled = replace(
        one, base_s=2 * one.base_s, step_s=2 * one.step_s, two_base_s=2 * one.two_base_s, two_step_s=2 * one.two_step_s
    )
    return replace(gpu, collectives=slow, one_shot=doubled)


def _hop_b_loss(s: Setting, helix: Points) -> float:
    """Largest loss of tokens/s/user on the frontier when its layouts run without the overlap, batch unchanged."""
    front = frontier(helix)
    front = front.where(front.layouts.overlap)
    if not len(front):
        return 0.0
    plain = replace(front.layouts, overlap=np.zeros(len(front), dtype=np.bool_))
    without = evaluate(s, plain, front.batch, CONTEXT)
    return float(np.max(1.0 - front.ttl_s / without.ttl_s))


def outcome_of(name: str, s: Setting, *, baselines: Sequence[str] = BASELINES, layouts: LayoutArrays | None = None,
               batch_step: float = 1.1) -> Outcome:  # fmt: skip
    """The three ratios under one setting.

    Args:
        name: of the variant.
        s: the setting.
        baselines: families that Helix is compared with.
        layouts: (l,) layouts to search; all of up to 64 GPUs by default.
        batch_step: largest ratio of neighbouring batches.
    """
    grid = enumerate_layouts(s.model, MAX_GPUS) if layouts is None else layouts
    points = search(s, grid, CONTEXT, default_batches(step=batch_step))
    # Helix with KVP = 1 is tensor parallelism with TPA ≤ K, which both sides may use.
    helix = points.where(points.layouts.is_family("helix") | (points.layouts.is_family("tp")))
    base = points.where(np.isin(points.layouts.family, [FAMILIES.index(name) for name in baselines]))
    i, j = int(np.argmin(helix.ttl_s)), int(np.argmin(base.ttl_s))
    speeds = frontier(base).tokens_per_s_user
    ratio = best_throughput_at(helix, speeds) / best_throughput_at(base, speeds)
    k = int(np.argmax(ratio))
    return Outcome(
        name=name, interactivity=float(base.ttl_s[j] / helix.ttl_s[i]), users=float(ratio[k]),
        users_at_ttl_ms=float(1e3 / speeds[k]), hop_b_loss=_hop_b_loss(s, helix),
        helix=f"{helix.layouts.describe(i)} at {int(helix.batch[i])}",
        baseline=f"{base.layouts.describe(j)} at {int(base.batch[j])}",
    )  # fmt: skip


def reproduce(claim: Claim) -> list[Outcome]:
    """Outcomes of one claim: the variants, other baselines, and other resolutions of the grid."""
    s = claim_setting(claim.model)
    found = [outcome_of(name, setting) for name, setting in variants(s)]
    found.append(outcome_of("calibrated, baselines without KV shards", s, baselines=("tp", "pp", "dp")))
    found.append(outcome_of("calibrated, DCP among the baselines", s, baselines=(*BASELINES, "dcp")))
    every = enumerate_layouts(s.model, MAX_GPUS)
    powers = np.isin(every.num_gpus, 2.0 ** np.arange(7))
    found.append(outcome_of("calibrated, only 1, 2, 4 … 64 GPUs", s, layouts=every.take(np.flatnonzero(powers))))
    found.append(outcome_of("calibrated, batches in steps of 3 %", s, batch_step=1.03))
    return found


def reproduction_tables() -> list[Table]:
    """One table for each claim; the paper's figures first."""
    tables = []
    for claim in CLAIMS:
        rows = [
            (
                "the paper (simulated)",
                f"{claim.interactivity:g} ×",
                f"{claim.users:g} ×",
                "",
                f"{claim.hop_b_loss:.0%}",
                "",
                "",
            )
        ]
        rows += [
            (
                o.name,
                f"{o.interactivity:.2f} ×",
                f"{o.users:.1f} ×",
                f"{o.users_at_ttl_ms:.1f}",
                f"{o.hop_b_loss:.1%}",
                o.helix,
                o.baseline,
            )
            for o in reproduce(claim)
        ]
        header = ("constants", "tokens/s/user, Helix / best baseline", "users at one latency, at the most",
                  "at ms/token", "HOP-B off costs at the most", "fastest Helix", "fastest baseline")  # fmt: skip
        title = f"{claim.model}, 10⁶ tokens, up to {MAX_GPUS} × GB200, fp4 (modelled)"
        tables.append(Table(title=title, header=header, rows=tuple(rows)))
    return tables
