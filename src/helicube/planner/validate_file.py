"""Validation of a file of served runs: tables, and predictions row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from helicube.errors import InputError
from helicube.planner.output import csv_text, write_text
from helicube.planner.published import published_table
from helicube.planner.report import Table, markdown
from helicube.planner.serving_table import ServingRow, read_serving
from helicube.planner.validate import Validation, leave_one_out, predict, validation_tables, why_unknown

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
            "measured_tpot_ms": r.tpot_s * 1e3 if r.tpot_s > 0 else None,
            "fitted_tpot_ms": float(p) * 1e3,
            "error": float(p) / r.tpot_s - 1.0 if r.tpot_s > 0 else None,
        }
        for r, p in zip(v.rows, v.predicted_s, strict=True)
    ]


def _known_rows(rows: Sequence[ServingRow], left_out: list[str]) -> list[ServingRow]:
    """The rows whose GPU and engine have constants."""
    known = []
    for row in rows:
        reason = why_unknown(row)
        if reason:
            left_out.append(reason)
        else:
            known.append(row)
    if not known:
        raise InputError(f"no row can be predicted: {left_out[0]}")
    return known


def _left_out_table(left_out: Sequence[str]) -> Table:
    reasons = Counter(text.partition(": ")[2] if text.startswith("line ") else text for text in left_out)
    rows = tuple((str(count), reason) for reason, count in reasons.most_common())
    return Table(title=f"Rows left out: {len(left_out)}", header=("rows", "reason"), rows=rows)


def validate_file(data: Path, *, held_out: bool = False, output: Path | None = None) -> tuple[list[Table], Path | None]:
    """Predict every row of a file that can be predicted; a table counts the others.

    Args:
        data: CSV of served runs; rows without a measured TPOT are predicted only.
        held_out: also predict rows by constants fitted without them.
        output: .md for the tables, .csv for the predictions.

    Raises:
        InputError: the file is at fault, or `output` ends in something else.
    """
    if output is not None and output.suffix not in {".md", ".csv"}:
        raise InputError(f"output {output} ends in {output.suffix or 'nothing'}; choose .md or .csv")
    left_out: list[str] = []
    rows = _known_rows(read_serving(data, left_out=left_out), left_out)
    v = predict(rows)
    held = []
    if held_out:
        plain = [row for row in rows if not row.speculative and row.tpot_s > 0]
        held = [("all other models", leave_one_out(plain, "model")), ("all other GPUs", leave_one_out(plain, "GPU")),
                ("four fifths of the rows", leave_one_out(plain, "fifth"))]  # fmt: skip
    tables = [*validation_tables(v, held), published_table()]
    tables += [_left_out_table(left_out)] if left_out else []
    if output is not None:
        text = csv_text(_prediction_rows(v)) if output.suffix == ".csv" else "\n".join(map(markdown, tables))
        write_text(output, text)
    return tables, output
