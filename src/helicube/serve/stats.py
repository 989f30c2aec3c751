"""What the service measures of itself: for Prometheus, and for the page's live view."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Stats"]

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
PER_TOKEN = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)
# Values behind each median, and samples of the live view, one a second.
RECENT, HISTORY = 100, 120


class Stats:
    """Counters, histograms and the medians of the last hundred."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.started_s = time.monotonic()
        self.lock = threading.Lock()
        self.tally: Tally[str] = Tally()
        self.recent: dict[str, deque[float]] = {}
        self.history: deque[dict[str, float | None]] = deque(maxlen=HISTORY)
        self.last_sample: tuple[float, int] = (time.monotonic(), 0)
        r = self.registry
        self.objects = Counter("helicube_objects", "Objects by outcome", ["outcome"], registry=r)
        self.tokens = Counter("helicube_tokens", "Ids decoded", registry=r)
        self.answers = Counter(
            "helicube_http_answers", "Answers by method and status", ["method", "status"], registry=r
        )
        self.histograms = {
            "ttft_s": Histogram("helicube_ttft_seconds", "Asked for to first id", buckets=SECONDS, registry=r),
            "tpot_s": Histogram("helicube_tpot_seconds", "Time per id", buckets=PER_TOKEN, registry=r),
            "first_preview_s": Histogram(
                "helicube_first_preview_seconds", "Asked for to first preview", buckets=SECONDS, registry=r
            ),
            "object_s": Histogram("helicube_object_seconds", "Asked for to finished", buckets=SECONDS, registry=r),
        }

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(f"helicube_{name}", text, registry=self.registry).set_function(value)

    def ended(self, outcome: str) -> None:
        """Book an object: done, cached, failed or cancelled."""
        self.objects.labels(outcome).inc()
        with self.lock:
            self.tally[outcome] += 1

    def observe(self, name: str, value: float) -> None:
        self.histograms[name].observe(value)
        with self.lock:
            self.recent.setdefault(name, deque(maxlen=RECENT)).append(value)

    def median(self, name: str) -> float | None:
        with self.lock:
            values = list(self.recent.get(name, ()))
        return statistics.median(values) if values else None

    def sample(self, running: int, queued: int, num_tokens: int) -> None:
        """Add a point to the live view, and the ids since the last one to their counter."""
        now, (then, before) = time.monotonic(), self.last_sample
        rate = (num_tokens - before) / max(now - then, 1e-9)
        self.tokens.inc(num_tokens - before)
        self.last_sample = (now, num_tokens)
        self.history.append(
            {
                "at": time.time(),
                "running": running,
                "queued": queued,
                "tokens_per_s": rate,
                # Each object in the batch gets one id per step.
                "tpot_s": running / rate if rate > 0 and running else None,
            }
        )

    @property
    def as_dict(self) -> dict[str, Any]:
        last = self.history[-1] if self.history else {}
        return {
            **{f"num_{name}": self.tally[name] for name in ("done", "failed", "cancelled", "cached")},
            **{name: self.median(name) for name in self.histograms},
            "tokens_per_s": last.get("tokens_per_s"),
            "uptime_s": time.monotonic() - self.started_s,
            "history": list(self.history),
        }

    def exposition(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self.registry)
