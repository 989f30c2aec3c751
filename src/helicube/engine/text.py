"""Decoding texts: requests of any length that wait, take in their prompt chunk by chunk, and decode side by side."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from helicube.engine.engine import Engine
from helicube.engine.faults import device_faults
from helicube.engine.helix_runner import HelixRunner, Prefill
from helicube.engine.host_runner import HostRunner
from helicube.engine.request import IdPlan, Request
from helicube.engine.sampling import SamplingConfig
from helicube.errors import DecodeError

__all__ = ["TextEngine", "TextRequest", "TextResult"]

# (index of the request, id): called as ids are chosen.
OnToken = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """One text to continue."""

    # At least one id.
    ids: tuple[int, ...]
    # Ids to generate at most.
    num_tokens: int
    sampling: SamplingConfig = field(default_factory=lambda: SamplingConfig(guidance_scale=0.0))
    # Ids that end the text, and are not part of it.
    stop_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextResult:
    """What became of a request."""

    ids: tuple[int, ...]
    # "length", "stop", or "error".
    finish: str
    # One line for the user where finish is "error".
    error: str = ""
    # Seconds from the start of the run to the first id, and to the last.
    first_s: float = 0.0
    last_s: float = 0.0

    @property
    def tpot_s(self) -> float:
        """Seconds per id after the first; other requests' prefills included."""
        return (self.last_s - self.first_s) / max(1, len(self.ids) - 1)


class TextEngine:
    """Continuous batching over one runner: each turn takes in one chunk of one prompt and decodes one id of each text.

    All ranks of a pool take the same turns: nothing here depends on time.
    """

    def __init__(self, runner: HelixRunner) -> None:
        self.runner = runner
        plan = IdPlan(ranges=((0, runner.decoder.config.vocab_size),))
        self.engine = Engine(HostRunner(runner, plan, device=runner.decoder.options.device))

    def run(self, requests: Sequence[TextRequest], on_token: OnToken | None = None) -> list[TextResult]:
        """Decode all requests; one that fails does not disturb the others.

        Raises:
            DeviceError, PoolError: the device failed, or a rank; all room is given back.
        """
        turn = _Run(self.runner, self.engine, requests, on_token)
        try:
            while turn.busy:
                turn.take_in()
                turn.decode()
        finally:
            turn.end()
        return [turn.results[i] for i in range(len(requests))]


class _Run:
    """The state of one call."""

    def __init__(
        self, runner: HelixRunner, engine: Engine, requests: Sequence[TextRequest], on_token: OnToken | None
    ) -> None:
        self.runner, self.engine, self.requests, self.on_token = runner, engine, requests, on_token
        self.started = time.perf_counter()
        self.waiting = deque(range(len(requests)))
        # The one prompt that is being taken in.
        self.joining: tuple[int, Prefill] | None = None
        # Handle in the engine -> index of the request.
        self.index: dict[int, int] = {}
        self.first_s: dict[int, float] = {}
        self.results: dict[int, TextResult] = {}

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.joining or self.engine.slots)

    def take_in(self) -> None:
        """Admit the next request if there is room, and cache a chunk of the one that is joining."""
        while self.joining is None and self.waiting and self.engine.has_room:
            try:
                prefill = self.runner.open(
                    self.requests[self.waiting[0]].ids, self.requests[self.waiting[0]].num_tokens
                )
            except DecodeError as error:
                self.results[self.waiting.popleft()] = TextResult(ids=(), finish="error", error=str(error))
                continue
            if prefill is None:
                return
            self.joining = self.waiting.popleft(), prefill
        if self.joining is None:
            return
        index, prefill = self.joining
        if not prefill.done:
            with device_faults("taking in a prompt"):
                prefill.advance()
        if prefill.done:
            self._join(index, prefill)
            self.joining = None

    def _join(self, index: int, prefill: Prefill) -> None:
        asked = self.requests[index]
        request = Request(prompt=prefill, num_tokens=asked.num_tokens, sampling=asked.sampling, stop_ids=asked.stop_ids)
        self.index[self.engine.join(request)] = index

    def end(self) -> None:
        """Give back what is still held, as after an error."""
        if self.joining is not None:
            self.runner.close(self.joining[1])
            self.joining = None
        for slot in list(self.engine.slots):
            self.engine.leave(slot.handle)

    def decode(self) -> None:
        """One id for every text under way."""
        slots = list(self.engine.slots)
        if not slots:
            return
        before = [len(slot.chosen) for slot in slots]
        done = self.engine.step()
        now = time.perf_counter() - self.started
        for slot, count in zip(slots, before, strict=True):
            index = self.index[slot.handle]
            self.first_s.setdefault(index, now)
            if self.on_token is not None and len(slot.chosen) > count:
                self.on_token(index, slot.chosen[-1])
        for handle, result in done.items():
            index = self.index.pop(handle)
            self.results[index] = TextResult(
                ids=tuple(result.ids.tolist()),
                finish=result.finish,
                error=result.error,
                first_s=self.first_s[index],
                last_s=now,
            )
