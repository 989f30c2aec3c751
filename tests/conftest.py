"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

# Before any test module imports triton: without a GPU its kernels run in the interpreter.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

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
