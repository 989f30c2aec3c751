"""`helicube bench helix`: the layouts of a model, measured on this machine."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("helix")
@click.option("--model", default="small-gqa", show_default=True, help="A random model, or a checkpoint as for run.")
@click.option("--context", default=2048, show_default=True, help="Tokens per sequence.")
@click.option("--batch", default=4, show_default=True, help="Sequences side by side.")
@click.option("--ranks", default="1,2,4,8", show_default=True, help="Processes of each pool.")
@click.option("--steps", default=16, show_default=True, help="Decode steps timed per layout.")
@click.option("--hopb", default=4, show_default=True, help="Parts of the batch in the column with HOP-B on.")
@click.option("--in-process", is_flag=True, help="Ranks as threads on one device, such as a single GPU.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .json file for the rows.")
def command(
    *, model: str, context: int, batch: int, ranks: str, steps: int, hopb: int, in_process: bool, output: Path | None
) -> None:
    """Every legal layout over real processes: bytes held and sent, balance, TTL, difference to one device.

    Random models: small-gqa, small-mla-moe, and the tiny ones of the tests.
    """
    from rich.console import Console

    from helicube.errors import InputError
    from helicube.pipelines.bench_helix import BenchOptions, bench_helix, write_rows
    from helicube.pipelines.bench_helix_table import table

    parts = [part.strip() for part in ranks.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"--ranks {ranks!r} is not a list of whole numbers; write it as 1,2,4,8")
    sizes = tuple(map(int, parts))
    options = BenchOptions(
        model=model, context=context, batch=batch, ranks=sizes, steps=steps, hopb=hopb, in_process=in_process
    )
    rows = bench_helix(options, output)
    # The columns need 90 characters; a narrower terminal wraps lines, which can be read, where rich would cut words.
    Console(width=max(90, Console().width)).print(table(options, rows))
    if output is not None:
        write_rows(options, rows, output)
        click.echo(output)
