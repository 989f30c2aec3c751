"""Attempts at objects, counted beside the thread that decodes them, which waits for no disk."""

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
    """A thread that books what has been begun, so that objects under which processes die are known."""

    def __init__(self, database: Database, disk: DiskState) -> None:
        self.database, self.disk = database, disk
        # None ends the thread.
        self.begun: queue.SimpleQueue[tuple[Owner, ...] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="helicube-attempts", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def add(self, owners: Iterable[Owner]) -> None:
        """Count an attempt at items, soon."""
        self.begun.put(tuple(owners))

    def stop(self, timeout_s: float) -> None:
        """Book what is left."""
        self.begun.put(None)
        if self.thread.is_alive():
            self.thread.join(timeout_s)

    def _run(self) -> None:
        while (owners := self.begun.get()) is not None:
            try:
                self.database.begin_items(owners)
            except sqlite3.Error as error:
                self.disk.refused(error)
            except Exception:
                # The boundary: whatever goes wrong, the thread goes on.
                log.exception("attempts at %s cannot be counted", owners)
