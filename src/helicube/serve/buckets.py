"""Token buckets: how much each client may ask for."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

__all__ = ["Buckets"]


class Buckets:
    """A token bucket per client address.

    Args:
        per_s: refill; 0 or less: no limit.
        burst: size of a bucket; one token at least, or nothing would ever pass.
    """

    def __init__(self, per_s: float, burst: float, max_clients: int = 10_000) -> None:
        self.per_s, self.burst, self.max_clients = per_s, max(1.0, burst), max_clients
        self.lock = threading.Lock()
        # Address to tokens left and when that was true.
        self.left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, amount: float = 1.0) -> float:
        """0 if a request may pass, or else the seconds until it may.

        Args:
            amount: what it costs; more than a bucket holds takes a full one, and leaves a debt.
        """
        if self.per_s <= 0:
            return 0.0
        with self.lock:
            now = time.monotonic()
            tokens, then = self.left.pop(client, (self.burst, now))
            tokens = min(self.burst, tokens + (now - then) * self.per_s)
            lacking = min(amount, self.burst) - tokens
            self.left[client] = (tokens if lacking > 0 else tokens - amount, now)
            if len(self.left) > self.max_clients:
                self.left.popitem(last=False)
        return max(0.0, lacking / self.per_s)

    def give(self, client: str, amount: float) -> None:
        """Give back what was taken for nothing."""
        with self.lock:
            if client in self.left:
                tokens, then = self.left[client]
                self.left[client] = (min(self.burst, tokens + amount), then)
