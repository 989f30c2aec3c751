"""The one thread that steps the engine: what is asked for joins the running batch at the next step, first come first
served."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helicube.engine.engine import Engine
from helicube.engine.request import Request, Result
from helicube.errors import DecodeError
from helicube.pipelines.object_steps import ObjectSteps
from helicube.serve.work import Draw, Work

__all__ = ["Listener", "Scheduler"]

log = logging.getLogger(__name__)


class Listener(Protocol):
    """What is told of the work; called on the engine's thread, so everything here must be quick."""

    def joined(self, work: Work) -> None: ...

    def stepped(self, work: Work) -> None: ...

    # Of the first candidate.
    def shape_known(self, work: Work, ids: NDArray[np.int64]) -> None: ...

    def decoded(self, work: Work) -> None: ...

    def failed(self, work: Work, error: Exception) -> None: ...


class Scheduler:
    """Owns the engine and the queue in front of it, in which each candidate of an object waits for a slot of its own.

    Args:
        prepare: makes a request of work that came without one.
        num_shape_ids: ids after which the listener is told of the shape; None: never.
    """

    def __init__(
        self, engine: Engine, listener: Listener, prepare: Callable[[Work], Request], num_shape_ids: int | None
    ) -> None:
        self.engine, self.listener, self.prepare, self.num_shape_ids = engine, listener, prepare, num_shape_ids
        # Guards the three below, and wakes the thread.
        self.wake = threading.Condition()
        # Those of one object stand together, so that of what is begun the rest is at the front.
        self.waiting: deque[Draw] = deque()
        self.draining = self.stopping = False
        # Only the engine's thread writes this.
        self.running: dict[int, Draw] = {}
        self.num_tokens = 0
        # Slots that could not be freed, by handle.
        self.stuck: set[int] = set()
        self.thread = threading.Thread(target=self._run, name="helicube-engine", daemon=True)

    def start(self) -> None:
        self.thread.start()

    @property
    def is_sound(self) -> bool:
        is_stuck = any(slot.handle in self.stuck for slot in list(self.engine.slots))
        return (self.thread.is_alive() and not is_stuck) or self.stopping

    @property
    def is_idle(self) -> bool:
        """Nothing in the slots, and while draining nothing will be."""
        with self.wake:
            return not self.running and self._next() is None

    @property
    def num_waiting(self) -> int:
        """Objects of which nothing is in a slot yet."""
        return len(self.positions())

    def add(self, work: Work) -> None:
        with self.wake:
            self.waiting.extend(work.draws)
            self.wake.notify()

    def cancel(self, work: Work) -> None:
        """Drop work from the queue, or free its slots before the next step; `work.cancelled` is set already."""
        with self.wake:
            self.waiting = deque(draw for draw in self.waiting if draw.work is not work)
            self.wake.notify()

    def positions(self) -> dict[str, int]:
        """How many are before each object that waits."""
        with self.wake:
            works = dict.fromkeys(draw.work for draw in self.waiting if draw.work.status == "queued")
        return {work.key: i for i, work in enumerate(works)}

    def drain(self) -> None:
        """Let no more work into the slots, but for the rest of what is begun."""
        with self.wake:
            self.draining = True
            self.wake.notify()

    def stop(self, timeout_s: float) -> None:
        """End the thread after the step it is in."""
        with self.wake:
            self.draining = self.stopping = True
            self.wake.notify()
        self.thread.join(timeout_s)

    def _next(self) -> Draw | None:
        """Who is to have the next slot; called under `wake`."""
        first = self.waiting[0] if self.waiting else None
        return None if first is None or (self.draining and first.work.status == "queued") else first

    def _run(self) -> None:
        while True:
            with self.wake:
                while not self.stopping and not self.running and self._next() is None:
                    self.wake.wait()
                if self.stopping:
                    return
            try:
                self._free_cancelled()
                self._fill()
                if self.running:
                    self._step()
            except Exception as error:  # noqa: BLE001 - the boundary: whatever goes wrong, the thread goes on
                # A step that failed says nothing about which object was to blame: all of the batch end.
                self._end_batch(error)
                # One that comes back at once is not to fill the log.
                time.sleep(0.05)

    def _free_cancelled(self) -> None:
        for handle, draw in list(self.running.items()):
            if draw.work.cancelled:
                del self.running[handle]
                self._leave(handle, draw)

    def _leave(self, handle: int, draw: Draw) -> None:
        try:
            self.engine.leave(handle)
        except Exception:
            self.stuck.add(handle)
            log.exception("slot of object %s cannot be freed", draw.work.key)

    def _end_batch(self, error: Exception) -> None:
        log.error("a step failed", exc_info=error)
        works = dict.fromkeys(draw.work for draw in self.running.values())
        for handle, draw in list(self.running.items()):
            del self.running[handle]
            self._leave(handle, draw)
        for work in works:
            self._fail(work, error)

    def _fail(self, work: Work, error: Exception) -> None:
        try:
            self.listener.failed(work, error)
        except Exception:
            log.exception("the failure of object %s cannot be told", work.key)
        # Its other candidates are of no use.
        work.cancelled = True
        self.cancel(work)

    def _fill(self) -> None:
        while self.engine.has_room:
            with self.wake:
                draw = self._next()
            if draw is None:
                return
            if not draw.work.cancelled:
                self._join(draw)
            with self.wake:
                # Not before it has joined, so that it is always seen in one place; cancelled meanwhile, it is gone.
                if draw in self.waiting:
                    self.waiting.remove(draw)

    def _join(self, draw: Draw) -> None:
        work = draw.work
        try:
            # Kept for the other candidates.
            work.request = work.request or self.prepare(work)
            handle = self.engine.join(ObjectSteps.candidate(work.request, draw.number))
        except Exception as error:  # noqa: BLE001 - only this object is to blame
            self._fail(work, error)
            return
        draw.joined_s = time.monotonic()
        # From here on tokens are counted.
        draw.last_token_s = draw.joined_s
        self.running[handle] = draw
        if work.status == "queued":
            work.status, work.joined_s = "decoding", draw.joined_s
            self.listener.joined(work)

    def _step(self) -> None:
        results = self.engine.step()
        now, batch = time.monotonic(), len(self.running)
        fed = {slot.handle: slot.num_fed for slot in self.engine.slots}
        for handle, draw in self.running.items():
            work = draw.work
            done = fed.get(handle, len(results[handle].ids) if handle in results else work.num_tokens)
            self.num_tokens += done - draw.tokens_done
            draw.tokens_done, draw.last_token_s = done, now
            work.batch, work.last_token_s = batch, now
            work.first_token_s = work.first_token_s or now
        self._tell(results)

    def _tell(self, results: dict[int, Result]) -> None:
        for handle, result in results.items():
            draw = self.running.pop(handle)
            if result.finish == "error":
                self._fail(draw.work, DecodeError(result.error))
            elif not draw.work.cancelled:
                self._decoded(draw, result)
        for slot in self.engine.slots:
            left, needed = self.running.get(slot.handle), self.num_shape_ids
            if left is None or left.work.cancelled:
                # Another candidate of it has failed, or its slot could not be freed.
                continue
            if needed is not None and left.number == 0 and not left.shape_told and slot.num_fed >= needed:
                left.shape_told = True
                chosen = self.engine.chosen(slot.handle)[:needed]
                self.listener.shape_known(left.work, np.array(chosen, dtype=np.int64))
            self.listener.stepped(left.work)

    def _decoded(self, draw: Draw, result: Result) -> None:
        try:
            draw.ids = np.asarray(result.ids.numpy(), dtype=np.int64)
            if all(other.ids is not None for other in draw.work.draws):
                self.listener.decoded(draw.work)
        except Exception as error:  # noqa: BLE001 - it has left the batch, so that nothing else would end it
            self._fail(draw.work, error)
