"""Settings over what is uncertain in a comparison with the Helix paper: latencies, launches, bandwidths."""

from __future__ import annotations

from dataclasses import replace

from helicube.planner.constants import EngineConstants, GpuConstants
from helicube.planner.setting import Setting
from helicube.planner.shipped import BOUND_ENGINE

__all__ = ["variants"]


def _cheap_collectives(gpu: GpuConstants, latency_s: float) -> GpuConstants:
    """Every collective at one latency, whatever its ranks; bandwidths stay."""
    flat = {op: replace(c, base_s=latency_s, step_s=0.0, root_s=0.0) for op, c in gpu.collectives.items()}
    one, two = (replace(c, base_s=latency_s, step_s=0.0) for c in (gpu.one_shot, gpu.two_shot))
    return replace(gpu, collectives=flat, one_shot=one, two_shot=two)


def _slow_collectives(gpu: GpuConstants) -> GpuConstants:
    slow = {op: replace(c, base_s=2 * c.base_s, step_s=2 * c.step_s) for op, c in gpu.collectives.items()}
    one, two = (replace(c, base_s=2 * c.base_s, step_s=2 * c.step_s) for c in (gpu.one_shot, gpu.two_shot))
    return replace(gpu, collectives=slow, one_shot=one, two_shot=two)


def _exchange_at(gpu: GpuConstants, latency_s: float) -> GpuConstants:
    """Every all-to-all at one latency; gathers, which the baselines use, stay."""
    flat = replace(gpu.collectives["alltoall"], base_s=latency_s, step_s=0.0, root_s=0.0)
    return replace(gpu, fused_moves=False, collectives={**gpu.collectives, "alltoall": flat})


def _launches(engine: EngineConstants, factor: float) -> EngineConstants:
    return replace(
        engine, gemm_s=engine.gemm_s * factor, attention_s=engine.attention_s * factor, layer_s=engine.layer_s * factor,
        moe_s={key: value * factor for key, value in engine.moe_s.items()}, step_s=engine.step_s * factor,
        request_s=engine.request_s * factor,
    )  # fmt: skip


def _per_kernel(seconds: float) -> EngineConstants:
    """An engine that costs a fixed time for each kernel and nothing else.

    A layer launches about four kernels beside its GEMMs and attention; routing and grouped GEMMs make about four more.
    """
    return replace(
        BOUND_ENGINE, gemm_s=seconds, attention_s=seconds, layer_s=4 * seconds, moe_s={"blackwell": 4 * seconds}
    )


def _peak(gpu: GpuConstants) -> GpuConstants:
    """Peak bandwidth in every kernel."""
    full = {"hbm_efficiency": 1.0, "serving_scale": 1.0}
    return replace(
        gpu,
        gemm={f: replace(c, **full, math_efficiency=1.0, loop_s=0.0) for f, c in gpu.gemm.items()},
        moe={f: replace(c, **full) for f, c in gpu.moe.items()},
        attention={f: replace(c, hbm_efficiency=1.0, split_s=0.0, query_passes=1.0) for f, c in gpu.attention.items()},
    )


def variants(s: Setting) -> list[tuple[str, Setting]]:
    """Settings over the uncertain constants; the first is the calibrated one."""
    gpu, five, kernel = s.gpu, _cheap_collectives(s.gpu, 5e-6), 2.5e-6
    attention = {f: replace(c, hbm_efficiency=1.0, split_s=0.0) for f, c in gpu.attention.items()}
    linear = {f: replace(c, linear_beyond=131072.0) for f, c in gpu.attention.items()}
    plain = replace(s.engine, collective_step_s=0.0)
    return [
        ("calibrated", s),
        ("launches halved", replace(s, engine=_launches(s.engine, 0.5))),
        ("launches doubled", replace(s, engine=_launches(s.engine, 2.0))),
        ("collectives: 5 µs each", replace(s, gpu=five, engine=plain)),
        ("collectives: latency doubled", replace(s, gpu=_slow_collectives(gpu))),
        ("gathers and exchanges by NCCL", replace(s, gpu=replace(gpu, fused_moves=False))),
        ("exchange: 34 µs, published for a fused kernel on 4 GB200", replace(s, gpu=_exchange_at(gpu, 34e-6))),
        ("attention: linear beyond 131,072 tokens per GPU", replace(s, gpu=replace(gpu, attention=linear))),
        ("attention at peak bandwidth", replace(s, gpu=replace(gpu, attention=attention))),
        ("5 µs a collective, 2.5 µs a kernel", replace(s, gpu=five, engine=_per_kernel(kernel))),
        ("the same at peak bandwidth", replace(s, gpu=_peak(five), engine=_per_kernel(kernel))),
        (
            "roofline: no latency at all",
            replace(s, gpu=_peak(_cheap_collectives(gpu, 0.0)), engine=BOUND_ENGINE),
        ),
    ]
