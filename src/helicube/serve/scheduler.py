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
from helicube.serve.work import Work

__all__ = ["Listener", "Scheduler"]

log = logging.getLogger(__name__)


class Listener(Protocol):
    """What is told of the work; called on the engine's thread, so everything here must be quick."""

    def joined(self, work: Work) -> None: ...

    def stepped(self, work: Work) -> None: ...

    def shape_known(self, work: Work, ids: NDArray[np.int64]) -> None: ...

    def decoded(self, work: Work) -> None: ...

    def failed(self, work: Work, error: Exception) -> None: ...


class Scheduler:
    """Owns the engine and the queue in front of it.

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
        self.waiting: deque[Work] = deque()
        self.draining = self.stopping = False
        # Only the engine's thread writes this.
        self.running: dict[int, Work] = {}
        self.num_tokens = 0
        self.thread = threading.Thread(target=self._run, name="helicube-engine", daemon=True)

    def start(self) -> None:
        self.thread.start()

    @property
    def is_sound(self) -> bool:
        return self.thread.is_alive() or self.stopping

    @property
    def is_idle(self) -> bool:
        """Nothing in the slots, and while draining nothing will be."""
        return not self.running

    @property
    def num_waiting(self) -> int:
        return len(self.waiting)

    def add(self, work: Work) -> None:
        with self.wake:
            self.waiting.append(work)
            self.wake.notify()

    def cancel(self, work: Work) -> None:
        """Drop work from the queue, or free its slot before the next step; `work.cancelled` is set already."""
        with self.wake:
            if work in self.waiting:
                self.waiting.remove(work)
            self.wake.notify()

    def positions(self) -> dict[str, int]:
        """How many are before each object that waits."""
        with self.wake:
            return {work.key: i for i, work in enumerate(self.waiting)}

    def drain(self) -> None:
        """Let no more work into the slots."""
        with self.wake:
            self.draining = True
            self.wake.notify()

    def stop(self, timeout_s: float) -> None:
        """End the thread after the step it is in."""
        with self.wake:
            self.draining = self.stopping = True
            self.wake.notify()
        self.thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self.wake:
                while not self.stopping and not self.running and (self.draining or not self.waiting):
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
        for handle, work in list(self.running.items()):
            if work.cancelled:
                del self.running[handle]
                self.engine.leave(handle)

    def _end_batch(self, error: Exception) -> None:
        log.error("a step failed", exc_info=error)
        for handle, work in list(self.running.items()):
            del self.running[handle]
            try:
                self.engine.leave(handle)
            except Exception:
                log.exception("slot of object %s cannot be freed", work.key)
            self._fail(work, error)

    def _fail(self, work: Work, error: Exception) -> None:
        try:
            self.listener.failed(work, error)
        except Exception:
            log.exception("the failure of object %s cannot be told", work.key)

    def _fill(self) -> None:
        while self.engine.has_room:
            with self.wake:
                if self.draining or not self.waiting:
                    return
                work = self.waiting.popleft()
            if not work.cancelled:
                self._join(work)

    def _join(self, work: Work) -> None:
        try:
            request = work.request or self.prepare(work)
            handle = self.engine.join(request)
        except Exception as error:  # noqa: BLE001 - only this object is to blame
            self._fail(work, error)
            return
        work.handle, work.status, work.joined_s = handle, "decoding", time.monotonic()
        self.running[handle] = work
        self.listener.joined(work)

    def _step(self) -> None:
        results = self.engine.step()
        now, batch = time.monotonic(), len(self.running)
        fed = {slot.handle: slot.num_fed for slot in self.engine.slots}
        for handle, work in self.running.items():
            done = fed.get(handle, len(results[handle].ids) if handle in results else work.num_tokens)
            self.num_tokens += done - work.tokens_done
            work.tokens_done = done
            work.batch, work.last_token_s = batch, now
            work.first_token_s = work.first_token_s or now
        self._tell(results)

    def _tell(self, results: dict[int, Result]) -> None:
        for handle, result in results.items():
            work = self.running.pop(handle)
            if result.finish == "error":
                self._fail(work, DecodeError(result.error))
            elif not work.cancelled:
                self._decoded(work, result)
        for slot in self.engine.slots:
            work, needed = self.running[slot.handle], self.num_shape_ids
            if needed is not None and not work.shape_told and slot.num_fed >= needed:
                work.shape_told = True
                chosen = self.engine.chosen(slot.handle)[:needed]
                self.listener.shape_known(work, np.array(chosen, dtype=np.int64))
            self.listener.stepped(work)

    def _decoded(self, work: Work, result: Result) -> None:
        try:
            work.ids = np.asarray(result.ids.numpy(), dtype=np.int64)
            self.listener.decoded(work)
        except Exception as error:  # noqa: BLE001 - it has left the batch, so that nothing else would end it
            self._fail(work, error)
