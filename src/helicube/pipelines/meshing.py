"""From a decoded shape to a finished mesh."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from helicube.errors import InputError
from helicube.geometry.attributes import with_colors, with_normals
from helicube.geometry.budget import simplify
from helicube.geometry.mesh import Mesh
from helicube.geometry.placement import Placement, place
from helicube.geometry.repair import repair
from helicube.geometry.surface import SurfaceOptions, extract_surface
from helicube.models.cube.lattice_code import Shape

__all__ = ["BOUND", "MeshOptions", "build_mesh", "find_surface", "finish_mesh", "with_sizes"]

# Half size of the box that is searched for a surface, in box coordinates.
BOUND = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshOptions:
    """From field to mesh."""

    # Cells along the longest side.
    cells: int = 128
    # Never more triangles than this; None leaves them all.
    max_triangles: int | None = 20_000
    # Longest side in metres; None leaves the model's own size, about 2.
    size_m: float | None = None
    # What stands at the origin: the middle of the underside, or of the box.
    pivot: Literal["base", "center"] = "base"

    def __post_init__(self) -> None:
        # These check what is theirs.
        _ = SurfaceOptions(cells=self.cells), self.placement
        if self.max_triangles is not None and self.max_triangles < 4:
            raise InputError(f"max_triangles={self.max_triangles} cannot close a solid; choose 4 or more")

    @property
    def placement(self) -> Placement:
        return Placement(size_m=self.size_m, pivot=self.pivot)


def with_sizes(shape: Shape, sizes: NDArray[np.float32] | None) -> Shape:
    """The shape in the box that was asked for, if one was and the field does not fill it already."""
    return shape if sizes is None or not shape.stretched else replace(shape, sizes=sizes)


def build_mesh(shape: Shape, options: MeshOptions, fit: NDArray[np.float32] | None = None) -> tuple[Mesh, float]:
    """A decoded shape to a finished mesh, and the seconds spent finding its surface.

    Args:
        fit: (3,) proportions that the mesh's own bounding box is stretched to.
    """
    started = time.perf_counter()
    mesh = find_surface(shape, options.cells)
    surface_s = time.perf_counter() - started
    mesh = repair(mesh).mesh
    if options.max_triangles is not None and mesh.num_faces > options.max_triangles:
        # Once more: collapses pinch off slivers without volume, and most loose pieces of generated objects were such.
        mesh = repair(simplify(mesh, options.max_triangles)).mesh
    return finish_mesh(mesh, shape, options, fit), surface_s


def find_surface(shape: Shape, cells: int) -> Mesh:
    """The bare surface of a decoded shape, its longest side in `cells` cells.

    Raises:
        EmptyFieldError: the field has no surface.
    """
    x, y, z = (float(s) for s in shape.sizes)
    return extract_surface(shape.field, SurfaceOptions(cells=cells, bound=BOUND, scale=(x, y, z))).mesh


def finish_mesh(mesh: Mesh, shape: Shape, options: MeshOptions, fit: NDArray[np.float32] | None) -> Mesh:
    """A surface with colours, normals, its proportions (see `build_mesh`) and its place."""
    if shape.colors is not None:
        paint = shape.colors
        mesh = with_colors(mesh, lambda points: paint((points / shape.sizes).astype(np.float32)))
    if fit is not None:
        mesh = replace(mesh, vertices=(mesh.vertices * (fit / mesh.extents * mesh.extents.max())).astype(np.float32))
    mesh = with_normals(mesh)
    return place(mesh, options.placement)
