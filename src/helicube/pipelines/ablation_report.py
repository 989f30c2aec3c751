"""The ablation for people: a table, its text for documents, and a chart."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from helicube.errors import MissingExtraError
from helicube.geometry.files import whole_file
from helicube.pipelines.ablation import Ablation, AblationRow
from helicube.pipelines.measured import check_output, write_measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["chart", "check_outputs", "markdown", "table", "write_json"]

COLUMNS = ("batch", "", "TPOT ms", "p95 ms", "s per object", "GB/s", "of bandwidth", "speed-up", "memory GiB")


def cells(row: AblationRow) -> tuple[str, ...]:
    """One line of the table."""
    return (
        str(row.batch),
        row.name,
        f"{row.tpot_s * 1e3:.2f}",
        f"{row.tpot_p95_s * 1e3:.2f}",
        f"{row.object_s:.2f}",
        f"{row.read_bytes_per_s / 1e9:.1f}",
        f"{row.bandwidth_share:.0%}",
        "–" if row.speedup is None else f"{row.speedup:.1f} ×",
        f"{row.resident_bytes / 2**30:.2f}" if row.resident_bytes else "–",
    )


def title(ablation: Ablation) -> str:
    """What was measured."""
    weights = "random weights of the real size" if ablation.random else "its own weights"
    low, high = (f(row.bandwidth_bytes_per_s for row in ablation.rows) / 1e9 for f in (min, max))
    where = f"{ablation.device} ({ablation.threads} threads)"
    return f"{ablation.subject}, {weights}, {where}, probed {low:.0f} to {high:.0f} GB/s"


def table(ablation: Ablation) -> Table:
    """The rows, for a terminal."""
    left_out = "; ".join(ablation.left_out)
    shown = Table(title=title(ablation), caption=f"left out: {left_out}" if left_out else None)
    for column in COLUMNS:
        shown.add_column(column, justify="right" if column else "left")
    for row in ablation.rows:
        shown.add_row(*cells(row))
    return shown


def markdown(ablation: Ablation) -> str:
    """The rows, for a document."""
    lines = [f"{title(ablation)}:", "", f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    lines += [f"| {' | '.join(cells(row))} |" for row in ablation.rows]
    if ablation.left_out:
        lines += ["", f"Left out: {'; '.join(ablation.left_out)}."]
    return "\n".join(lines) + "\n"


def as_data(ablation: Ablation) -> dict[str, Any]:
    """All numbers, derived ones included."""
    rows = [
        asdict(row) | {"bandwidth_share": row.bandwidth_share, "floor_ratio": row.floor_ratio} for row in ablation.rows
    ]
    return asdict(ablation) | {"rows": rows}


def check_outputs(rows: Path | None, picture: Path | None) -> None:
    """Find out before the measurement whether `write_json` and `chart` could write these.

    Raises:
        InputError: a file cannot be written where it should go.
        MissingExtraError: matplotlib is not installed.
    """
    check_output(rows)
    check_output(picture)
    if picture is not None:
        _figure_class()


def write_json(ablation: Ablation, path: Path) -> None:
    """All rows with machine, versions and date, whole or not at all."""
    write_measured(as_data(ablation), path)


def chart(ablation: Ablation, path: Path) -> None:
    """Time per object of every row, a group of bars per batch size, as a PNG.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    names = list(dict.fromkeys(row.name for row in ablation.rows))
    batches = sorted({row.batch for row in ablation.rows})
    figure = _figure_class()(figsize=(9, 0.5 + 0.32 * len(names) * len(batches)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(batches)
    for i, batch in enumerate(batches):
        rows = [row for row in ablation.rows if row.batch == batch]
        places = [names.index(row.name) + (i - (len(batches) - 1) / 2) * height for row in rows]
        bars = axes.barh(places, [1e3 * row.tpot_s / batch for row in rows], height, label=f"batch {batch}")
        axes.bar_label(bars, [f"{1e3 * row.tpot_s / batch:.3g}" for row in rows], padding=3, fontsize=7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("ms per token and object")
    axes.set_title(title(ablation), fontsize=9)
    axes.legend()
    with whole_file(path) as passing:
        figure.savefig(passing, dpi=120, format="png")


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plan") from None
    return Figure
