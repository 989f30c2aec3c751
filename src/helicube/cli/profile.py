"""`helicube profile`: where the time of a prompt goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from helicube.cli.engine_options import engine_options

__all__ = ["command"]


@click.command("profile")
@click.argument("prompt", default="a red wooden chair")
@click.option("--trace", type=click.Path(path_type=Path), help="A .json file for a Chrome trace.")
@click.option("--weights", help="Folder or Hugging Face name of another model.")
@click.option("--version", help="v0.1 or v0.5, for published weights without a config.json.")
@engine_options
def command(*, prompt: str, trace: Path | None, weights: str | None, version: str | None, **engine: Any) -> None:
    """Decode PROMPT under the profiler: stages, steps, operators, and one sentence on what limits it."""
    from rich.console import Console

    from helicube.engine.options import EngineOptions
    from helicube.pipelines.measured import check_output
    from helicube.pipelines.profile import profile_prompt, table
    from helicube.pipelines.text_to_shape import load

    check_output(trace)
    device, form = engine.pop("device"), engine.pop("weight_format")
    pipeline = load(weights, version=version, device=device, options=EngineOptions(weights=form, **engine))
    console = Console()
    for remark in pipeline.model.remarks:
        console.print(f"note: {remark}", highlight=False, markup=False, soft_wrap=True)
    found = profile_prompt(pipeline, prompt, trace=trace)
    console.print(table(found))
    console.print(found.verdict)
    if trace is not None:
        console.print(f"trace: {trace} (open in chrome://tracing or ui.perfetto.dev)")
