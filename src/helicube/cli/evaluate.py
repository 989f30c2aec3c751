"""`helicube evaluate`: the figures of a model."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("evaluate")
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Folder with the catalogue of objects.")
@click.option("--weights", help="Folder or Hugging Face name of another model.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .json file for the figures.")
@click.option("--sheet", type=click.Path(path_type=Path), help="A PNG with one object per class.")
@click.option(
    "--classes", default=60, show_default=True, type=click.IntRange(1), help='Classes asked for as "a CLASS".'
)
@click.option("--seeds", default=4, show_default=True, type=click.IntRange(1), help="Objects per class.")
@click.option(
    "--procedural",
    default=2620,
    show_default=True,
    type=click.IntRange(1),
    help="Procedural training objects to compare with.",
)
@click.option(
    "--seen",
    default=150,
    show_default=True,
    type=click.IntRange(1),
    help="Training objects of the tokenizer's figures.",
)
@click.option("--unseen", type=click.IntRange(1), help="Unseen objects of the figures.  [default: all]")
def command(**options: object) -> None:
    """Measure the tokenizer on unseen objects, and how well prompts and boxes are followed."""
    from helicube.train.evaluate import EvaluateOptions, evaluate

    evaluate(EvaluateOptions(**options))  # type: ignore[arg-type]
