"""`helicube render`: a picture of a mesh."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("render")
@click.argument("mesh", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="A .png, or a .gif for a full turn."
)
@click.option("--size", default=512, show_default=True, help="Width and height in pixels.")
@click.option("--frames", default=36, show_default=True, help="Pictures in a GIF.")
@click.option("--azimuth", default=35.0, show_default=True, help="Degrees around the mesh from its front.")
@click.option("--elevation", default=22.0, show_default=True, help="Degrees above the ground.")
@click.option("--background", default="#f4f4f6", show_default=True, help="A colour, or transparent (PNG only).")
def command(
    *, mesh: Path, output: Path, size: int, frames: int, azimuth: float, elevation: float, background: str
) -> None:
    """Show MESH (GLB, glTF, OBJ, STL or PLY) as a picture, without a display or a GPU."""
    from helicube.geometry.load import load_mesh
    from helicube.geometry.pictures import check_picture, picture
    from helicube.geometry.render import RenderOptions, parse_background

    options = RenderOptions(
        size=size, azimuth_deg=azimuth, elevation_deg=elevation, background=parse_background(background)
    )
    check_picture(output, options)
    click.echo(picture(load_mesh(mesh).to_mesh(), output, options, frames=frames))
