"""Meshes as binary STL."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from helicube.geometry.measure import face_vectors, unit_rows

if TYPE_CHECKING:
    from helicube.geometry.mesh import Mesh

__all__ = ["encode_stl"]

TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def encode_stl(mesh: Mesh) -> bytes:
    """Triangles with their normals; the format has no colours, no shared vertices and no unit."""
    records = np.zeros(mesh.num_faces, dtype=TRIANGLE)
    records["normal"] = unit_rows(face_vectors(mesh.vertices, mesh.faces))
    records["corners"] = mesh.vertices[mesh.faces]
    # Readers take a file that begins with "solid" for the text variant.
    header = b"helicube binary STL".ljust(80, b"\0")
    return header + struct.pack("<I", mesh.num_faces) + records.tobytes()
