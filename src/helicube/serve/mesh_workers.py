"""Threads that turn ids into meshes beside the engine: previews before finished objects, unless those wait long."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from helicube.serve.work import Work

__all__ = ["MeshWorkers"]

Task = Callable[[], None]
# A coarse preview, a finer one, the finished object.
COARSE, FINER, FINAL = range(3)
# Seconds by which a task of each kind lets more urgent ones of newer objects pass, by when the objects joined the
# batch: decoding runs ahead of meshing, and an old object's mesh would else wait for the choice of all decoded since.
YIELD_S = (0.0, 1.0, 2.0)

log = logging.getLogger(__name__)


class MeshWorkers:
    """A pool of threads with a queue by urgency and age.

    Args:
        failed: told of work whose task raised something.
        under_way: entered for as long as a task of a work runs.
    """

    def __init__(
        self,
        num_threads: int,
        failed: Callable[[Work, Exception], None],
        under_way: Callable[[Work], AbstractContextManager[None]],
    ) -> None:
        self.failed, self.under_way = failed, under_way
        self.tasks: queue.PriorityQueue[tuple[float, int, Work | None, Task | None]] = queue.PriorityQueue()
        self.order = itertools.count()
        self.lock = threading.Lock()
        self.num_pending = 0
        self.stopping = False
        self.threads = [
            threading.Thread(target=self._run, name=f"helicube-mesh-{i}", daemon=True) for i in range(num_threads)
        ]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    @property
    def is_sound(self) -> bool:
        return self.stopping or all(thread.is_alive() for thread in self.threads)

    @property
    def is_idle(self) -> bool:
        return self.num_pending == 0

    def add(self, urgency: int, work: Work, task: Task) -> None:
        """Run a task unless its work is cancelled by then."""
        with self.lock:
            self.num_pending += 1
        self.tasks.put((work.joined_s + YIELD_S[urgency], next(self.order), work, task))

    def stop(self, timeout_s: float) -> None:
        """Finish the tasks under way and no others."""
        self.stopping = True
        for _ in self.threads:
            self.tasks.put((0.0, next(self.order), None, None))
        for thread in self.threads:
            thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            _, _, work, task = self.tasks.get()
            if work is None or task is None or self.stopping:
                return
            try:
                self._attempt(work, task)
            finally:
                with self.lock:
                    self.num_pending -= 1

    def _attempt(self, work: Work, task: Task) -> None:
        """The boundary: whatever goes wrong in a task ends its work, and never the thread."""
        try:
            if not work.cancelled:
                with self.under_way(work):
                    task()
        except Exception as error:  # noqa: BLE001 - see above
            try:
                self.failed(work, error)
            except Exception:
                log.exception("the failure of object %s cannot be told", work.key)
