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
@click.option("--model", default="default", show_default=True, help="default, cube-v0.5 or cube-v0.1.")
@click.option("--device", default="cpu", show_default=True)
@click.option("--steps", default=64, show_default=True, help="Steps timed per row, fewer where they take long.")
@click.option("--batch", "batches", multiple=True, type=int, default=(1, 4, 16), show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .json file for the rows.")
def ablation(*, model: str, device: str, steps: int, batches: tuple[int, ...], output: Path | None) -> None:
    """What each speed feature is worth, step by step, and how far the hardware is away."""
    from rich.console import Console

    from helicube.pipelines.ablation import ablate, load_subject, table, write_json

    found = ablate(load_subject(model, device), batches=batches, num_steps=steps)
    Console().print(table(found))
    if output is not None:
        write_json(found, output)
        click.echo(output)


command.add_command(helix)
