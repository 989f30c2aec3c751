"""Whole decode steps for a few batch sizes, captured once each and replayed: a launch costs the host one call.

Sizes are numbers of slots; a batch between two of them runs as the larger one, whose free slots choose nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Protocol

import torch

from helicube.engine.faults import device_faults

__all__ = ["Capture", "CudaCapture", "GraphSteps", "batch_sizes", "call_each"]

Step = Callable[[], None]


class Capture(Protocol):
    """Turns a step into something that makes it `count` times."""

    def __call__(self, step: Step, count: int) -> Step: ...


def batch_sizes(num_slots: int) -> tuple[int, ...]:
    """1, 2, 4, … and the number of slots: padding costs little, since a step's time is that of reading the weights."""
    return (*(1 << i for i in range((num_slots - 1).bit_length())), num_slots)


def call_each(step: Step, count: int) -> Step:
    """No graph: every launch calls the step."""

    def run() -> None:
        for _ in range(count):
            step()

    return run


class CudaCapture:
    """CUDA graphs in one memory pool (see "CUDA Graphs" in the CUDA programming guide)."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Step, count: int) -> Step:
        side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        # Kernels are compiled and loaded, and libraries take their workspace, at the first call: a capture does not
        # survive that.
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile: a server decodes a mesh while it starts another engine.
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            for _ in range(count):
                step()
        return graph.replay


class GraphSteps:
    """Steps of the first slots of a batch.

    Args:
        make_step: the step of so many slots; called, and its result captured, while all slots are free.
        sizes: ascending; see `batch_sizes`.
        capture: how a step becomes a launch.
        steps_per_graph: steps in one launch.
    """

    def __init__(
        self,
        make_step: Callable[[int], Step],
        sizes: Sequence[int],
        capture: Capture = call_each,
        *,
        steps_per_graph: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        self.sizes, self.steps_per_graph, self.device = tuple(sizes), steps_per_graph, torch.device(device)
        started = time.perf_counter()
        with self._on_device(), device_faults("the set-up of graphs"), torch.inference_mode():
            # The largest first: what it takes from the pool is enough for the others.
            made = {size: capture(make_step(size), steps_per_graph) for size in reversed(self.sizes)}
        self.launches: dict[int, Step] = made
        self.setup_s = time.perf_counter() - started

    def __call__(self, num_slots: int, count: int) -> None:
        """Launch at least `count` steps of the first slots."""
        size = next((s for s in self.sizes if s >= num_slots), 0)
        assert size, f"{num_slots} slots, captured are {self.sizes}"
        with self._on_device():
            for _ in range(-(-count // self.steps_per_graph)):
                self.launches[size]()

    def _on_device(self) -> torch.cuda.device | nullcontext[None]:
        # Triton launches on the current device, whatever device its arguments are on.
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()
