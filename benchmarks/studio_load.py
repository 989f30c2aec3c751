"""Clients that ask for one object after the other: how many come, when they show first, and whether all are right."""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from studio_target import Target, request

import helicube
from helicube.errors import HelicubeError

# Objects compared with what the command gives: each takes as long as it took to make.
CHECKED = 12
# Seconds of the run with one slot, which only says how much sharing steps gains.
ALONE_S = 30.0


class Clients:
    """Threads that each wait for an object before asking for the next."""

    def __init__(self, target: Target, count: int, seconds: float) -> None:
        self.target, self.until = target, time.monotonic() + seconds
        self.numbers = itertools.count()
        # Number, seconds to the first preview and to the object, its id; None where it was lost.
        self.rows: list[tuple[int, float | None, float, str | None]] = []
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()

    def run(self) -> None:
        client = helicube.Client(self.target.url)
        while time.monotonic() < self.until:
            number, started = next(self.numbers), time.monotonic()
            preview, made = None, None
            try:
                asked = request(number)
                job = client.submit(asked.pop("prompt"), **asked)
                for name, data in client.events(job["id"]):
                    if name == "preview" and preview is None:
                        preview = time.monotonic() - started
                    if name == "end" and data["status"] == "done":
                        made = data["objects"][0]["id"]
            except HelicubeError as error:
                print(f"request {number}: {error}", file=sys.stderr)
            finally:
                # Whatever happened, it was asked for: what did not come is lost.
                self.rows.append((number, preview, time.monotonic() - started, made))


def percentiles(values: list[float]) -> dict[str, float | None]:
    if len(values) < 2:
        return {"p50": values[0] if values else None, "p95": values[0] if values else None}
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": round(cuts[9], 3), "p95": round(cuts[18], 3)}


def measure(options: argparse.Namespace, count: int, slots: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        target = Target(options, Path(folder), slots)
        try:
            # Not measured: the first step and the first mesh allocate.
            helicube.Client(target.url).generate("a warm cup", quality="draft")
            started = time.monotonic()
            rows = Clients(target, count, seconds).rows
            elapsed = time.monotonic() - started
            engine = helicube.Client(target.url)._json("GET", "/v1/engine")
            done = [row for row in rows if row[3] is not None]
            sample = done[:: max(1, len(done) // CHECKED)][:CHECKED]
            client = helicube.Client(target.url)
            wrong = [number for number, _, _, made in sample if client.file(str(made)) != target.expected(number)]
        finally:
            target.stop()
    return {
        "clients": count,
        "slots": slots,
        "seconds": round(elapsed, 1),
        "objects": len(done),
        "objects_per_minute": round(60 * len(done) / elapsed, 1),
        "first_preview_s": percentiles([p for _, p, _, _ in rows if p is not None]),
        "object_s": percentiles([s for _, _, s, made in rows if made is not None]),
        "tpot_s": engine["tpot_s"],
        "lost": len(rows) - len(done),
        "checked": len(sample),
        "wrong": wrong,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    seconds = options.seconds
    runs = [measure(options, count, options.slots, seconds) for count in options.clients or [1, 8, 32]]
    # What joining the running batch gains: the same eight users before an engine with one slot.
    alone = measure(options, 8, 1, min(seconds, ALONE_S))
    together = next((r for r in runs if r["clients"] == 8), None) or measure(options, 8, options.slots, seconds)
    gain = together["objects_per_minute"] / max(alone["objects_per_minute"], 1e-9)
    # The steps of the small model last as long as they are told to, however many share one: they show no gain.
    gain = None if options.small else round(gain, 2)
    sound = all(not r["lost"] and not r["wrong"] and r["objects"] for r in [*runs, together, alone])
    return {"runs": runs, "one_at_a_time": alone, "gain_at_8": gain, "sound": sound}
