"""The server under test in a process of its own, and the pipeline that says what its objects must be."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from helicube.geometry.export import encode
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.text_to_shape import TextToShape, load

THINGS = ("chair", "table", "car", "lamp", "house", "tree", "boat", "robot")
COLORS = ("red", "blue", "green", "yellow", "brown", "white")


def request(number: int) -> dict[str, Any]:
    """The body of the request of that number: every number asks for another object."""
    prompt = f"a {COLORS[number % len(COLORS)]} {THINGS[number // len(COLORS) % len(THINGS)]}"
    return {"prompt": prompt, "seed": number, "temperature": 1.0}


class Target:
    """`helicube serve` on a free port.

    Args:
        forked: from a process that has imported everything, so that a start does not wait for PyTorch; of the small
            model always.
    """

    def __init__(
        self, options: argparse.Namespace, folder: Path, slots: int | None = None, *, forked: bool = False
    ) -> None:
        self.options, self.folder, self.slots = options, folder, slots or options.slots
        self.forked = forked or options.small
        self.port = 0
        self.start()

    @property
    def command(self) -> list[str]:
        more = ["--weights", self.options.weights] if self.options.weights else []
        return [sys.executable, "-m", "helicube", "serve", "--data-dir", str(self.folder), "--port", str(self.port),
                "--slots", str(self.slots), "--queue", "1000", "--objects-per-minute", "0", "--requests-per-s", "0",
                *more]  # fmt: skip

    def start(self) -> None:
        """Start, or start again on the same port, and wait until it answers."""
        self.url = self._fork() if self.forked else self._spawn()
        self.port = int(self.url.rstrip("/").rpartition(":")[2])

    def _fork(self) -> str:
        import studio_forked

        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["studio_forked"])
        mine, theirs = context.Pipe(duplex=False)
        arguments = {"small": self.options.small, "weights": self.options.weights, "step_s": self.options.step_s,
                     "data_dir": str(self.folder), "port": self.port, "slots": self.slots,
                     "ready": theirs.send}  # fmt: skip
        self.process = context.Process(target=studio_forked.run, kwargs=arguments, daemon=True)
        self.process.start()
        self.pid = self.process.pid
        if not mine.poll(120):
            raise SystemExit("the server did not start within two minutes")
        return str(mine.recv())

    def _spawn(self) -> str:
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.pid = self.child.pid
        assert self.child.stdout is not None
        seen = []
        for line in self.child.stdout:
            seen.append(line)
            if found := re.search(r"http://[\d.]+:\d+/", line):
                threading.Thread(target=self.child.stdout.read, daemon=True).start()
                return found[0]
        raise SystemExit(f"the server did not start: {''.join(seen)[-2000:]}")

    def _signal(self, sig: signal.Signals) -> None:
        assert self.pid is not None
        os.kill(self.pid, sig)
        if self.forked:
            self.process.join(60)
            if self.process.exitcode is None:
                raise SystemExit(f"the server (process {self.pid}) did not end within a minute of signal {sig.name}")
        else:
            self.child.wait(60)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        self._signal(signal.SIGTERM)

    @cached_property
    def pipeline(self) -> TextToShape:
        if self.options.small:
            from small import small_pipeline

            return small_pipeline()
        return load(self.options.weights)

    def expected(self, number: int, cells: int = 128) -> bytes:
        """The GLB that `helicube generate` writes for that request."""
        asked = request(number)
        sampling = replace(self.pipeline.model.sampling, temperature=asked["temperature"], seed=asked["seed"])
        made = self.pipeline.generate_many([asked["prompt"]], [sampling], options=MeshOptions(cells=cells))[0]
        return encode(made.mesh, "glb", name=asked["prompt"][:60])[""]
