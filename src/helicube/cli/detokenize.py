"""`helicube detokenize`: shape ids to a mesh."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("detokenize")
@click.argument("ids", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: IDS-decoded.glb, beside the ids.")
@click.option("--cells", default=128, show_default=True, help="Resolution along the longest side.")
@click.option("--max-triangles", default=20_000, show_default=True, help="Never more than this.")
@click.option("--weights", help="Folder of the model that made the ids.")
@click.option("--version", help="v0.1 or v0.5, for published weights without a config.json.")
def command(
    *, ids: Path, output: Path | None, cells: int, max_triangles: int, weights: str | None, version: str | None
) -> None:
    """Decode IDS, a file of `helicube tokenize`, to a mesh."""
    from helicube.geometry.export import check_target
    from helicube.pipelines.meshing import MeshOptions
    from helicube.pipelines.shape_model import load_model
    from helicube.pipelines.tokenize import detokenize, read_ids

    options = MeshOptions(cells=cells, max_triangles=max_triangles)
    # Not the ids' name alone: the mesh that they are of may have it.
    path = output or ids.with_name(f"{ids.stem}-decoded.glb")
    check_target(path)
    row = read_ids(ids)
    model = load_model(weights, version=version)
    mesh = detokenize(model, row, options)
    click.echo(mesh.export(path))
