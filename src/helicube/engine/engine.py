"""The decode loop: requests join and leave slots at any step; every step feeds one id to each slot in use.

S slots, A of them in use (always the first A), C rows per slot, N ids per request at most, V vocabulary.
Where a runner chooses the ids itself, a step is a launch of several, and ids are read when a request is done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.engine.faults import device_faults
from helicube.engine.kv_cache import KVCache
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.metrics import cache_bytes
from helicube.engine.request import IdPlan, Request, Result
from helicube.engine.runner import CubeRunner, Runner
from helicube.engine.sampling import request_keys
from helicube.errors import DecodeError, DeviceError, InputError
from helicube.kernels.sampling import draw, scores

__all__ = ["Batch", "Engine"]

Progress = Callable[[int, int], None]


@dataclass(slots=True, kw_only=True)
class _Slot:
    """A request under way."""

    handle: int
    request: Request
    # Ids fed to the model, or launched to be; and the id to feed next, where the host knows it.
    num_fed: int
    next_id: int
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
        plan: which ids may stand where.
        device: where the runner's logits are.
    """

    def __init__(self, runner: Runner | LaunchRunner, plan: IdPlan, *, device: torch.device | str = "cpu") -> None:
        self.runner, self.plan, self.device = runner, plan, device
        self.slots: list[_Slot] = []
        self.num_joined = 0
        self.prefill_s = self.decode_s = 0.0
        self.num_steps = self.num_tokens = 0

    @property
    def cache(self) -> KVCache:
        """Of a Cube decoder."""
        cache = getattr(self.runner, "cache", None)
        assert isinstance(cache, KVCache), f"{type(self.runner).__name__} has a cache of another kind"
        return cache

    def step_bytes(self, num_slots: int, num_tokens: int) -> tuple[int, int]:
        """Bytes of weights, and of keys and values, that a Cube decoder's step reads.

        Args:
            num_slots: slots in use, each of which holds `num_tokens` ids.
        """
        assert isinstance(self.runner, CubeRunner | LaunchRunner), "a Helix runner counts its own"
        rows, itemsize = num_slots * self.runner.copies, self.cache.keys[0].element_size()
        return self.runner.weight_bytes, cache_bytes(self.cache.spec, rows, num_tokens, itemsize)

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
        check_request(request, self.plan, self.runner.max_tokens)
        started = time.perf_counter()
        first = -1
        with device_faults("taking in a prompt"):
            if isinstance(self.runner, LaunchRunner):
                self.runner.start(len(self.slots), request)
            else:
                first = self.runner.start(len(self.slots), request.prompt)
        self.prefill_s += time.perf_counter() - started
        self.num_joined += 1
        slot = _Slot(handle=self.num_joined, request=request, num_fed=0, next_id=first, chosen=[])
        self.slots.append(slot)
        return slot.handle

    @torch.inference_mode()
    def step(self) -> dict[int, Result]:
        """Choose or launch more ids for each slot in use; the results of those that are done, by handle.

        Raises:
            DeviceError: the device failed; all slots are free.
        """
        started = time.perf_counter()
        before = sum(slot.num_fed for slot in self.slots)
        with self._device_faults():
            done = self._launch(self.runner) if isinstance(self.runner, LaunchRunner) else self._step(self.runner)
        self.num_tokens += sum(slot.num_fed for slot in self.slots) - before
        # From the back, so that of requests that end together none has to be moved.
        for handle, result in reversed(done.items()):
            self._leave(handle, forget=result.finish == "error")
        self.decode_s += time.perf_counter() - started
        return done

    def _step(self, runner: Runner) -> dict[int, Result]:
        ids = torch.tensor([slot.next_id for slot in self.slots], device=self.device)
        logits = runner.step(ids, [slot.num_fed for slot in self.slots])
        chosen, finite = self._choose(logits)
        self.num_steps += 1
        done = {}
        for slot, value, sound in zip(self.slots, chosen.tolist(), finite.tolist(), strict=True):
            slot.num_fed += 1
            result = self._advance(slot, value, sound)
            if result is not None:
                done[slot.handle] = result
        return done

    def _launch(self, runner: LaunchRunner) -> dict[int, Result]:
        count = runner.launch(len(self.slots), max(slot.request.num_tokens - slot.num_fed for slot in self.slots))
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
                result = _read(runner, index, slot)
                if result is not None:
                    done[slot.handle] = result
        return done

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
        if len(slot.chosen) == slot.num_fed or not isinstance(self.runner, LaunchRunner):
            return slot.chosen
        with device_faults("a decode step"):
            return self.runner.read(index)[0]

    def seek(self, step: int) -> None:
        """Let all slots in use stand where `step` ids were chosen, whatever the cache holds: for measurements."""
        assert isinstance(self.runner, CubeRunner | LaunchRunner), "the sequences of other runners cannot be made up"
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

    def _advance(self, slot: _Slot, value: int, sound: bool) -> Result | None:
        """Book a chosen id; the result if that ends the request."""
        step, request = len(slot.chosen), slot.request
        if not sound:
            return _failure(slot.chosen, step)
        if request.forced is not None and int(request.forced[step]) >= 0:
            value = int(request.forced[step])
        finish = "stop" if value in request.stop_ids else ""
        if not finish:
            slot.chosen.append(value)
            slot.next_id = value
            finish = "length" if len(slot.chosen) == request.num_tokens else ""
        return Result(ids=torch.tensor(slot.chosen), finish=finish) if finish else None

    def _choose(self, logits_RV: Tensor) -> tuple[Tensor, Tensor]:
        """Ids (A,), and whether each slot's logits were finite (A,)."""
        steps = [len(slot.chosen) for slot in self.slots]
        ranges = [self.plan.ranges[min(step, self.plan.num_steps - 1)] for step in steps]
        low, high = min(a for a, _ in ranges), max(b for _, b in ranges)
        bounds = torch.tensor(ranges, device=self.device) if len(set(ranges)) > 1 else None
        weighed, sound = scores(logits_RV[:, low:high], self._gamma(steps), bounds, low)
        configs = [slot.request.sampling for slot in self.slots]
        if all(c.temperature == 0 for c in configs):
            return weighed.argmax(dim=-1) + low, sound
        ids = draw(
            weighed,
            keys_A=request_keys(configs).to(self.device),
            steps_A=torch.tensor(steps),
            temperature_A=torch.tensor([float(c.temperature) for c in configs], device=self.device),
            top_p_A=torch.tensor([float(c.top_p) for c in configs], device=self.device),
            first_id=low,
        )
        return ids, sound

    def _gamma(self, steps: Sequence[int]) -> Tensor | None:
        """Weight of each slot's guidance at its step, (A,); None where there are no rows for it."""
        if self.runner.copies == 1:
            return None
        gamma = [
            slot.request.sampling.guidance_scale * (slot.request.num_tokens - step) / slot.request.num_tokens
            for slot, step in zip(self.slots, steps, strict=True)
        ]
        return torch.tensor(gamma, device=self.device)


def check_request(request: Request, plan: IdPlan, max_tokens: int | None) -> None:
    """Raise InputError unless a request asks for a number of ids, and fixes ids, that there are."""
    if request.num_tokens < 1 or (max_tokens is not None and request.num_tokens > max_tokens):
        most = "1 or more" if max_tokens is None else f"1 to {max_tokens}"
        raise InputError(f"{request.num_tokens} tokens are out of range; choose {most}")
    if request.forced is None:
        return
    if len(request.forced) < request.num_tokens:
        raise InputError(f"{len(request.forced)} fixed ids for {request.num_tokens} tokens; give one per token, or −1")
    largest, num_ids = int(request.forced.max()), max(high for _, high in plan.ranges)
    if largest >= num_ids:
        raise InputError(f"id {largest} cannot be fixed; the ids of this model end at {num_ids - 1}")


def _failure(chosen: list[int], step: int) -> Result:
    error = f"logits are not finite at step {step}; the weights are damaged or their format too coarse"
    return Result(ids=torch.tensor(chosen, dtype=torch.int64), finish="error", error=error)


def _read(runner: LaunchRunner, index: int, slot: _Slot) -> Result | None:
    """The result of a slot whose ids were chosen elsewhere, if it is done."""
    before = len(slot.chosen)
    slot.chosen, failed = runner.read(index)
    stop_ids = slot.request.stop_ids
    end = next((i for i, value in enumerate(slot.chosen[before:], before) if value in stop_ids), None)
    if end is not None:
        return Result(ids=torch.tensor(slot.chosen[:end], dtype=torch.int64), finish="stop")
    if failed:
        return _failure(slot.chosen, failed - 1)
    done = len(slot.chosen) == slot.request.num_tokens
    return Result(ids=torch.tensor(slot.chosen), finish="length") if done else None
