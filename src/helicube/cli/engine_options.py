"""Options of every command that decodes shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["engine_options"]

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(function: F) -> F:
    """Add the speed features of the engine; see `engine.options.EngineOptions`."""
    for option in reversed((
        click.option("--device", default="cpu", show_default=True, help="cpu or cuda."),
        click.option(
            "--weight-format",
            default="auto",
            show_default=True,
            help="float32, bfloat16, int8, int4, or fp8 (GPUs); auto leaves quantised weights as they are, and holds "
            "others in float32 (the default model) or bfloat16 (published ones).",
        ),
        click.option(
            "--kernels",
            type=click.Choice(["auto", "plain", "native", "triton"]),
            default="auto",
            show_default=True,
            help="plain is PyTorch alone.",
        ),
        click.option("--graph/--no-graph", default=True, help="Whole steps without Python in between."),
        click.option("--cache/--no-cache", default=True, help="Keep keys and values of past tokens."),
    )):  # fmt: skip
        function = option(function)
    return function
