"""Attempts at objects, counted beside the threads that make them, which wait for no disk."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from helicube.serve.database import Database
from helicube.serve.disk_state import DiskState
from helicube.serve.work import Work

__all__ = ["Attempts"]

log = logging.getLogger(__name__)


class Attempts:
    """A thread that books what is worked on, so that objects under which processes die are known.

    Only what is in a slot or under a mesh thread counts: what waits between the two kills nobody.
    """

    def __init__(self, database: Database, disk: DiskState) -> None:
        self.database, self.disk = database, disk
        # None ends the thread.
        self.booked: queue.SimpleQueue[tuple[Work, int] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="helicube-attempts", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def add(self, work: Work) -> None:
        """Count an attempt at an object's items, soon; one, however many threads are at it."""
        self.booked.put((work, 1))

    def take_back(self, work: Work) -> None:
        """The process has lived through the attempt."""
        self.booked.put((work, -1))

    @contextmanager
    def at(self, work: Work) -> Iterator[None]:
        """Count an attempt until the end of the block."""
        self.add(work)
        try:
            yield
        finally:
            self.take_back(work)

    def stop(self, timeout_s: float) -> None:
        """Book what is left."""
        self.booked.put(None)
        if self.thread.is_alive():
            self.thread.join(timeout_s)

    def _run(self) -> None:
        while (booked := self.booked.get()) is not None:
            work, by = booked
            work.attempts += by
            if work.attempts != max(0, by):
                continue
            # Whoever joins in the middle has nothing to take back.
            work.suspects = tuple(work.owners) if by > 0 else work.suspects
            try:
                self.database.count_attempts(work.suspects, by)
            except sqlite3.Error as error:
                self.disk.refused(error)
            except Exception:
                # The boundary: whatever goes wrong, the thread goes on.
                log.exception("attempts at %s cannot be counted", work.suspects)
