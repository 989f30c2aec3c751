"""`helicube serve`: the studio and its API over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from helicube.cli.engine_options import engine_options

__all__ = ["command", "serve_options"]

F = TypeVar("F", bound=Callable[..., None])


def serve_options(function: F) -> F:
    """The options of `serve` and `studio`."""
    folder = click.Path(path_type=Path, file_okay=False)
    for option in reversed([
        click.option("--host", default="127.0.0.1", show_default=True, help="Any other address needs an API key."),
        click.option("--port", default=8000, show_default=True, help="0 takes any free one."),
        click.option(
            "--data-dir", type=folder, default=lambda: click.get_app_dir("helicube"), show_default="your user data",
            help="Where jobs and objects are kept.",
        ),
        click.option("--api-key", help="Asked of every client. Safer: --api-key-file, or HELICUBE_API_KEY."),
        click.option("--api-key-file", type=click.Path(path_type=Path), help="File that holds the API key."),
        click.option("--allow-host", multiple=True, help="Another name that browsers may use, without an API key."),
        click.option("--cors", multiple=True, metavar="ORIGIN", help="Site whose pages may call, such as https://a.b."),
        click.option("--public-url", default="", metavar="URL", help="Where a proxy serves it, such as https://a.b."),
        click.option("--slots", default=8, show_default=True, help="Candidates of objects decoded side by side."),
        click.option("--queue", default=64, show_default=True, help="Objects that may wait; beyond it, 429."),
        click.option("--cache-gb", default=2.0, show_default=True, help="Bound on finished objects kept."),
        click.option("--objects-per-minute", default=120.0, show_default=True, help="Per client address; 0: no limit."),
        click.option("--requests-per-s", default=100.0, show_default=True, help="Per client address; 0: no limit."),
        click.option("--mesh-threads", default=1, show_default=True, help="Meshes built side by side."),
        click.option("--grace-s", default=20.0, show_default=True, help="Time to finish when told to stop."),
        click.option(
            "--steps-per-launch", type=int, help="Steps between two chances to join; default 1, on a GPU 8."
        ),
        click.option("--weights", help="Folder or Hugging Face name of another model."),
        click.option("--version", "version", help="v0.1 or v0.5, for published weights without a config.json."),
        engine_options,
        click.option("--reload-page", is_flag=True, hidden=True, help="Read the page's files at each request."),
    ]):  # fmt: skip
        function = option(function)
    return function


@click.command("serve")
@serve_options
def command(**options: object) -> None:
    """Serve text to 3D over HTTP: the studio's page at /, the API under /v1 (docs/studio.md)."""
    from helicube.serve.start import StartOptions, start

    start(StartOptions(**options))  # type: ignore[arg-type]
