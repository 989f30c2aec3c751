"""Size and pivot of a mesh, and the axis that points up in files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from helicube.errors import GeometryError, InputError
from helicube.geometry.mesh import Mesh

__all__ = ["Placement", "place", "z_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a mesh goes and how large it gets."""

    # Longest side in metres; None leaves the size alone.
    size_m: float | None = None
    # What becomes the origin: the middle of the bounding box, or the middle of its underside.
    pivot: Literal["center", "base"] = "base"

    def __post_init__(self) -> None:
        if self.size_m is not None and not 1e-6 <= self.size_m <= 1e6:
            raise InputError(f"size_m is {self.size_m}; choose the longest side in metres, from 0.000001 to 1000000")


def place(mesh: Mesh, placement: Placement) -> Mesh:
    """A +Y-up mesh with its pivot at the origin, at its real size.

    Raises:
        GeometryError: a size is asked for and the mesh has none.
    """
    vertices = mesh.vertices.astype(np.float64)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    pivot = (low + high) / 2
    if placement.pivot == "base":
        pivot[1] = low[1]
    vertices -= pivot
    if placement.size_m is not None:
        longest = float((high - low).max())
        if longest <= 0:
            raise GeometryError("the mesh is a single point; it cannot be scaled to a size")
        vertices *= placement.size_m / longest
    return replace(mesh, vertices=vertices.astype(np.float32))


def z_up(mesh: Mesh) -> Mesh:
    """A quarter turn about x, for files of programs that have +Z up: y becomes z, and the front (+z) becomes -y."""
    turn = np.array((1, -1, 1), dtype=np.float32)
    normals = None if mesh.vertex_normals is None else mesh.vertex_normals[:, [0, 2, 1]] * turn
    return replace(mesh, vertices=mesh.vertices[:, [0, 2, 1]] * turn, vertex_normals=normals)
