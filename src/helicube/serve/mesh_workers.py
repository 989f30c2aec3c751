"""Threads that turn ids into meshes beside the engine: previews before finished objects, older before newer."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable

from helicube.serve.work import Work

__all__ = ["MeshWorkers"]

Task = Callable[[], None]
# A coarse preview, a finer one, the finished object, the end of a thread.
COARSE, FINER, FINAL, STOP = range(4)


class MeshWorkers:
    """A pool of threads with a queue by urgency."""

    def __init__(self, num_threads: int) -> None:
        self.tasks: queue.PriorityQueue[tuple[int, int, Work | None, Task | None]] = queue.PriorityQueue()
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
        """Run a task unless its work is cancelled by then; the task itself answers for what goes wrong in it."""
        with self.lock:
            self.num_pending += 1
        self.tasks.put((urgency, next(self.order), work, task))

    def stop(self, timeout_s: float) -> None:
        """Finish the tasks under way and no others."""
        self.stopping = True
        for _ in self.threads:
            self.tasks.put((STOP, next(self.order), None, None))
        for thread in self.threads:
            thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            _, _, work, task = self.tasks.get()
            if work is None or task is None or self.stopping:
                return
            try:
                if not work.cancelled:
                    task()
            finally:
                with self.lock:
                    self.num_pending -= 1
