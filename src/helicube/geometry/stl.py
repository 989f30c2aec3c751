"""Meshes as binary STL."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from helicube.geometry.mesh import Mesh

__all__ = ["encode_stl"]

TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def encode_stl(mesh: Mesh) -> bytes:
    """Triangles with their normals; the format has no colours, no shared vertices and no unit."""
    corners = mesh.vertices[mesh.faces]  # (F, 3, 3)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    records = np.zeros(mesh.num_faces, dtype=TRIANGLE)
    records["normal"] = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    records["corners"] = corners
    # Readers take a file that begins with "solid" for the text variant.
    header = b"helicube binary STL".ljust(80, b"\0")
    return header + struct.pack("<I", mesh.num_faces) + records.tobytes()
