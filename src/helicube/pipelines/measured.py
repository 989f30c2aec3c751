"""Files of measurements: numbers with the machine, the versions and the date that they belong to."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from helicube.errors import InputError
from helicube.geometry.files import unwritable, whole_file

__all__ = ["check_output", "machine", "write_measured"]


def machine() -> dict[str, Any]:
    """Where and when numbers are measured."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }


def check_output(path: Path | None) -> None:
    """Find out before a measurement whether its file could be written.

    Raises:
        InputError: it is a folder, or its folder is missing or may not be written.
    """
    if path is not None and (why := unwritable(path)):
        raise InputError(f"cannot write {path}: {why}")


def write_measured(content: Mapping[str, Any], path: Path) -> None:
    """Content with the machine, as JSON, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    with whole_file(path) as passing:
        passing.write_text(json.dumps({"machine": machine(), **content}, indent=1) + "\n", encoding="utf-8")
