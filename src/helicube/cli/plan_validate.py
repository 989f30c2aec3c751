"""`helicube plan validate`: predictions against measured serving runs."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("validate")
@click.option("--data", required=True, type=click.Path(path_type=Path), help="CSV of measured serving runs.")
@click.option("--held-out", is_flag=True, help="Also fit without each model, GPU and fifth of the rows (minutes).")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Tables as .md, or predictions as .csv.")
def command(data: Path, output: Path | None, *, held_out: bool) -> None:
    """Predict every row, and print error tables by model, GPU, engine and layout."""
    from helicube.cli.tables import print_tables
    from helicube.planner.validate_file import validate_file

    tables, written = validate_file(data, held_out=held_out, output=output)
    print_tables(tables)
    if written:
        click.echo(f"wrote {written}")
