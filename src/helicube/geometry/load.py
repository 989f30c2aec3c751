"""Mesh files to triangles with colours: GLB, glTF, OBJ, STL, PLY."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.errors import MeshFileError
from helicube.geometry.mend import compact
from helicube.geometry.mesh import Mesh
from helicube.geometry.paint import face_colors_of, material_of, split_by_color, vertex_colors_of

__all__ = ["READABLE", "LoadedMesh", "load_mesh"]

READABLE = ("glb", "gltf", "obj", "stl", "ply")
MAX_BYTES = 1 << 30
MAX_FACES = 5_000_000
# What the parsers raise on broken files, found by garbling good ones: they check little of what they read.
PARSER_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
# What Pillow raises on broken pictures; UnidentifiedImageError is an OSError.
PICTURE_FAULTS = (EOFError, LookupError, OSError, SyntaxError, ValueError, struct.error)


# A line of an OBJ file that gives a face the vertex 0.
VERTEX_0 = re.compile(rb"(?m)^f[ \t](?:[^\n]*[ \t])?0(?=[/ \t\r\n]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedMesh:
    """All triangles of a file, in its own units and axes, the scene's transforms applied; no vertex is unused."""

    # (V, 3) float32.
    vertices: NDArray[np.float32]
    # (F, 3) int32, as wound in the file.
    faces: NDArray[np.int32]
    # (F, 3) uint8 sRGB base colour: material, texture and vertex colours together; None if the file has none of them.
    face_colors: NDArray[np.uint8] | None
    # (V, 3) uint8 sRGB, if every part of the file is coloured by vertex and nothing else.
    vertex_colors: NDArray[np.uint8] | None

    def to_mesh(self) -> Mesh:
        """With colours on vertices; where they came from faces, vertices between colours are doubled."""
        if self.vertex_colors is not None or self.face_colors is None:
            return Mesh(vertices=self.vertices, faces=self.faces, vertex_colors=self.vertex_colors)
        return split_by_color(self.vertices, self.faces, self.face_colors)


def load_mesh(path: str | Path) -> LoadedMesh:
    """Read all triangles of a file.

    Raises:
        MeshFileError: missing, of an unknown kind, empty, broken, too large, or with coordinates that are not finite.
    """
    path = Path(path)
    kind = checked_kind(path)
    if kind == "obj":
        check_obj(path)
    parts = read_parts(path, kind)
    # Colours of glTF are light intensities; those of the other formats are sRGB.
    linear = kind in {"glb", "gltf"}
    offsets = np.cumsum([0] + [len(part.geometry.vertices) for part in parts])
    vertices = np.concatenate([part.vertices for part in parts])
    faces = np.concatenate([part.faces + o for part, o in zip(parts, offsets[:-1], strict=True)])
    check_numbers(path, vertices, faces)
    for part in parts:
        read_texture(path, part.geometry)
    colors = [face_colors_of(part.geometry, linear=linear) for part in parts]
    by_vertex = [vertex_colors_of(part.geometry, linear=linear) for part in parts]
    found = [c for c in by_vertex if c is not None]
    vertex_colors = np.concatenate(found) if len(found) == len(parts) else None
    # A stray point far off would count for the object's size.
    mesh = compact(Mesh(vertices=vertices, faces=faces.astype(np.int32), vertex_colors=vertex_colors))
    return LoadedMesh(
        vertices=mesh.vertices,
        faces=mesh.faces,
        face_colors=joined_colors(colors, [len(part.geometry.faces) for part in parts]),
        vertex_colors=mesh.vertex_colors,
    )


def check_obj(path: Path) -> None:
    """Find the vertex 0, which the parser takes for the last one."""
    with told(path, "obj"):
        found = VERTEX_0.search(path.read_bytes())
    if found:
        raise MeshFileError(f"{path}: a face names vertex 0, and OBJ files count from 1; export it again")


def checked_kind(path: Path) -> str:
    """The format by the file's ending, after the checks that need no parser."""
    kind = path.suffix.lower().lstrip(".")
    if kind not in READABLE:
        raise MeshFileError(f"{path}: cannot read the format {path.suffix!r}; give one of {', '.join(READABLE)}")
    if not path.is_file():
        raise MeshFileError(f"{path}: no such file")
    size = path.stat().st_size
    if size == 0:
        raise MeshFileError(f"{path}: the file is empty; export it again")
    if size > MAX_BYTES:
        raise MeshFileError(
            f"{path}: {size / 1e9:.1f} GB is above the limit of {MAX_BYTES / 1e9:.1f} GB; simplify it first"
        )
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One use of a mesh in a scene."""

    # trimesh.Trimesh, in its own coordinates.
    geometry: Any
    # (4, 4) to those of the file.
    transform: NDArray[np.float64]

    @property
    def vertices(self) -> NDArray[np.float32]:
        # What overflows is infinite then, and refused.
        with np.errstate(over="ignore", invalid="ignore"):
            placed = self.geometry.vertices @ self.transform[:3, :3].T + self.transform[:3, 3]
            return np.asarray(placed, dtype=np.float32)

    @property
    def faces(self) -> NDArray[np.int64]:
        """(F, 3), turned over where the transform mirrors."""
        faces = np.asarray(self.geometry.faces, dtype=np.int64)
        return faces[:, ::-1] if np.linalg.det(self.transform[:3, :3]) < 0 else faces


def read_parts(path: Path, kind: str) -> list[_Part]:
    """The file's meshes, once for each place where the scene has them."""
    import trimesh

    with told(path, kind):
        scene = trimesh.load_scene(path, file_type=kind, process=False)
        # Not scene.dump(): its copies lose vertex colours that stand beside a material.
        placed = [(*scene.graph[node],) for node in scene.graph.nodes_geometry]
    parts = [
        _Part(geometry=scene.geometry[name], transform=np.asarray(matrix, dtype=np.float64))
        for matrix, name in placed
        if isinstance(scene.geometry[name], trimesh.Trimesh) and len(scene.geometry[name].faces)
    ]
    if not parts:
        raise MeshFileError(f"{path}: no triangles in it; only meshes can be used, not points or lines")
    count = sum(len(part.geometry.faces) for part in parts)
    if count > MAX_FACES:
        raise MeshFileError(f"{path}: {count:,} triangles are above the limit of {MAX_FACES:,}; simplify it first")
    return parts


@contextlib.contextmanager
def told(path: Path, kind: str) -> Iterator[None]:
    """What a parser raises, as one line with the remedy that fits."""
    try:
        yield
    except MemoryError:
        raise MeshFileError(f"{path}: there is not enough memory to read it; simplify it first") from None
    except ImportError as error:
        missing = error.name or reason(error)
        raise MeshFileError(f"{path}: reading it needs the package {missing}; install that, or convert it") from error
    except (OSError, *PARSER_FAULTS) as error:
        # Without a number it is the parser's own, for example trimesh's for a scene that names no file it knows.
        if isinstance(error, OSError) and error.errno is not None:
            which = error.filename or path
            raise MeshFileError(f"{path}: cannot read {which} ({error.strerror}); check that file") from error
        raise MeshFileError(f"{path}: not a readable {kind.upper()} file ({reason(error)}); export it again") from error


def read_texture(path: Path, geometry: Any) -> None:
    """Have Pillow decode the picture now, which it puts off until the pixels are asked for."""
    if geometry.visual.kind != "texture":
        return
    image = material_of(geometry.visual)[1]
    if image is None:
        return
    try:
        image.load()
    except PICTURE_FAULTS as error:
        raise MeshFileError(f"{path}: a texture cannot be read ({reason(error)}); export it again") from error


def check_numbers(path: Path, vertices: NDArray[np.float32], faces: NDArray[np.integer]) -> None:
    if not np.isfinite(vertices).all():
        raise MeshFileError(
            f"{path}: some coordinates are NaN, infinite or beyond float32; repair it and export it again"
        )
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = faces.min() if faces.min() < 0 else faces.max()
        raise MeshFileError(f"{path}: a face names vertex {wrong}, but there are {len(vertices)}; export it again")
    used = vertices[np.unique(faces)].astype(np.float64)
    if float((used.max(axis=0) - used.min(axis=0)).max()) <= 0:
        raise MeshFileError(f"{path}: all triangles lie on one point; the mesh has no size")


def joined_colors(colors: list[NDArray[np.uint8] | None], counts: list[int]) -> NDArray[np.uint8] | None:
    """Parts without a colour turn light grey if others have one."""
    if all(c is None for c in colors):
        return None
    grey = np.full(3, 204, dtype=np.uint8)
    return np.concatenate([np.tile(grey, (n, 1)) if c is None else c for c, n in zip(colors, counts, strict=True)])


def reason(error: Exception) -> str:
    """An exception in one short line."""
    text = " ".join(str(error).split())[:160]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
