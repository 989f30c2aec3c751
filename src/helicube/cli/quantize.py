"""`helicube quantize`: a model's weights in a smaller format."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("quantize")
@click.argument("weights")
@click.option("--to", "form", required=True, help="int8, int4 (int4-g32, int4-g128), bfloat16, fp8 or float32.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="A folder that is not there yet.")
def command(*, weights: str, form: str, output: Path) -> None:
    """Write WEIGHTS, a model's folder or "default", in another format; `--weights` of other commands takes the result.

    Fewer bytes are read at each step, which is what its time consists of.
    """
    from helicube.pipelines.quantize import quantize_folder, summary

    click.echo(summary(quantize_folder(weights, form, output)))
