"""`helicube plan reproduce`: what the Helix paper reports beside what this planner computes."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("reproduce")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Also write the tables as Markdown.")
def command(output: Path | None) -> None:
    """Print interactivity, users and HOP-B beside the paper's, with a band over what is uncertain."""
    from helicube.cli.tables import print_tables
    from helicube.planner.output import write_text
    from helicube.planner.report import markdown
    from helicube.planner.reproduce_report import reproduction_tables

    tables = reproduction_tables()
    print_tables(tables)
    if output is not None:
        write_text(output, "\n".join(map(markdown, tables)))
        click.echo(f"wrote {output}")
