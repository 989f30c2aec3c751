"""What the disk did not take, written as soon as it does."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable

from helicube.serve.database import Database
from helicube.serve.disk_state import DiskState
from helicube.serve.work import Owner, Work

__all__ = ["LateWrites"]

# Owners, status, error.
End = tuple[list[Owner], str, dict[str, str] | None]


class LateWrites:
    """Ends of objects, and objects that are decoded but could not be kept.

    Args:
        again: finishes an object once more, and calls `park` or `settled`.
        told: told of the jobs whose objects' ends were written late.
    """

    def __init__(
        self,
        database: Database,
        disk: DiskState,
        again: Callable[[Work], None],
        told: Callable[[Iterable[str]], None],
    ) -> None:
        self.database, self.disk, self.again, self.told = database, disk, again, told
        # Guards the four below, and the moment in which the disk is called sound; nothing else is called under it.
        self.lock = threading.Lock()
        self.ends: list[End] = []
        self.parked: list[Work] = []
        self.trying: set[Work] = set()
        # Jobs whose ends are written and not told.
        self.untold: set[str] = set()

    @property
    def is_sound(self) -> bool:
        return self.disk.is_sound and not self.ends and not self.parked

    def end(self, owners: list[Owner], status: str, error: dict[str, str] | None = None) -> None:
        """Book the end of items, now or later."""
        try:
            self.database.end_items(owners, status, error)
        except sqlite3.Error as cause:
            # Before the disk is noted: what another thread then writes late has it.
            with self.lock:
                self.ends.append((owners, status, error))
            self.disk.refused(cause)

    def park(self, work: Work, error: Exception) -> None:
        """Keep an object under way until there is room for it."""
        with self.lock:
            self.trying.discard(work)
            self.parked.append(work)
        self.disk.refused(error)

    def settled(self, work: Work) -> None:
        """An object has ended."""
        with self.lock:
            self.trying.discard(work)

    def tick(self) -> None:
        """Look at the disk, and write what waits if it is time to try; called once a second."""
        has_room = self.disk.has_room()
        with self.lock:
            waits = bool(self.ends or self.parked or self.untold)
        is_time = self.disk.take_turn() or (waits and self.disk.is_sound)
        if not is_time or not has_room:
            return
        try:
            self.database.probe()
            self._write()
        except sqlite3.Error as error:
            self.disk.refused(error)

    def _write(self) -> None:
        with self.lock:
            ends, self.ends = self.ends, []
            works, self.parked = [work for work in self.parked if not work.cancelled], []
            self.trying = {work for work in self.trying if not work.cancelled} | set(works)
            self.untold |= {job for owners, _, _ in ends for job, _ in owners}
        for work in works:
            self.again(work)
        for owners, status, error in ends:
            self.end(owners, status, error)
        jobs = set(self.untold)
        # Reads rows, which a failing disk may refuse: they are then told the next time.
        self.told(jobs)
        with self.lock:
            self.untold -= jobs
            if not (self.ends or self.parked or self.trying or self.untold):
                self.disk.took()
