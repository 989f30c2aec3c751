"""Where the time of a prompt goes: stages, steps, operators, and what limits it."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.table import Table
from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from helicube.engine.metrics import probe_bandwidth
from helicube.geometry.files import whole_file
from helicube.pipelines.measured import check_output
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.text_to_shape import StageTimes, TextToShape

__all__ = ["Profile", "profile_prompt", "table"]

STEP = "helicube.step"
# Shares above which one cause is named as the limit.
HOST_SHARE, BANDWIDTH_SHARE, IDLE_SHARE = 0.4, 0.6, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One prompt under the profiler. Times of a step are means, in seconds; the profiler itself slows steps down."""

    stages: StageTimes
    num_steps: int
    # Without the profiler, and with it.
    tpot_s: float
    profiled_step_s: float
    # Of a profiled step: inside operators (CPU) or kernels (GPU), in launches, waiting for the device, and the rest,
    # which is Python and dispatch; then time in which the device had nothing to do.
    kernels_s: float
    launches_s: float
    sync_s: float
    host_s: float
    idle_s: float
    num_operators: int
    # Name and seconds of the operators that take longest, over all steps.
    top: tuple[tuple[str, float], ...]
    # Bytes that a step reads, of weights and of cache at half length, and this machine's bandwidth.
    weight_bytes: int
    cache_bytes: int
    bandwidth_bytes_per_s: float

    @property
    def floor_s(self) -> float:
        """Seconds a step takes if reading is all it does."""
        return (self.weight_bytes + self.cache_bytes) / self.bandwidth_bytes_per_s

    @property
    def verdict(self) -> str:
        """One plain sentence on what limits decoding now."""
        read = f"{(self.weight_bytes + self.cache_bytes) / self.tpot_s / 1e9:.1f} GB/s"
        share = self.floor_s / self.tpot_s
        host = self.host_s / self.profiled_step_s
        if share > BANDWIDTH_SHARE:
            return (
                f"Memory bandwidth: a step reads {read}, {share:.0%} of what the machine gives; fewer bytes would help."
            )
        if self.idle_s / self.profiled_step_s > IDLE_SHARE:
            return f"Launches: the device idles {self.idle_s / self.profiled_step_s:.0%} of a step; graphs would help."
        if host > HOST_SHARE:
            return (
                f"Host work: {host:.0%} of a step is Python and dispatch of {self.num_operators} operators, "
                f"{share:.0%} of the bandwidth is used; fewer and larger operators would help."
            )
        return (
            f"Operators: they take {self.kernels_s / self.profiled_step_s:.0%} of a step at {share:.0%} of the "
            f"bandwidth; faster kernels for few rows would help."
        )


def profile_prompt(pipeline: TextToShape, prompt: str, *, trace: Path | None = None) -> Profile:
    """Draw one object of a prompt three times: to warm up, to time, and under the profiler.

    Args:
        trace: where to write a Chrome trace.

    Raises:
        InputError: the trace cannot be written there.
    """
    check_output(trace)
    # One step per launch, so that each can be told apart.
    pipeline = TextToShape(pipeline.model, replace(pipeline.options, steps_per_launch=1))
    configs, options = [pipeline.model.sampling], MeshOptions()
    pipeline.generate_many([prompt], configs, best_of=1, options=options)
    timed = pipeline.generate_many([prompt], configs, best_of=1, options=options)[0]
    device = pipeline.model.decoder.device
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    engine = pipeline.engine(1, guided=True)
    steps: list[float] = []

    @contextmanager
    def marked() -> Iterator[None]:
        started = time.perf_counter()
        with torch.profiler.record_function(STEP):
            yield
        steps.append(time.perf_counter() - started)

    # The pipeline was made here, so nobody else steps this engine.
    engine.around_step = marked
    with profile(activities=activities) as profiler:
        pipeline.generate_many([prompt], configs, best_of=1, options=options)
    if trace is not None:
        with whole_file(trace) as passing:
            profiler.export_chrome_trace(str(passing))
    return _digest(pipeline, profiler, timed.times, timed.decoded.tpot_s, steps)


def _digest(pipeline: TextToShape, profiler: profile, stages: StageTimes, tpot_s: float, steps: list[float]) -> Profile:
    events = profiler.events()  # type: ignore[no-untyped-call]
    assert events is not None
    on_gpu = any(e.device_type == DeviceType.CUDA for e in events)
    totals, own, number = _sums(events, on_gpu=on_gpu)
    count = max(1, len(steps))
    step_s = statistics.fmean(steps)
    kernels, launches, sync = (totals[key] / 1e6 / count for key in ("kernels", "launches", "sync"))
    model = pipeline.model
    weights, cached = pipeline.engine(1, guided=True).step_bytes(1, model.plan.num_steps // 2)
    return Profile(
        stages=stages,
        num_steps=len(steps),
        tpot_s=tpot_s,
        profiled_step_s=step_s,
        kernels_s=kernels,
        launches_s=launches,
        sync_s=sync,
        host_s=max(0.0, step_s - launches - sync - (0.0 if on_gpu else kernels)),
        idle_s=max(0.0, step_s - kernels) if on_gpu else 0.0,
        num_operators=number // count,
        top=tuple((name, us / 1e6) for name, us in own.most_common(10)),
        weight_bytes=weights,
        cache_bytes=cached,
        bandwidth_bytes_per_s=probe_bandwidth(model.decoder.device),
    )


def _sums(events: Sequence[FunctionEvent], *, on_gpu: bool) -> tuple[Counter[str], Counter[str], int]:
    """Of all steps: microseconds by kind (kernels, launches, sync), by operation, and the number of operators."""
    spans = [(e.time_range.start, e.time_range.end) for e in events if e.name == STEP]
    own: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    number = 0
    for event in events:
        if event.name == STEP or not _within(event.time_range.start, spans):
            continue
        if event.device_type == DeviceType.CUDA:
            totals["kernels"] += event.device_time_total
            own[event.name] += event.device_time_total
        elif event.name.startswith("cuda"):
            totals["sync" if "ynchronize" in event.name else "launches"] += event.self_cpu_time_total
        elif not on_gpu:
            totals["kernels"] += event.self_cpu_time_total
            own[event.name] += event.self_cpu_time_total
        number += int(event.name.startswith("aten::"))
    return totals, own, number


def _within(moment: float, spans: list[tuple[float, float]]) -> bool:
    """Whether a moment lies in one of the spans, which follow each other."""
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if moment > spans[middle][1]:
            low = middle + 1
        else:
            high = middle
    return low < len(spans) and spans[low][0] <= moment


def table(found: Profile) -> Table:
    """What was found, for people."""
    shown = Table(title=f"{found.num_steps} steps", show_header=False)
    step = found.profiled_step_s
    for name, seconds in (
        ("text", found.stages.text_s),
        ("tokens", found.stages.tokens_s),
        ("surface", found.stages.surface_s),
        ("clean-up", found.stages.clean_up_s),
    ):
        shown.add_row(f"stage: {name}", f"{seconds * 1e3:.1f} ms", "")
    shown.add_section()
    shown.add_row("step (TPOT)", f"{found.tpot_s * 1e3:.3f} ms", f"floor {found.floor_s * 1e3:.3f} ms")
    for name, seconds in (
        ("kernels", found.kernels_s),
        ("launches", found.launches_s),
        ("synchronisation", found.sync_s),
        ("host work", found.host_s),
        ("device idle", found.idle_s),
    ):
        shown.add_row(f"profiled step: {name}", f"{seconds * 1e3:.3f} ms", f"{seconds / step:.0%}")
    shown.add_row("operators a step", str(found.num_operators), "")
    shown.add_section()
    for name, seconds in found.top:
        shown.add_row(name[:60], f"{seconds * 1e3:.1f} ms", f"{seconds / (step * found.num_steps):.0%}")
    return shown
