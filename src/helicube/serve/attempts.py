"""Attempts at objects, counted beside the threads that make them, which wait for no disk."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Iterable

from helicube.serve.database import Database
from helicube.serve.disk_state import DiskState
from helicube.serve.work import Owner

__all__ = ["Attempts"]

log = logging.getLogger(__name__)


class Attempts:
    """A thread that books what is worked on, so that objects under which processes die are known.

    Only what is in a slot or under a mesh thread counts: what waits between the two kills nobody.
    """

    def __init__(self, database: Database, disk: DiskState) -> None:
        self.database, self.disk = database, disk
        # None ends the thread.
        self.booked: queue.SimpleQueue[tuple[tuple[Owner, ...], int] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="helicube-attempts", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def add(self, owners: Iterable[Owner]) -> None:
        """Count an attempt at items, soon."""
        self.booked.put((tuple(owners), 1))

    def take_back(self, owners: Iterable[Owner]) -> None:
        """The process has lived through the attempt."""
        self.booked.put((tuple(owners), -1))

    def stop(self, timeout_s: float) -> None:
        """Book what is left."""
        self.booked.put(None)
        if self.thread.is_alive():
            self.thread.join(timeout_s)

    def _run(self) -> None:
        while (booked := self.booked.get()) is not None:
            owners, by = booked
            try:
                self.database.count_attempts(owners, by)
            except sqlite3.Error as error:
                self.disk.refused(error)
            except Exception:
                # The boundary: whatever goes wrong, the thread goes on.
                log.exception("attempts at %s cannot be counted", owners)
