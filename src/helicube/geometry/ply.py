"""Meshes as binary PLY."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from helicube.geometry.mesh import Mesh

__all__ = ["encode_ply"]


def encode_ply(mesh: Mesh) -> bytes:
    """Little-endian, with normals and sRGB colours where the mesh has them."""
    columns = [("x", "<f4"), ("y", "<f4"), ("z", "<f4")]
    if mesh.vertex_normals is not None:
        columns += [("nx", "<f4"), ("ny", "<f4"), ("nz", "<f4")]
    if mesh.vertex_colors is not None:
        columns += [("red", "u1"), ("green", "u1"), ("blue", "u1")]
    rows = np.zeros(mesh.num_vertices, dtype=columns)
    for source, names in (
        (mesh.vertices, ("x", "y", "z")),
        (mesh.vertex_normals, ("nx", "ny", "nz")),
        (mesh.vertex_colors, ("red", "green", "blue")),
    ):
        if source is not None:
            for axis, name in enumerate(names):
                rows[name] = source[:, axis]
    faces = np.zeros(mesh.num_faces, dtype=[("n", "u1"), ("corners", "<i4", 3)])
    faces["n"] = 3
    faces["corners"] = mesh.faces
    words = {"<f4": "float", "u1": "uchar"}
    header = ["ply", "format binary_little_endian 1.0", "comment helicube", f"element vertex {mesh.num_vertices}"]
    header += [f"property {words[kind]} {name}" for name, kind in columns]
    header += [f"element face {mesh.num_faces}", "property list uchar int vertex_indices", "end_header", ""]
    return "\n".join(header).encode() + rows.tobytes() + faces.tobytes()
