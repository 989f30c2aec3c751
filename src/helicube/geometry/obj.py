"""Meshes as Wavefront OBJ with a material library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from helicube.geometry.mesh import Mesh

__all__ = ["encode_obj"]


def encode_obj(mesh: Mesh, name: str, library: str) -> tuple[bytes, bytes]:
    """The object and its material library, both ASCII apart from the name.

    Colours follow the position on each `v` line, 0 to 1 in sRGB, which MeshLab, Blender and others read. The material
    has the mean colour, for programs that do not.
    """
    lines = [f"# helicube\nmtllib {library}\no {name}\n"]
    # Nine digits give float32 back exactly.
    positions = mesh.vertices.astype(np.float64)
    if mesh.vertex_colors is None:
        lines.append("v %.9g %.9g %.9g\n" * mesh.num_vertices % tuple(positions.reshape(-1).tolist()))
    else:
        rows = np.concatenate([positions, mesh.vertex_colors / 255.0], axis=1)
        lines.append("v %.9g %.9g %.9g %.4f %.4f %.4f\n" * mesh.num_vertices % tuple(rows.reshape(-1).tolist()))
    if mesh.vertex_normals is not None:
        lines.append("vn %.6f %.6f %.6f\n" * mesh.num_vertices % tuple(mesh.vertex_normals.reshape(-1).tolist()))
    lines.append("usemtl surface\ns 1\n")
    faces = mesh.faces + 1
    if mesh.vertex_normals is None:
        lines.append("f %d %d %d\n" * mesh.num_faces % tuple(faces.reshape(-1).tolist()))
    else:
        lines.append("f %d//%d %d//%d %d//%d\n" * mesh.num_faces % tuple(np.repeat(faces, 2).tolist()))
    return "".join(lines).encode(), encode_mtl(mesh).encode()


def encode_mtl(mesh: Mesh) -> str:
    color = np.full(3, 0.8) if mesh.vertex_colors is None else mesh.vertex_colors.mean(axis=0) / 255
    kd = " ".join(f"{x:.4f}" for x in color)
    # Pr and Pm: roughness and metalness, the usual extension for physically based materials.
    return f"# helicube\nnewmtl surface\nKa 0 0 0\nKd {kd}\nKs 0.04 0.04 0.04\nNs 20\nPr 0.8\nPm 0\nd 1\nillum 2\n"
