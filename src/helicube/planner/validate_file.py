"""Validation of a file of served runs: tables, and predictions row by row."""

from __future__ import annotations

from pathlib import Path

from helicube.errors import InputError
from helicube.planner.output import csv_text, write_text
from helicube.planner.published import published_table
from helicube.planner.report import Table, markdown
from helicube.planner.serving_table import read_serving
from helicube.planner.validate import Validation, leave_one_out, predict, validation_tables

__all__ = ["validate_file"]


def _prediction_rows(v: Validation) -> list[dict[str, object]]:
    return [
        {
            "engine": r.engine,
            "model": r.model.name,
            "gpu": r.hardware.name,
            "precision": r.precision,
            "layout": r.layout,
            "num_gpus": r.num_gpus,
            "concurrency": r.concurrency,
            "prompt_tokens": r.prompt,
            "output_tokens": r.output,
            "speculative_decoding_unknown": r.speculative,
            "measured_tpot_ms": r.tpot_s * 1e3,
            "fitted_tpot_ms": float(p) * 1e3,
            "error": float(p) / r.tpot_s - 1.0,
        }
        for r, p in zip(v.rows, v.predicted_s, strict=True)
    ]


def validate_file(data: Path, *, held_out: bool = False, output: Path | None = None) -> tuple[list[Table], Path | None]:
    """Predict every row of a file.

    Args:
        data: CSV of served runs.
        held_out: also predict rows by constants fitted without them.
        output: .md for the tables, .csv for the predictions.

    Raises:
        InputError: the file is at fault, or `output` ends in something else.
    """
    if output is not None and output.suffix not in {".md", ".csv"}:
        raise InputError(f"output {output} ends in {output.suffix or 'nothing'}; choose .md or .csv")
    rows = read_serving(data)
    v = predict(rows)
    held = []
    if held_out:
        plain = [row for row in rows if not row.speculative]
        held = [("all other models", leave_one_out(plain, "model")), ("all other GPUs", leave_one_out(plain, "GPU")),
                ("four fifths of the rows", leave_one_out(plain, "fifth"))]  # fmt: skip
    tables = [*validation_tables(v, held), published_table()]
    if output is not None:
        text = csv_text(_prediction_rows(v)) if output.suffix == ".csv" else "\n".join(map(markdown, tables))
        write_text(output, text)
    return tables, output
