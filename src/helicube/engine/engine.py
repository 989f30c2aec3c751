"""The decode loop: requests join and leave slots at any step; every step feeds one id to each slot in use.

S slots, A of them in use (always the first A).
Where ids are chosen by the device, a step is a launch of several, and ids are read when a request is done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch

from helicube.engine.faults import device_faults
from helicube.engine.kv_cache import KVCache
from helicube.engine.metrics import cache_bytes
from helicube.engine.request import Request, Result
from helicube.engine.runner import Runner
from helicube.errors import DecodeError, DeviceError, InputError

__all__ = ["Batch", "Engine"]

Progress = Callable[[int, int], None]


@dataclass(slots=True, kw_only=True)
class _Slot:
    """A request under way."""

    handle: int
    request: Request
    # Ids fed to the model, or launched to be.
    num_fed: int
    # Ids chosen, as far as the host knows them.
    chosen: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Results of many requests and what they took."""

    results: tuple[Result, ...]
    # Seconds of taking in prompts, and of all steps; steps, and ids chosen in them.
    prefill_s: float
    decode_s: float
    num_steps: int
    num_tokens: int

    @property
    def tpot_s(self) -> float:
        """Time per output token of each request: seconds per step."""
        return self.decode_s / max(1, self.num_steps)

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / max(self.decode_s, 1e-9)


class Engine:
    """Decodes requests with one runner.

    Args:
        runner: a model with its slots.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.slots: list[_Slot] = []
        self.num_joined = 0
        self.prefill_s = self.decode_s = 0.0
        self.num_steps = self.num_tokens = 0
        # Entered around each step, by whoever measures.
        self.around_step: Callable[[], AbstractContextManager[object]] = nullcontext

    @property
    def cache(self) -> KVCache:
        """Of a Cube decoder."""
        cache = self.runner.cache
        assert cache is not None, "this model has a cache of another kind"
        return cache

    def step_bytes(self, num_slots: int, num_tokens: int) -> tuple[int, int]:
        """Bytes of weights, and of keys and values, that a Cube decoder's step reads.

        Args:
            num_slots: slots in use, each of which holds `num_tokens` ids.
        """
        channels = cache_bytes(self.cache.spec, num_slots * self.runner.copies, num_tokens, itemsize=1)
        return self.runner.weight_bytes, int(channels * self.cache.slot_bytes)

    @property
    def has_room(self) -> bool:
        return len(self.slots) < self.runner.num_slots

    @torch.inference_mode()
    def join(self, request: Request) -> int:
        """Take a request into a free slot; a handle that `step` returns with its result.

        Raises:
            InputError: all slots are in use, guidance is asked of an engine without it, the number of tokens is out
                of range, or an id is fixed that does not exist.
        """
        if not self.has_room:
            raise InputError(f"all {self.runner.num_slots} slots are in use; wait for one, or give the engine more")
        if request.sampling.guidance_scale > 0 and self.runner.copies == 1:
            raise InputError("guidance needs an engine that was started with it; set guidance to 0")
        check_request(request, self.runner.num_ids, self.runner.max_tokens)
        started = time.perf_counter()
        with device_faults("taking in a prompt"):
            self.runner.start(len(self.slots), request)
        self.prefill_s += time.perf_counter() - started
        self.num_joined += 1
        slot = _Slot(handle=self.num_joined, request=request, num_fed=0, chosen=[])
        self.slots.append(slot)
        return slot.handle

    @torch.inference_mode()
    def step(self) -> dict[int, Result]:
        """Choose or launch more ids for each slot in use; the results of those that are done, by handle.

        Raises:
            DeviceError: the device failed; all slots are free.
        """
        with self.around_step():
            return self._step()

    def _step(self) -> dict[int, Result]:
        started = time.perf_counter()
        before = sum(slot.num_fed for slot in self.slots)
        with self._device_faults():
            done = self._launch()
        self.num_tokens += sum(slot.num_fed for slot in self.slots) - before
        # From the back, so that of requests that end together none has to be moved.
        for handle, result in reversed(done.items()):
            self._leave(handle, forget=result.finish == "error")
        self.decode_s += time.perf_counter() - started
        return done

    def _launch(self) -> dict[int, Result]:
        limit = max(slot.request.num_tokens - slot.num_fed for slot in self.slots)
        runner = self.runner
        count = runner.launch(len(self.slots), limit)
        self.num_steps += count
        done = {}
        for index, slot in enumerate(self.slots):
            request = slot.request
            slot.num_fed = min(slot.num_fed + count, request.num_tokens)
            if (
                runner.reads_freely
                or slot.num_fed == request.num_tokens
                or request.stop_ids
                or runner.has_failed(index)
            ):
                result = self._read(index, slot)
                if result is not None:
                    done[slot.handle] = result
        return done

    def _read(self, index: int, slot: _Slot) -> Result | None:
        """Book what was chosen since; the result if the request is done."""
        new, failed = self.runner.read(index, len(slot.chosen))
        request = slot.request
        if request.stop_ids:
            stop = next((i for i, value in enumerate(new) if value in request.stop_ids), None)
            if stop is not None:
                slot.chosen += new[:stop]
                return Result(ids=torch.tensor(slot.chosen, dtype=torch.int64), finish="stop")
        slot.chosen += new
        if failed:
            return _failure(slot.chosen, failed - 1)
        done = len(slot.chosen) == request.num_tokens
        return Result(ids=torch.tensor(slot.chosen), finish="length") if done else None

    @torch.inference_mode()
    def leave(self, handle: int) -> None:
        """Free a request's slot, whose last occupant in use takes its place; a handle that is not there does nothing.

        Raises:
            DeviceError: the device failed; all slots are free.
        """
        # Whether its logits were finite to the end, nobody knows yet.
        self._leave(handle, forget=True)

    def _leave(self, handle: int, *, forget: bool) -> None:
        index = next((i for i, slot in enumerate(self.slots) if slot.handle == handle), None)
        if index is None:
            return
        last = len(self.slots) - 1
        with self._device_faults():
            if forget:
                self.runner.forget(index)
            if index < last:
                self.runner.move(last, index, self.slots[last].num_fed)
            else:
                self.runner.free([index])
        self.slots[index] = self.slots[last]
        self.slots.pop()

    @contextmanager
    def _device_faults(self) -> Iterator[None]:
        """What a device holds after it failed in a step is anybody's guess: nothing is decoded on."""
        try:
            with device_faults("a decode step"):
                yield
        except DeviceError:
            self._clear()
            raise

    def chosen(self, handle: int) -> list[int]:
        """Ids that a request has chosen so far; waits for the device where it chooses ahead of the host."""
        index, slot = next((i, slot) for i, slot in enumerate(self.slots) if slot.handle == handle)
        if len(slot.chosen) == slot.num_fed:
            return slot.chosen
        with device_faults("a decode step"):
            return slot.chosen + self.runner.read(index, len(slot.chosen))[0]

    def seek(self, step: int) -> None:
        """Let all slots in use stand where `step` ids were chosen, whatever the cache holds: for measurements."""
        for index, slot in enumerate(self.slots):
            slot.num_fed, slot.chosen = step, [0] * step
            self.runner.seek(index, step)

    def generate(self, requests: Sequence[Request], on_step: Progress | None = None) -> Batch:
        """Decode many requests, as many side by side as there are slots.

        Args:
            on_step: called with (ids chosen, ids asked for in all) after each step.

        Raises:
            DecodeError: a request ended in an error; the engine can be used on.
            InputError: requests that joined are under way, or one of these cannot be (see `join`).
        """
        if self.slots:
            raise InputError(f"{len(self.slots)} requests have joined already; step until they are done")
        self.prefill_s = self.decode_s = 0.0
        self.num_steps = self.num_tokens = 0
        waiting = deque(enumerate(requests))
        place: dict[int, int] = {}
        results: dict[int, Result] = {}
        total = sum(r.num_tokens for r in requests)
        try:
            while waiting or self.slots:
                while waiting and self.has_room:
                    index, request = waiting.popleft()
                    place[self.join(request)] = index
                results |= {place[handle]: result for handle, result in self.step().items()}
                if on_step is not None:
                    on_step(self.num_tokens, total)
        finally:
            self._clear()
        failed = [r.error for _, r in sorted(results.items()) if r.finish == "error"]
        if failed:
            raise DecodeError(failed[0])
        return Batch(
            results=tuple(results[i] for i in range(len(requests))),
            prefill_s=self.prefill_s,
            decode_s=self.decode_s,
            num_steps=self.num_steps,
            num_tokens=self.num_tokens,
        )

    def _clear(self) -> None:
        """Free all slots."""
        slots = range(len(self.slots))
        self.slots.clear()
        if slots:
            with device_faults("a decode step"):
                self.runner.free(slots)


def check_request(request: Request, num_ids: int, max_tokens: int | None) -> None:
    """Raise InputError unless a request asks for a number of ids, and fixes ids, that there are."""
    if request.num_tokens < 1 or (max_tokens is not None and request.num_tokens > max_tokens):
        most = "1 or more" if max_tokens is None else f"1 to {max_tokens}"
        raise InputError(f"{request.num_tokens} tokens are out of range; choose {most}")
    if request.forced is None:
        return
    if len(request.forced) < request.num_tokens:
        raise InputError(f"{len(request.forced)} fixed ids for {request.num_tokens} tokens; give one per token, or −1")
    largest = int(request.forced.max())
    if largest >= num_ids:
        raise InputError(f"id {largest} cannot be fixed; the ids of this model end at {num_ids - 1}")


def _failure(chosen: list[int], step: int) -> Result:
    error = f"logits are not finite at step {step}; the weights are damaged or their format too coarse"
    return Result(ids=torch.tensor(chosen, dtype=torch.int64), finish="error", error=error)
