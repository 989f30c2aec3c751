"""The server under test as a function, for a process that is forked from one that has imported all of this."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import small_server

from helicube.engine.options import EngineOptions
from helicube.pipelines.text_to_shape import load
from helicube.serve.config import Limits, ServeConfig
from helicube.serve.server import bind, serve


def run(
    *, small: bool, weights: str | None, step_s: float, data_dir: str, port: int, slots: int,
    ready: Callable[[str], None],
) -> None:  # fmt: skip
    """Serve until told to stop; `ready` gets the address."""
    limits = Limits(objects_per_minute=0, requests_per_s=0, queue=1000)
    if small:
        small_server.run(data_dir=data_dir, port=port, step_s=step_s, slots=slots, limits=limits, ready=ready)
        return
    config = ServeConfig(data_dir=Path(data_dir), port=port, slots=slots, limits=limits)
    pipeline = load(weights, options=EngineOptions(steps_per_launch=1))
    serve(config, pipeline, bind(config.host, config.port), ready)
