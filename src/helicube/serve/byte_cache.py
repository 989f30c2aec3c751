"""Bytes by key, the least used dropped beyond a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

__all__ = ["ByteCache"]


class ByteCache:
    """For encoded files and previews; safe to share between threads."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.num_bytes = max_bytes, 0
        self.lock = threading.Lock()
        self.entries: OrderedDict[Hashable, bytes] = OrderedDict()

    def put(self, key: Hashable, data: bytes) -> None:
        with self.lock:
            self.num_bytes += len(data) - len(self.entries.pop(key, b""))
            self.entries[key] = data
            while self.num_bytes > self.max_bytes and len(self.entries) > 1:
                _, dropped = self.entries.popitem(last=False)
                self.num_bytes -= len(dropped)

    def get(self, key: Hashable) -> bytes | None:
        with self.lock:
            if key in self.entries:
                self.entries.move_to_end(key)
            return self.entries.get(key)

    def drop(self, matches: Callable[[Hashable], bool]) -> None:
        with self.lock:
            for key in [key for key in self.entries if matches(key)]:
                self.num_bytes -= len(self.entries.pop(key))
