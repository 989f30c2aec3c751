"""`helicube bench`: measurements that anyone can repeat."""

from __future__ import annotations

from pathlib import Path

import click

from helicube.cli.bench_helix import command as helix

__all__ = ["command"]


@click.group("bench")
def command() -> None:
    """Measure decoding on this machine."""


@command.command("ablation")
@click.option("--model", default="default", show_default=True, help="default, cube-v0.5, cube-v0.1, or a folder.")
@click.option("--device", default="cpu", show_default=True)
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    help="Steps timed per row, fewer where they take long.",
)
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1, 512), default=(1, 4, 16), show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .json file for the rows.")
@click.option("--chart", "picture", type=click.Path(path_type=Path), help="A .png file for a chart.")
def ablation(
    *, model: str, device: str, steps: int, batches: tuple[int, ...], output: Path | None, picture: Path | None
) -> None:
    """What each speed feature is worth, step by step, and how far the hardware is away."""
    from rich.console import Console

    from helicube.pipelines.ablation import ablate
    from helicube.pipelines.ablation_report import chart, check_outputs, table, write_json
    from helicube.pipelines.ablation_subject import load_subject

    check_outputs(output, picture)
    found = ablate(load_subject(model, device), batches=batches, num_steps=steps)
    Console(width=max(110, Console().width)).print(table(found))
    if output is not None:
        write_json(found, output)
        click.echo(output)
    if picture is not None:
        chart(found, picture)
        click.echo(picture)


command.add_command(helix)
