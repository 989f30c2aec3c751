"""kill -9 at random moments under load: every accepted job must end, every finished object be whole and right."""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from studio_target import Target, request

import helicube
from helicube.errors import HelicubeError, InputError
from helicube.serve.config import Limits

# Objects compared with what the command gives.
CHECKED = 40


class Load:
    """Threads that keep asking, whatever happens to the server, and remember what it accepted."""

    def __init__(self, target: Target, count: int) -> None:
        self.target, self.stopping = target, threading.Event()
        self.numbers = itertools.count()
        self.accepted: list[tuple[int, str]] = []
        self.seen: list[tuple[int, str, bytes]] = []
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        client = helicube.Client(self.target.url, patience_s=0, timeout_s=10)
        while not self.stopping.is_set():
            number = next(self.numbers)
            asked = {**request(number), "quality": "draft"}
            try:
                job = client.submit(str(asked.pop("prompt")), **asked)
                self.accepted.append((number, job["id"]))
                for _ in range(200):
                    view = client.job(job["id"])
                    if view["ended_at"] is not None or self.stopping.wait(0.05):
                        break
                if view["status"] == "done":
                    made = view["objects"][0]["id"]
                    self.seen.append((number, made, client.file(made)))
            except (HelicubeError, OSError, ValueError):
                # Killed in the midst of an answer; whether it was accepted, the server's own list says.
                time.sleep(0.05)

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def end_of(client: helicube.Client, job: str) -> dict[str, Any] | None:
    """The ended job, None if it has ended so long ago that it was forgotten."""
    try:
        return client.wait(job)
    except InputError:
        return None


def unended(client: helicube.Client) -> list[str]:
    """Jobs that have not ended, those included whose acceptance no client heard of; waits for them."""
    left: list[str] = []
    until = time.monotonic() + 120
    while time.monotonic() < until:
        left = [job["id"] for job in client._json("GET", "/v1/jobs?limit=200")["jobs"] if job["ended_at"] is None]
        engine = client._json("GET", "/v1/engine")
        if not left and not engine["running"] + engine["queued"] + engine["meshing"]:
            return []
        time.sleep(0.2)
    return left or ["of more than 200 jobs"]


def shoot(options: argparse.Namespace, target: Target, load: Load) -> tuple[list[float], int]:
    """Kill and restart until the load stops; seconds that each start took, and objects seen before the last kill."""
    chance = random.Random(options.seed)
    downtimes: list[float] = []
    finished_before_last = 0
    for _ in range(options.kills):
        time.sleep(chance.uniform(0.05, options.within_s))
        # As far as clients saw: shows that kills fall into work, not into start-up alone.
        finished_before_last = len(load.seen)
        target.kill()
        started = time.monotonic()
        target.start()
        downtimes.append(time.monotonic() - started)
    load.stop()
    return downtimes, finished_before_last


def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        target = Target(options, Path(folder), forked=True)
        load = Load(target, (options.clients or [8])[0])
        downtimes, finished_before_last = shoot(options, target, load)
        client = helicube.Client(target.url)
        ended = [(number, end_of(client, job)) for number, job in load.accepted]
        never_ended = unended(client)
        objects = {made["id"] for made in client.objects()}
        broken = [key for key in objects if not client.file(key).startswith(b"glTF")]
        changed = [number for number, made, data in load.seen if client.file(made) != data]
        sample = load.seen[:: max(1, len(load.seen) // CHECKED)][:CHECKED]
        wrong = [number for number, _, data in sample if data != target.expected(number, cells=64)]
        target.stop()
        left = [path.name for path in (Path(folder) / "objects").iterdir() if path.suffix not in {".npz", ".png"}]
    # One that was under way in many processes that died may be what killed them; the service then says so.
    given_up = [n for n, job in ended if job and (job["objects"][0]["error"] or {}).get("code") == "crashed"]
    lost = [n for n, job in ended if job and job["status"] != "done" and n not in given_up]
    # Ended jobs beyond the newest thousand are forgotten, and none before.
    forgotten = sum(job is None for _, job in ended)
    early = forgotten > max(0, len(ended) - Limits().jobs)
    return {
        "kills": options.kills,
        "accepted": len(load.accepted),
        "seen_by_clients": len(load.seen),
        "of_these_between_kills": finished_before_last,
        "objects": len(objects),
        "lost": lost,
        "given_up": given_up,
        "unended": never_ended,
        "forgotten": forgotten,
        "broken": broken,
        "changed_after_a_kill": changed,
        "checked": len(sample),
        "wrong": wrong,
        "parts_left": left,
        "restart_s": round(sum(downtimes) / max(1, len(downtimes)), 2),
        "sound": not (lost or given_up or never_ended or early or broken or changed or wrong or left)
        and len(objects) > 0,
    }
