"""`helicube train`: from objects to a model, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from helicube.train.loop import LoopConfig

__all__ = ["command"]

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("train")
def command() -> None:
    """Train a model: prepare, text, tokenizer, colors, decoder, bundle. Interrupted runs go on where they stood."""


def loop_options(steps: int, lr: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options that every run has, with its own defaults."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed((
            click.option("--data", type=FOLDER, required=True, help="Folder of prepared items."),
            click.option("--out", type=FOLDER, required=True, help="Folder of the run."),
            click.option("--steps", default=steps, show_default=True),
            click.option("--lr", default=lr, show_default=True, help="Peak learning rate."),
            click.option("--seed", default=0, show_default=True),
            click.option("--eval-every", default=500, show_default=True, help="Steps between evaluations."),
            click.option("--device", default="cpu", show_default=True),
        )):  # fmt: skip
            function = option(function)
        return function

    return decorate


def loop_config(options: dict[str, Any]) -> LoopConfig:
    from helicube.train.loop import LoopConfig

    keys = ("out", "steps", "lr", "seed", "eval_every", "device", "optimizer")
    return LoopConfig(**{key: options.pop(key) for key in keys if key in options})


@command.command("prepare")
@click.option("--data", type=FOLDER, required=True, help="Folder with objects.npz and catalog.jsonl.")
@click.option("--out", type=FOLDER, required=True, help="Folder for the prepared items.")
@click.option("--procedural", default=2620, show_default=True, help="Objects made by code, spread over all classes.")
@click.option("--workers", default=2, show_default=True)
def prepare(*, data: Path, out: Path, procedural: int, workers: int) -> None:
    """Sample occupancy and coloured surface points of all objects, once."""
    from helicube.train.items import prepare_items

    prepare_items(data, out, num_procedural=procedural, workers=workers)


@command.command("text")
@click.option("--teacher", type=FOLDER, required=True, help="Folder of all-MiniLM-L6-v2, the sentence encoder.")
@click.option("--wordnet", type=FOLDER, required=True, help="WordNet's dictionary folder, with data.noun in it.")
@click.option("--out", type=FOLDER, required=True, help="Folder for the table of vectors.")
def text(*, teacher: Path, wordnet: Path, out: Path) -> None:
    """Distil the sentence encoder into the table of word vectors that prompts are read with."""
    from rich.progress import Progress

    from helicube.train.distill import distill_static_vectors

    with Progress() as progress:
        bar = progress.add_task("embedding", total=None)
        count = distill_static_vectors(
            out,
            teacher=teacher,
            wordnet=wordnet,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    click.echo(f"{out}: {count} entries")


@command.command("tokenizer")
@loop_options(steps=20_000, lr=1e-3)
@click.option("--kind", type=click.Choice(["lattice", "cube"]), default="lattice", show_default=True)
@click.option("--grid", default=6, show_default=True, help="Cells along each side of the box.")
@click.option("--batch", default=16, show_default=True)
@click.option("--decoder-of", type=FOLDER, help="Go on with the decoder of this run alone: ids stay as they are.")
def tokenizer(*, data: Path, kind: str, grid: int, batch: int, decoder_of: Path | None, **options: Any) -> None:
    """Train the shape tokenizer, or a small published one to compare with."""
    from helicube.models.cube.lattice import LatticeConfig
    from helicube.train.lattice_task import LatticeTaskConfig
    from helicube.train.runs import train_cube_baseline, train_shape

    if kind == "cube":
        train_cube_baseline(data, loop_config(options))
    else:
        task = LatticeTaskConfig(batch=batch)
        train_shape(data, loop_config(options), LatticeConfig(grid=grid, num_joints=1), task, decoder_of)


@command.command("colors")
@loop_options(steps=3_000, lr=1e-3)
@click.option("--shape", type=FOLDER, required=True, help="Run of the shape tokenizer.")
@click.option("--decoder-of", type=FOLDER, help="Go on with the decoder of this run alone: ids stay as they are.")
def colors(*, data: Path, shape: Path, decoder_of: Path | None, **options: Any) -> None:
    """Train the colour tokens on top of a shape tokenizer."""
    from helicube.models.cube.lattice_colors import ColorConfig
    from helicube.train.runs import train_colors

    train_colors(data, shape, loop_config(options), ColorConfig(), decoder_of)


@command.command("decoder")
@loop_options(steps=20_000, lr=1.5e-3)
@click.option("--shape", type=FOLDER, required=True, help="Run of the shape tokenizer.")
@click.option("--colors", "color_run", type=FOLDER, required=True, help="Run of the colour tokens.")
@click.option("--optimizer", type=click.Choice(["adamw", "muon"]), default="muon", show_default=True)
@click.option("--layers", default=4, show_default=True, help="Dual-stream layers; one single-stream layer follows.")
@click.option("--width", default=256, show_default=True)
@click.option("--batch", default=24, show_default=True)
@click.option("--compile/--no-compile", "compiled", default=False, help="A minute of compiling, then faster steps.")
def decoder(
    *,
    data: Path,
    shape: Path,
    color_run: Path,
    layers: int,
    width: int,
    batch: int,
    compiled: bool,
    **options: Any,
) -> None:
    """Train the decoder on the token rows of a tokenizer."""
    from helicube.models.cube.decoder import DecoderConfig
    from helicube.train.decoder_task import DecoderTaskConfig
    from helicube.train.runs import TokenizerRuns, train_decoder

    config = DecoderConfig(n_layer=layers, n_single_layer=1, n_embd=width, n_head=width // 64)
    runs = TokenizerRuns(shape=shape, colors=color_run)
    train_decoder(data, runs, loop_config(options), config, DecoderTaskConfig(batch=batch, compiled=compiled))


@command.command("bundle")
@click.option("--shape", type=FOLDER, required=True, help="Run of the shape tokenizer.")
@click.option("--colors", "color_run", type=FOLDER, required=True, help="Run of the colour tokens.")
@click.option("--decoder", "decoder_run", type=FOLDER, required=True, help="Run of the decoder.")
@click.option("--out", type=FOLDER, required=True, help="Folder for the model file.")
def bundle_(*, shape: Path, color_run: Path, decoder_run: Path, out: Path) -> None:
    """Put three runs into one model file that `helicube generate --weights` takes."""
    from helicube.train.runs import TokenizerRuns, bundle

    click.echo(bundle(TokenizerRuns(shape=shape, colors=color_run), decoder_run, out))
