"""Clock, captured graphs and machine facts for the GPU benchmark."""

from __future__ import annotations

import datetime
import itertools
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton

Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Seconds per call."""

    median_s: float
    p95_s: float
    # How far a second measurement of the same thing was off; differences below it say nothing.
    spread: float


def capture(calls: Sequence[Call]) -> torch.cuda.CUDAGraph:
    """One graph of all calls, which are run once before: kernels are compiled and loaded at their first launch."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def time_replays(replay: Call, repeats: int) -> list[float]:
    """Seconds of each of many runs, by events on the device."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        replay()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 for a, b in itertools.pairwise(marks)]


def clock(replay: Call, *, calls: int = 1, repeats: int = 50) -> Clock:
    """Time of a run that makes `calls` calls."""
    time_replays(replay, 5)
    first, second = time_replays(replay, repeats), time_replays(replay, repeats)
    median = statistics.median(first)
    return Clock(
        median_s=median / calls,
        p95_s=sorted(first)[int(0.95 * repeats)] / calls,
        spread=abs(statistics.median(second) / median - 1),
    )


def clock_captured(calls: Sequence[Call]) -> Clock:
    """Time per call inside a graph of all calls; give as many calls on different tensors as overflow the L2 cache."""
    return clock(capture(calls).replay, calls=len(calls))


def copies_beyond_cache(num_bytes: int) -> int:
    """Sets of tensors of that size that a cache of up to 60 MB cannot hold."""
    return max(2, -(-(256 << 20) // num_bytes))


def machine() -> dict[str, Any]:
    """Hardware, versions, command, date."""
    device = torch.cuda.get_device_properties(0)
    return {
        "gpu": device.name,
        "compute_capability": f"{device.major}.{device.minor}",
        "multiprocessors": device.multi_processor_count,
        "memory_bytes": device.total_memory,
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "command": " ".join(sys.argv),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
