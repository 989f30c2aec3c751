"""`helicube studio`: the same as `serve`, in the browser at once."""

from __future__ import annotations

import click

from helicube.cli.serve import serve_options

__all__ = ["command"]


@click.command("studio")
@serve_options
def command(**options: object) -> None:
    """Open a page where a prompt becomes an object before your eyes."""
    from helicube.serve.start import StartOptions, start

    start(StartOptions(**options, browser=True))  # type: ignore[arg-type]
