"""`helicube tokenize`: a mesh to shape ids."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("tokenize")
@click.argument("mesh", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .json file; default: beside the mesh.")
@click.option("--weights", help="Folder or Hugging Face name of another model.")
@click.option("--version", help="v0.1 or v0.5, for published weights without a config.json.")
def command(*, mesh: Path, output: Path | None, weights: str | None, version: str | None) -> None:
    """Encode MESH (GLB, glTF, OBJ, STL or PLY) and print how well its ids keep it."""
    from helicube.errors import InputError
    from helicube.pipelines.measured import check_output
    from helicube.pipelines.shape_model import load_model
    from helicube.pipelines.tokenize import tokenize, write_ids

    path = output or mesh.with_suffix(".json")
    if path.suffix.lower() != ".json":
        raise InputError(f"{path} would hold ids, as JSON; name a .json file, so that no mesh is overwritten")
    check_output(path)
    model = load_model(weights, version=version)
    tokenized = tokenize(model, mesh)
    write_ids(tokenized.ids, model, path)
    click.echo(f"{path}  {len(tokenized.ids)} ids, round trip volume IoU {tokenized.volume_iou:.3f}")
