"""`helicube serve` over the small model: python small_server.py DATA_DIR [PORT] [STEP_S] [SLOTS] [QUEUE]."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from small import small_pipeline

from helicube.serve.config import Limits, ServeConfig
from helicube.serve.server import bind, serve


def main() -> None:
    torch.set_num_threads(1)
    data_dir, port, step_s, slots, queue, *_ = [*sys.argv[1:], *["0", "0", "8", "64"][len(sys.argv) - 2 :]]
    limits = Limits(jobs_per_minute=0, requests_per_s=0, queue=int(queue))
    config = ServeConfig(data_dir=Path(data_dir), port=int(port), slots=int(slots), grace_s=10, limits=limits)
    listener = bind(config.host, config.port)

    def ready(url: str) -> None:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()

    serve(config, small_pipeline(float(step_s)), listener, ready)


if __name__ == "__main__":
    main()
