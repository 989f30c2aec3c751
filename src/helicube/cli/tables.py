"""Tables and reports in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from helicube.planner.report import Table
    from helicube.planner.request import PlanReport

__all__ = ["print_names", "print_report", "print_tables"]


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables, folded to the terminal's width; a pipe gets 200 columns."""
    import rich.box
    import rich.console
    import rich.markup
    import rich.table

    console = rich.console.Console(highlight=False)
    if not console.is_terminal:
        console = rich.console.Console(highlight=False, width=200)
    for table in tables:
        shown = rich.table.Table(title=table.title, title_justify="left", box=rich.box.SIMPLE_HEAD, pad_edge=False)
        for name in table.header:
            shown.add_column(name, overflow="fold")
        for row in table.rows:
            # Brackets in a cell are text, not markup.
            shown.add_row(*(rich.markup.escape(cell) for cell in row))
        console.print(shown)


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
