"""Shared fixtures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from helicube.idle_threads import let_idle_threads_sleep

# Two workers and the services that they start share the cores; spinning threads would starve each other.
let_idle_threads_sleep()

import torch  # noqa: E402 - reads the environment when it is loaded

# Before any test module imports triton: without a GPU its kernels run in the interpreter.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Fixtures of tests/browser. A conftest.py of its own would be a second module of that name to mypy.
pytest_plugins = ["browser.chromium_pages"]

SHARED = Path(os.environ.get("HELICUBE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder with the golden values and training objects; missing is a failure in CI and a skip elsewhere."""
    if not SHARED.is_dir():
        message = f"{SHARED} is missing; set HELICUBE_SHARED to the folder that holds golden/ and data/"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return SHARED


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts services over a small model, see tests/studio; all stop with the test."""
    from studio_start import starter

    with ExitStack() as stack:
        yield starter(stack, tmp_path)
