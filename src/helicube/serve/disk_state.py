"""Whether the disk takes what is written."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
import time
from pathlib import Path

from helicube.serve.problem import ApiError

__all__ = ["DiskState"]

# Less than this is no room: SQLite may still write where its file had been larger before.
LEAST_BYTES = 65_536
# Seconds between two attempts to write again: doubled from the first to the last.
FIRST_S, LAST_S = 1.0, 30.0

log = logging.getLogger(__name__)


class DiskState:
    """What is known of the disk under a folder; told in the log when it changes, and only then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        # Why it takes nothing; empty while it does.
        self.error = ""
        self.pause_s, self.due_s = FIRST_S, 0.0

    @property
    def is_sound(self) -> bool:
        return not self.error

    def refused(self, error: Exception) -> None:
        """Note that it did not take something."""
        text = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        with self.lock:
            is_news, self.error = not self.error, text
            if is_news:
                self.pause_s, self.due_s = FIRST_S, time.monotonic() + FIRST_S
        if is_news:
            log.error("%s takes nothing (%s: %s); what is finished is kept until it does", self.folder,
                      type(error).__name__, text)  # fmt: skip

    def took(self) -> None:
        """Note that it takes what is written."""
        with self.lock:
            was, self.error = self.error, ""
        if was:
            log.info("%s takes what is written again", self.folder)

    def has_room(self) -> bool:
        """Look whether there is any; if not, that is noted."""
        try:
            usage = shutil.disk_usage(self.folder)
        except OSError as error:
            self.refused(error)
            return False
        # Some file systems say 0 of everything.
        if usage.total and usage.free < LEAST_BYTES:
            self.refused(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            return False
        return True

    def take_turn(self) -> bool:
        """Whether to try again now; the next turn is then twice as far off."""
        with self.lock:
            now = time.monotonic()
            # A damaged database does not heal while it is open; the next start mends or refuses it.
            if not self.error or "malformed" in self.error or now < self.due_s:
                return False
            self.pause_s = min(LAST_S, 2 * self.pause_s)
            self.due_s = now + self.pause_s
            return True

    @property
    def answer(self) -> ApiError:
        text = f"the service's disk takes nothing now ({self.error or 'unknown'}); it goes on once there is room"
        return ApiError(503, text, code="broken", retry_after_s=30)
