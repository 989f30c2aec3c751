"""A service over the small model, called in process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from small import small_pipeline
from starlette.testclient import TestClient

from helicube.serve.app import create_app, guarded
from helicube.serve.config import Limits, ServeConfig
from helicube.serve.service import Service

Start = Callable[..., TestClient]


def starter(stack: ExitStack, folder: Path) -> Start:
    """A function that starts a service and gives a client of it, whose `service` is the service."""

    # Several small models at once: threads that wait for each other's cores only slow all of them down.
    stack.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)

    def start(step_s: float = 0.0, data_dir: Path | None = None, limits: Any = None, **settings: Any) -> TestClient:
        free = {"objects_per_minute": 0.0, "requests_per_s": 0.0}
        config = ServeConfig(
            data_dir=data_dir or folder / "data", limits=Limits(**(free | (limits or {}))),
            **({"grace_s": 1.0} | settings),
        )  # fmt: skip
        service = Service(small_pipeline(step_s), config)
        # The test client enters the life of the app, which the guard passes on.
        client = TestClient(guarded(create_app(service), service), base_url="http://127.0.0.1")
        client.service = service  # type: ignore[attr-defined]
        stack.enter_context(client)
        return client

    return start
