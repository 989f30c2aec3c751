"""`helicube plan calibrate`: fit constants to measurements."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("calibrate")
@click.option("--kernels", required=True, type=click.Path(path_type=Path), help="Folder of <gpu>/*.parquet tables.")
@click.option("--serving", type=click.Path(path_type=Path), help="CSV of served runs, to fit engines too.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Constants file to write (.toml).")
@click.option("--plots", type=click.Path(path_type=Path), help="Folder for pictures of fit and error.")
def command(kernels: Path, serving: Path | None, output: Path, plots: Path | None) -> None:
    """Fit the constants of each GPU to its kernel tables, and write them with their source."""
    from helicube.cli.tables import print_tables
    from helicube.planner.calibrate import calibrate

    print_tables(calibrate(kernels, output, serving=serving, plots=plots))
    click.echo(f"wrote {output}")
