"""Tables and reports in the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from helicube.planner.report import Table
    from helicube.planner.request import PlanReport

__all__ = ["print_names", "print_report", "print_tables"]

# A narrower terminal shows nothing that can be read.
_NARROWEST = 60


def _width() -> int:
    """Columns to fill: the terminal's, or COLUMNS where the user sets it; a pipe gets 200."""
    import rich.console

    console = rich.console.Console()
    return max(_NARROWEST, console.width if console.is_terminal or "COLUMNS" in os.environ else 200)


def _fitting(table: Table, width: int) -> list[tuple[int, ...]]:
    """Columns of the parts in which a table is shown; each begins with the first column, and fits where it can."""
    # Long cells fold, down to a column of 24.
    need = [min(24, max(len(row[i]) for row in (table.header, *table.rows))) + 3 for i in range(len(table.header))]
    parts: list[tuple[int, ...]] = []
    current: list[int] = [0]
    for i in range(1, len(need)):
        if len(current) > 1 and sum(need[j] for j in (*current, i)) > width:
            parts.append(tuple(current))
            current = [0]
        current.append(i)
    return [*parts, tuple(current)]


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables; one that is wider than the terminal comes in parts that repeat its first column."""
    import rich.box
    import rich.console
    import rich.markup
    import rich.table

    width = _width()
    console = rich.console.Console(highlight=False, width=width)
    for table in tables:
        for number, columns in enumerate(_fitting(table, width)):
            title = table.title if not number else f"{table.title} (continued)"
            shown = rich.table.Table(title=title, title_justify="left", box=rich.box.SIMPLE_HEAD, pad_edge=False)
            for i in columns:
                shown.add_column(table.header[i], overflow="fold")
            for row in table.rows:
                # Brackets in a cell are text, not markup.
                shown.add_row(*(rich.markup.escape(row[i]) for i in columns))
            with console.capture() as captured:
                console.print(shown)
            # Through click, so that a reader who has gone away ends the command as everywhere else.
            click.echo(captured.get(), nl=False)


def print_report(report: PlanReport) -> None:
    """Print a planning report."""
    click.echo(report.headline)
    print_tables(report.tables)
    for line in report.notes:
        click.echo(f"- {line}")
    for text in report.commands:
        click.echo(f"\n{text}")
    for path in report.written:
        click.echo(f"wrote {path}")


def print_names() -> None:
    """Print the models and accelerators that are known by name."""
    from helicube.planner.catalog_tables import catalog_tables

    print_tables(catalog_tables())
