"""The rows of a run's `metrics.jsonl`, one for each evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helicube.errors import InputError
from helicube.geometry.files import whole_file
from helicube.train.plots import plot_metrics

__all__ = ["add_row", "drop_rows_after"]

LOG_FILE = "metrics.jsonl"


def add_row(folder: Path, row: dict[str, Any]) -> None:
    """Append a row and draw the plot anew.

    Raises:
        InputError: one of the two cannot be written.
    """
    try:
        with (folder / LOG_FILE).open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        plot_metrics(folder)
    except OSError as error:
        raise InputError(
            f"cannot write {folder / LOG_FILE} and its picture ({error.strerror}); free some space or mend the folder, "
            "and give the same command again"
        ) from None


def drop_rows_after(folder: Path, step: int) -> None:
    """Take out rows of later steps: a run that was killed does these again, and would write them twice."""
    log = folder / LOG_FILE
    if not log.is_file():
        return
    # Whatever a power cut left.
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    kept = [line for line in lines if _step_of(line) <= step]
    if kept != lines:
        with whole_file(log) as passing:
            passing.write_text("".join(line + "\n" for line in kept), encoding="utf-8")


def _step_of(line: str) -> float:
    # A line cut short by a full disk or a power cut is of no step.
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
