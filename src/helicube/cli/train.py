"""`helicube train`: from objects to a model, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from helicube.train.loop import LoopConfig

__all__ = ["command"]

FOLDER = click.Path(path_type=Path, file_okay=False)
AT_LEAST_0, AT_LEAST_1 = click.IntRange(min=0), click.IntRange(min=1)
ABOVE_0 = click.FloatRange(min=0, min_open=True)
# What suits a decoder that has learnt already; from nothing, twenty times as much.
TUNING = {"steps": 1_000, "lr": 3e-4}


@click.group("train")
def command() -> None:
    """Train a model: prepare, text, tokenizer, colors, decoder, bundle. What is interrupted can go on."""


def loop_options(steps: int, lr: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options that every run has, with its own defaults."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed((
            click.option("--data", type=FOLDER, required=True, help="Folder of prepared items."),
            click.option("--out", type=FOLDER, required=True, help="Folder of the run."),
            click.option("--steps", type=AT_LEAST_1, default=steps, show_default=True),
            click.option("--lr", type=ABOVE_0, default=lr, show_default=True, help="Peak learning rate."),
            click.option("--seed", type=AT_LEAST_0, default=0, show_default=True),
            click.option(
                "--eval-every", type=AT_LEAST_1, default=500, show_default=True, help="Steps between evaluations."
            ),
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
@click.option(
    "--procedural",
    type=AT_LEAST_0,
    default=2620,
    show_default=True,
    help="Objects made by code, spread over all classes.",
)
@click.option("--workers", type=AT_LEAST_1, default=2, show_default=True)
def prepare(*, data: Path, out: Path, procedural: int, workers: int) -> None:
    """Sample occupancy and coloured surface points of all objects, once."""
    from helicube.train.items import prepare_items

    left = prepare_items(data, out, num_procedural=procedural, workers=workers)
    if left:
        named = ", ".join(left[:5]) + (", …" if len(left) > 5 else "")
        click.echo(f"note: {len(left)} objects enclose no volume (they are open or flat) and are left out: {named}")


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
@click.option("--grid", type=AT_LEAST_1, show_default="6", help="Cells along each side of the box: 2, 4, 6 or 12.")
@click.option("--batch", type=AT_LEAST_1, show_default="16, or 12 with --kind cube", help="Objects a step.")
@click.option("--decoder-of", type=FOLDER, help="Go on with the decoder of this run alone: ids stay as they are.")
def tokenizer(
    *, data: Path, kind: str, grid: int | None, batch: int | None, decoder_of: Path | None, **options: Any
) -> None:
    """Train the shape tokenizer, or a small published one to compare with."""
    from helicube.models.cube.lattice import LatticeConfig
    from helicube.train.cube_task import CubeTaskConfig
    from helicube.train.lattice_task import LatticeTaskConfig
    from helicube.train.runs import train_cube_baseline, train_shape

    if grid is not None and (kind == "cube" or decoder_of is not None):
        raise click.UsageError("--grid is for a lattice that starts anew; leave it out here")
    if kind == "cube" and decoder_of is not None:
        raise click.UsageError("--decoder-of is for --kind lattice; leave it out here")
    rows = {} if batch is None else {"batch": batch}
    if kind == "cube":
        train_cube_baseline(data, loop_config(options), CubeTaskConfig(**rows))
    else:
        model = LatticeConfig(num_joints=1) if grid is None else LatticeConfig(num_joints=1, grid=grid)
        train_shape(data, loop_config(options), model, LatticeTaskConfig(**rows), decoder_of)


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
@click.option("--shape", type=FOLDER, help="Run of the shape tokenizer.")
@click.option("--colors", "color_run", type=FOLDER, help="Run of the colour tokens.")
@click.option(
    "--model",
    help="In place of both: go on with the decoder of a model's folder, or `default`; 1,000 steps at 3e-4 unless told.",
)
@click.option("--optimizer", type=click.Choice(["adamw", "muon"]), default="muon", show_default=True)
@click.option("--text", type=FOLDER, help="Folder of a table of `train text`; the bundled one by default.")
@click.option(
    "--layers", type=AT_LEAST_1, show_default="4", help="Dual-stream layers; one single-stream layer follows."
)
@click.option("--width", type=AT_LEAST_1, show_default="256", help="A multiple of 64.")
@click.option("--batch", type=AT_LEAST_1, default=24, show_default=True, help="Rows a step.")
@click.option("--compile/--no-compile", "compiled", default=False, help="A minute of compiling, then faster steps.")
def decoder(
    *,
    data: Path,
    shape: Path | None,
    color_run: Path | None,
    model: str | None,
    text: Path | None,
    layers: int | None,
    width: int | None,
    batch: int,
    compiled: bool,
    **options: Any,
) -> None:
    """Train the decoder on the token rows of a tokenizer, or a model's decoder further, on objects of your own."""
    from helicube.pipelines.model_folder import find_folder
    from helicube.train.decoder_task import DecoderTaskConfig
    from helicube.train.runs import decoder_sizes, train_decoder, tune_decoder
    from helicube.train.trained_runs import TokenizerRuns

    task = DecoderTaskConfig(batch=batch, compiled=compiled)
    if model is not None:
        if any(given is not None for given in (shape, color_run, text, layers, width)):
            raise click.UsageError("--model has its own tokenizer, text and sizes; give it alone")
        given = click.get_current_context().get_parameter_source
        options |= {name: value for name, value in TUNING.items() if given(name) is ParameterSource.DEFAULT}
        tune_decoder(data, find_folder(model), loop_config(options), task)
    elif shape is None or color_run is None:
        raise click.UsageError("name the tokenizer: --shape and --colors, or --model")
    else:
        runs = TokenizerRuns(shape=shape, colors=color_run)
        train_decoder(data, runs, loop_config(options), decoder_sizes(layers, width), task, text=text)


@command.command("bundle")
@click.option("--shape", type=FOLDER, help="Run of the shape tokenizer.")
@click.option("--colors", "color_run", type=FOLDER, help="Run of the colour tokens.")
@click.option("--model", help="In place of both: a model's folder, of which all but the decoder stays.")
@click.option("--decoder", "decoder_run", type=FOLDER, required=True, help="Run of the decoder.")
@click.option("--out", type=FOLDER, required=True, help="Folder for the model file.")
def bundle_(*, shape: Path | None, color_run: Path | None, model: str | None, decoder_run: Path, out: Path) -> None:
    """Put runs into one model file that `helicube generate --weights` takes, with their text table beside it."""
    from helicube.pipelines.model_folder import find_folder
    from helicube.train.bundles import bundle, rebundle
    from helicube.train.trained_runs import TokenizerRuns, how_far

    if model is not None:
        if shape is not None or color_run is not None:
            raise click.UsageError("--model has a tokenizer; give --shape and --colors, or --model")
        path = rebundle(find_folder(model), decoder_run, out)
    elif shape is None or color_run is None:
        raise click.UsageError("name the tokenizer: --shape and --colors, or --model")
    else:
        path = bundle(TokenizerRuns(shape=shape, colors=color_run), decoder_run, out)
    for run in filter(None, (shape, color_run, decoder_run)):
        click.echo(how_far(run))
    click.echo(path)
