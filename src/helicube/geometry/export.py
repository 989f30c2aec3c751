"""Meshes to files: GLB, OBJ with MTL, STL, PLY. The same mesh gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from helicube.errors import GeometryError, MeshFileError
from helicube.geometry.files import unwritable, write_files
from helicube.geometry.glb import encode_glb
from helicube.geometry.obj import encode_obj
from helicube.geometry.placement import z_up
from helicube.geometry.ply import encode_ply
from helicube.geometry.stl import encode_stl

if TYPE_CHECKING:
    from helicube.geometry.mesh import Mesh

__all__ = ["FORMATS", "check_target", "encode", "export_mesh"]

FORMATS = ("glb", "obj", "stl", "ply")
Up = Literal["y", "z"]


def export_mesh(
    mesh: Mesh, path: str | Path, *, file_format: str | None = None, name: str | None = None, up: Up = "y"
) -> Path:
    """Write a mesh; nothing half-written is ever seen, and an OBJ comes with its MTL beside it.

    Args:
        mesh: what to write.
        path: where; its ending chooses the format unless `file_format` does.
        file_format: one of `FORMATS`.
        name: the object's name in GLB and OBJ; the file's name without ending if not given.
        up: see `encode`.

    Raises:
        MeshFileError: an unknown format, or a folder that cannot be written.
        GeometryError: a mesh without faces, or with coordinates that are not finite.
    """
    path = Path(path)
    parts = encode(mesh, file_format or path.suffix, name=name or path.stem, stem=path.stem, up=up)
    write_files({path.with_suffix(suffix) if suffix else path: data for suffix, data in parts.items()})
    return path


def check_target(path: Path, file_format: str | None = None) -> None:
    """Find out before a mesh is made whether it could be written there.

    Raises:
        MeshFileError: an unknown format, or another than the ending says; a folder that is missing or may not be
            written, or a folder of that name.
    """
    wanted, named = known_format(file_format or path.suffix), path.suffix.lower().lstrip(".")
    if named in FORMATS and named != wanted:
        raise MeshFileError(
            f"{path} is named .{named} and would hold the format {wanted}, which readers go wrong with; "
            f"name it .{wanted}, or leave the format out"
        )
    if why := unwritable(path):
        raise MeshFileError(f"cannot write {path}: {why}")


def known_format(name: str) -> str:
    """One of `FORMATS`, from a name or an ending."""
    plain = name.lower().lstrip(".")
    if plain not in FORMATS:
        raise MeshFileError(f"cannot write the format {name!r}; choose one of {', '.join(FORMATS)}")
    return plain


def encode(mesh: Mesh, file_format: str, *, name: str = "mesh", stem: str = "mesh", up: Up = "y") -> dict[str, bytes]:
    """The bytes of a mesh file under the key "", and of those beside it under their endings (".mtl" for OBJ).

    Args:
        stem: the file's name without ending, by which an OBJ calls its library.
        up: axis that points up in OBJ, STL and PLY, whose readers take it as it comes: y in Roblox and Unity, z in
            Blender, Unreal and slicers. A GLB is +Y up by specification (glTF 2.0, 3.4), and what reads it turns it:
            this changes nothing of it.
    """
    check(mesh)
    name = one_line(name)
    file_format = known_format(file_format)
    if up == "z" and file_format != "glb":
        mesh = z_up(mesh)
    match file_format:
        case "glb":
            return {"": encode_glb(mesh, name)}
        case "obj":
            body, library = encode_obj(mesh, name, f"{one_line(stem)}.mtl")
            # The library first: an OBJ in place without it would be half a result.
            return {".mtl": library, "": body}
        case "stl":
            return {"": encode_stl(mesh)}
        case _:
            return {"": encode_ply(mesh)}


def check(mesh: Mesh) -> None:
    if not mesh.num_faces:
        raise GeometryError("the mesh has no faces; there is nothing to export")
    if not np.isfinite(mesh.vertices).all():
        raise GeometryError("the mesh has vertices that are NaN or infinite; repair it before the export")


def one_line(name: str) -> str:
    """A name without line ends and control characters, which would break the OBJ."""
    return "".join(c if c.isprintable() else "_" for c in name).strip() or "mesh"
