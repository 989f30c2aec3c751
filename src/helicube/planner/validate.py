"""Predict measured serving rows, and say how far off the predictions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from helicube.errors import InputError
from helicube.planner.arrays import Array
from helicube.planner.constants import EngineConstants, GpuConstants
from helicube.planner.errors_table import GROUPINGS, error_table, rank_accuracy, summarise
from helicube.planner.predict_rows import group_rows, predict_group
from helicube.planner.report import Table
from helicube.planner.serving_table import ServingRow
from helicube.planner.shipped import shipped_constants

__all__ = ["Validation", "leave_one_out", "predict", "validation_tables", "why_unknown"]

_HELD: dict[str, Callable[[ServingRow], str]] = {name: GROUPINGS[name] for name in ("model", "GPU")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """Predictions of measured rows."""

    rows: tuple[ServingRow, ...]
    predicted_s: Array
    # (rows,)

    @property
    def measured_s(self) -> Array:
        """(rows,) measured TPOT."""
        return np.array([row.tpot_s for row in self.rows])

    @property
    def errors(self) -> Array:
        """(rows,) predicted over measured, minus 1."""
        return self.predicted_s / self.measured_s - 1.0

    def part(self, *, speculative: bool) -> Validation:
        """The measured rows whose speculative decoding is unknown, or the others."""
        index = [i for i, row in enumerate(self.rows) if row.speculative == speculative and row.tpot_s > 0]
        return Validation(rows=tuple(self.rows[i] for i in index), predicted_s=self.predicted_s[index])


def why_unknown(row: ServingRow, gpus: dict[str, GpuConstants] | None = None,
                engines: dict[str, EngineConstants] | None = None) -> str:  # fmt: skip
    """Why a row cannot be predicted with the shipped constants, or with given ones; empty if it can."""
    shipped = shipped_constants()
    gpus, engines = gpus or shipped[0], engines or shipped[1]
    if row.hardware.calibrated_as not in gpus:
        return f"{row.hardware.name} has no calibration; rows of {', '.join(gpus)} can be predicted"
    if row.engine not in engines:
        return f"engine {row.engine!r} has no constants; rows of {', '.join(engines)} can be predicted"
    return ""


def predict(rows: Sequence[ServingRow], gpus: dict[str, GpuConstants] | None = None,
            engines: dict[str, EngineConstants] | None = None) -> Validation:  # fmt: skip
    """Predict rows with the shipped constants, or with given ones.

    Raises:
        InputError: a row's engine or GPU has no constants.
    """
    shipped = shipped_constants()
    gpus, engines = gpus or shipped[0], engines or shipped[1]
    found = np.empty(len(rows))
    for group in group_rows(rows):
        reason = why_unknown(rows[group.index[0]], gpus, engines)
        if reason:
            raise InputError(reason)
        gpu, engine = gpus[group.hardware.calibrated_as], engines[group.engine]
        found[group.index] = predict_group(group, gpu, engine).tpot_s
    return Validation(rows=tuple(rows), predicted_s=found)


def leave_one_out(rows: Sequence[ServingRow], by: str) -> Validation:
    """Predict the rows of each model, GPU or fifth of the table by constants fitted to all others.

    The constants of the kernels stay: they are fitted to other tables.

    Args:
        rows: measured runs, those with speculative decoding left out.
        by: "model", "GPU", or "fifth" (every fifth row).
    """
    from helicube.planner.fit_serving import fit_engines

    labels = [str(i % 5) if by == "fifth" else _HELD[by](row) for i, row in enumerate(rows)]
    gpus = shipped_constants()[0]
    found = np.empty(len(rows))
    for held in sorted(set(labels)):
        index = [i for i, label in enumerate(labels) if label == held]
        fit = fit_engines([row for row, label in zip(rows, labels, strict=True) if label != held], gpus)
        found[index] = predict([rows[i] for i in index], fit.gpus, fit.engines).predicted_s
    return Validation(rows=tuple(rows), predicted_s=found)


def _rank_table(parts: Sequence[tuple[str, Validation]]) -> Table:
    rows = []
    for name, v in parts:
        by_time, pairs = rank_accuracy(v.rows, v.predicted_s, v.measured_s)
        by_gpu, _ = rank_accuracy(v.rows, v.predicted_s, v.measured_s, per_gpu=True)
        rows.append((name, str(pairs), f"{by_time:.1%}", f"{by_gpu:.1%}"))
    header = ("constants fitted to", "pairs", "ranked right by TPOT", "ranked right by tokens/s per GPU")
    return Table(title="Pairs of layouts at the same load, ranked right", header=header, rows=tuple(rows))


def validation_tables(v: Validation, held: Sequence[tuple[str, Validation]] = ()) -> list[Table]:
    """Tables of a validation: overall, by group, speculative rows apart.

    Args:
        v: predictions by the shipped constants.
        held: (name, predictions by constants that never saw the row's model or GPU).
    """
    plain, flagged = v.part(speculative=False), v.part(speculative=True)
    tables: list[Table] = []
    header = ("constants fitted to", "rows", "median |error|", "mean |error|", "within 20 %", "bias")
    overall = [("all rows (shipped)", *summarise(plain.errors).cells)] if len(plain.rows) else []
    overall += [(name, *summarise(part.errors).cells) for name, part in held]
    if overall:
        tables.append(Table(title="TPOT, predicted against measured", header=header, rows=tuple(overall)))
        tables.append(_rank_table([("all rows (shipped)", plain), *held]))
        tables += [error_table(f"By {name}, shipped constants", name, plain.rows, plain.errors) for name in GROUPINGS]
    tables += [
        error_table(f"By {by}, {name}", by, part.rows, part.errors)
        # The third, fifths of the rows, has no grouping of its own.
        for (name, part), by in zip(held[:2], ("model", "GPU")[: len(held)], strict=True)
    ]
    if len(flagged.rows):
        title = "Rows with unknown speculative decoding, shipped constants (left out of every fit and figure above)"
        tables.append(error_table(title, "model", flagged.rows, flagged.errors))
        tables.append(error_table("The same by engine", "engine", flagged.rows, flagged.errors))
    return tables
