"""A triangle mesh, the currency between the layers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mesh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Triangles with optional vertex attributes; +Y up, right-handed."""

    # (V, 3) float32, positions.
    vertices: NDArray[np.float32]
    # (F, 3) int32, counter-clockwise seen from outside.
    faces: NDArray[np.int32]
    # (V, 3) uint8, sRGB, or None.
    vertex_colors: NDArray[np.uint8] | None = None
    # (V, 3) float32 unit vectors, or None.
    vertex_normals: NDArray[np.float32] | None = None

    @property
    def num_vertices(self) -> int:
        return len(self.vertices)

    @property
    def num_faces(self) -> int:
        return len(self.faces)

    @property
    def extents(self) -> NDArray[np.float32]:
        """(3,) size of the bounding box along x, y, z."""
        return np.asarray(self.vertices.max(axis=0) - self.vertices.min(axis=0), dtype=np.float32)

    def export(
        self,
        path: str | Path,
        *,
        file_format: str | None = None,
        name: str | None = None,
        up: Literal["y", "z"] = "y",
    ) -> Path:
        """Write a GLB, OBJ (with MTL), STL or PLY file, by the ending of `path`; see `geometry.export`.

        Args:
            up: axis that points up in OBJ, STL and PLY; a GLB is always +Y up, and viewers turn it.
        """
        from helicube.geometry.export import export_mesh

        return export_mesh(self, path, file_format=file_format, name=name, up=up)
