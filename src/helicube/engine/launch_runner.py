"""Slots whose ids are chosen where the model runs: the host launches whole steps and reads ids when a request is done.

A slots in use (always the first A), C rows per slot, N ids per request at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import torch

from helicube.engine.kv_cache import KVCache
from helicube.engine.request import Request
from helicube.engine.runner import CubeRunner
from helicube.engine.sampling import request_keys
from helicube.kernels.sampling_state import SamplingState

__all__ = ["LaunchRunner", "Steps"]

# Launches that the host may be ahead of the device: enough that the device never waits, few enough that a request
# joins, leaves or is cancelled within some tens of milliseconds.
MAX_AHEAD = 4


class Steps(Protocol):
    """Whole steps of the first slots of a state, sampling included."""

    def __call__(self, num_slots: int, count: int) -> None:
        """Launch `count` steps, which leave slots alone that have nothing to choose. Nothing is waited for."""
        ...


class Event(Protocol):
    """A point in the device's queue."""

    def synchronize(self) -> None: ...


class LaunchRunner:
    """A Cube decoder's slots, cache and sampling state on one device. What fails on it, the engine puts into words.

    Args:
        runner: whose prefill and cache are used.
        state: one slot per slot of the runner.
        steps: work on that cache and that state.
        steps_per_launch: steps between two looks of the host.
        reads_freely: looking at the ids waits for nothing, so that the engine does after every launch.
        weight_bytes: of the steps' weights, where they are not the decoder's own.
    """

    def __init__(
        self,
        runner: CubeRunner,
        state: SamplingState,
        steps: Steps,
        *,
        steps_per_launch: int = 8,
        reads_freely: bool = False,
        weight_bytes: int | None = None,
    ) -> None:
        assert len(state.steps) == runner.num_slots, f"a state of {len(state.steps)} slots for {runner.num_slots}"
        self.runner, self.state, self.steps, self.steps_per_launch = runner, state, steps, steps_per_launch
        self.num_slots, self.copies, self.max_tokens = runner.num_slots, runner.copies, runner.max_tokens
        self.num_ids = int(state.ranges.max())
        self.device = state.steps.device
        on_gpu = self.device.type == "cuda"
        self.reads_freely, self._weight_bytes = reads_freely, weight_bytes
        # A copy on the host that lags behind; page-locked memory, so that the copy is part of the queue.
        self.failed = torch.zeros(self.num_slots, dtype=torch.int32, pin_memory=on_gpu)
        self.in_flight: deque[Event] = deque()

    @property
    def cache(self) -> KVCache:
        return self.runner.cache

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step reads."""
        return self.runner.weight_bytes if self._weight_bytes is None else self._weight_bytes

    def start(self, slot: int, request: Request) -> None:
        """Take a request into a slot."""
        first = self.runner.start(slot, request.prompt)
        sampling = request.sampling
        self.state.start(
            slot,
            first,
            request.num_tokens,
            guidance=sampling.guidance_scale,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            key=int(request_keys([sampling])),
            forced=request.forced,
        )

    def launch(self, num_slots: int, limit: int) -> int:
        """Steps, `limit` at most, that the first slots are about to make. Waits only where the host is far ahead."""
        count = min(self.steps_per_launch, limit)
        self.steps(num_slots, count)
        self.failed.copy_(self.state.failed, non_blocking=True)
        self.in_flight.append(self._mark())
        while len(self.in_flight) > MAX_AHEAD:
            self.in_flight.popleft().synchronize()
        return count

    def seek(self, slot: int, step: int) -> None:
        """Stand where `step` ids were chosen, for measurements."""
        rows = slice(slot * self.copies, (slot + 1) * self.copies)
        self.state.steps[slot], self.state.positions[rows], self.state.lengths[rows] = step, step, step + 1

    def has_failed(self, slot: int) -> bool:
        """Whether a slot's logits were not finite, as far as is known without waiting; may be its last occupant's."""
        return bool(self.failed[slot])

    def read(self, slot: int, since: int) -> tuple[list[int], int]:
        """Ids that a slot has chosen after the first `since`, and 1 + the step whose logits were not finite or 0.

        Waits for what was launched.
        """
        row = torch.cat([self.state.steps[slot, None], self.state.failed[slot, None], self.state.ids[slot, since:]])
        steps, failed, *ids = row.tolist()
        if failed:
            self.forget(slot)
        return ids[: max(0, (failed - 1 if failed else steps) - since)], failed

    def move(self, source: int, target: int, length: int) -> None:
        """Move a slot's state, `length` ids fed, over another slot's; the source becomes free."""
        self.runner.move(source, target, length)
        # It may have failed by now, unknown to the host.
        self.forget(source)
        self.state.move(source, target)
        self.state.stop(source)

    def free(self, slots: Sequence[int]) -> None:
        """Nothing more is chosen in these slots."""
        for slot in slots:
            self.state.stop(slot)

    def forget(self, slot: int) -> None:
        """Clear a slot's rows of the cache."""
        self.runner.forget(slot)

    def _mark(self) -> Event:
        if self.device.type != "cuda":
            return _Done()
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self.device))
        return event


class _Done:
    """A point in the queue of a device that computes at once."""

    def synchronize(self) -> None:
        pass
