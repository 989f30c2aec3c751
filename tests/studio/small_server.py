"""`helicube serve` over the small model: python small_server.py DATA_DIR [PORT] [STEP_S] [SLOTS] [QUEUE] [STREAMS]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from small import small_pipeline

from helicube.serve.config import Limits, ServeConfig
from helicube.serve.server import bind, serve
from helicube.serve.start import write_log


def run(*, data_dir: str, port: int, step_s: float, slots: int, limits: Limits, ready: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    config = ServeConfig(data_dir=Path(data_dir), port=port, slots=slots, grace_s=10, limits=limits)
    serve(config, small_pipeline(step_s), bind(config.host, config.port), ready)


def main() -> None:
    write_log()
    given = sys.argv[1:]
    data_dir, port, step_s, slots, queue, streams = [*given, *("", "0", "0", "8", "64", "256")[len(given) :]]
    limits = Limits(objects_per_minute=0, requests_per_s=0, queue=int(queue), streams=int(streams))

    def ready(url: str) -> None:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()

    run(data_dir=data_dir, port=int(port), step_s=float(step_s), slots=int(slots), limits=limits, ready=ready)


if __name__ == "__main__":
    main()
