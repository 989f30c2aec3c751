"""Error tables of predictions against measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from helicube.planner.arrays import Array
from helicube.planner.report import Table
from helicube.planner.serving_table import ServingRow

__all__ = ["GROUPINGS", "ErrorSummary", "error_table", "rank_accuracy", "summarise"]

# How rows are grouped in tables.
GROUPINGS: dict[str, Callable[[ServingRow], str]] = {
    "model": lambda row: row.model.name,
    "GPU": lambda row: row.hardware.name,
    "engine": lambda row: row.engine,
    "layout": lambda row: row.layout,
    "precision": lambda row: row.precision,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorSummary:
    """Relative errors of TPOT, predicted over measured minus 1."""

    count: int
    median_absolute: float
    mean_absolute: float
    within_20: float
    # Share of rows within 20 %.
    bias: float
    # Median signed error.

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells."""
        return (str(self.count), f"{self.median_absolute:.1%}", f"{self.mean_absolute:.1%}", f"{self.within_20:.0%}",
                f"{self.bias:+.1%}")  # fmt: skip


_HEADER = ("rows", "median |error|", "mean |error|", "within 20 %", "bias")


def summarise(errors: Array) -> ErrorSummary:
    """Summary of (rows,) signed relative errors."""
    size = np.abs(errors)
    return ErrorSummary(
        count=len(errors), median_absolute=float(np.median(size)), mean_absolute=float(np.mean(size)),
        within_20=float(np.mean(size <= 0.2)), bias=float(np.median(errors)),
    )  # fmt: skip


def error_table(title: str, name: str, rows: Sequence[ServingRow], errors: Array) -> Table:
    """Errors by one of GROUPINGS, and of all rows."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(GROUPINGS[name](row), []).append(i)
    body = [(key, *summarise(errors[groups[key]]).cells) for key in sorted(groups)]
    body.append(("all", *summarise(errors).cells))
    return Table(title=title, header=(name, *_HEADER), rows=tuple(body))


def rank_accuracy(
    rows: Sequence[ServingRow], predicted: Array, measured: Array, *, per_gpu: bool = False
) -> tuple[float, int]:
    """(share of pairs ranked right, pairs) over pairs of layouts of the same model, GPU, engine, precision and load.

    Args:
        rows: (rows,)
        predicted: (rows,) TPOT.
        measured: (rows,) TPOT.
        per_gpu: rank by throughput of one GPU instead of by TPOT.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, r in enumerate(rows):
        key = (r.engine, r.model.name, r.hardware.name, r.precision, r.prompt, r.output, r.concurrency)
        groups.setdefault(key, []).append(i)
    weight = np.array([row.num_gpus if per_gpu else 1.0 for row in rows])
    right = total = 0
    for members in groups.values():
        for n, i in enumerate(members):
            for j in members[n + 1 :]:
                if rows[i].layout == rows[j].layout:
                    continue
                total += 1
                a, b = measured[[i, j]] * weight[[i, j]], predicted[[i, j]] * weight[[i, j]]
                right += int((a[0] < a[1]) == (b[0] < b[1]))
    return (right / total if total else float("nan")), total
