"""`helicube generate`: prompts in, mesh files out."""

from __future__ import annotations

from pathlib import Path

import click

from helicube.cli.engine_options import engine_options

__all__ = ["command"]


@click.command("generate")
@click.argument("prompts", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File, or folder for several objects.")
@click.option(
    "--format", "file_format", type=click.Choice(["glb", "obj", "stl", "ply"]), help="Default: by the ending."
)
@click.option("--seed", default=0, show_default=True, help="Same seed, same file.")
@click.option("--variants", default=1, show_default=True, help="Objects per prompt, with seeds counted up.")
@click.option(
    "--best-of",
    default=4,
    show_default=True,
    help="Candidates drawn for each object, at most 16; the first in a single piece is kept. 1 is fastest.",
)
@click.option("--guidance", type=float, help="How closely to follow the prompt; 0 is off. Default: by model.")
@click.option("--temperature", type=float, help="0 takes the likeliest id at each step. Default: by model.")
@click.option("--top-p", type=float, help="Share of likeliest choices drawn from. Default: by model.")
@click.option("--box", nargs=3, type=float, help="Proportions x y z that the object fills exactly.")
@click.option("--cells", default=128, show_default=True, help="Resolution along the longest side.")
@click.option("--max-triangles", default=20_000, show_default=True, help="Never more than this.")
@click.option("--size-m", type=float, help="Longest side in metres.")
@click.option("--pivot", type=click.Choice(["base", "center"]), default="base", show_default=True)
@click.option(
    "--up",
    type=click.Choice(["y", "z"]),
    default="y",
    show_default=True,
    help="Axis that points up in OBJ, STL and PLY. A GLB is always +Y up, as its specification says: Blender and "
    "others turn it.",
)
@click.option("--weights", help="Folder or Hugging Face name of another model, such as Cube 3D.")
@click.option("--version", "version", help="v0.1 or v0.5, for published weights without a config.json.")
@engine_options
@click.option("--preview", is_flag=True, help="A PNG beside each mesh, upright.")
def command(**options: object) -> None:
    """Turn each of PROMPTS, such as "a red wooden chair", into a clean coloured mesh."""
    from helicube.pipelines.generate_files import GenerateOptions, generate_files

    generate_files(GenerateOptions(**options))  # type: ignore[arg-type]
