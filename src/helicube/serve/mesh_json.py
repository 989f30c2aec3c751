"""A mesh as compact JSON, for clients that can read nothing else, such as Roblox.

Whole numbers only: positions are steps of `step` metres from `origin`, normals hundred-and-twenty-sevenths, colours
0xRRGGBB. Indices count from 0, triangles are counter-clockwise seen from outside, +Y is up.
"""

from __future__ import annotations

import json

import numpy as np

from helicube.geometry.mesh import Mesh

__all__ = ["encode_json"]

STEPS = 65_535


def encode_json(mesh: Mesh) -> bytes:
    """{"version", "num_vertices", "num_faces", "origin", "step", "vertices", "faces", "normals", "colors"}.

    `vertices` and `normals` are flat, three numbers a vertex; `faces` is flat, three indices a face; `colors` has one
    number a vertex, or is null. Positions are off by half a step at most: 1/131,070 of the longest side.
    """
    low = mesh.vertices.min(axis=0).astype(np.float64)
    step = float(mesh.extents.max()) / STEPS or 1.0
    body: dict[str, object] = {
        "version": 1,
        "num_vertices": mesh.num_vertices,
        "num_faces": mesh.num_faces,
        "origin": low.tolist(),
        "step": step,
        "vertices": np.rint((mesh.vertices - low) / step).astype(int).ravel().tolist(),
        "faces": mesh.faces.ravel().tolist(),
        "normals": None,
        "colors": None,
    }
    if mesh.vertex_normals is not None:
        body["normals"] = np.rint(mesh.vertex_normals * 127).astype(int).ravel().tolist()
    if mesh.vertex_colors is not None:
        body["colors"] = (mesh.vertex_colors.astype(int) @ [1 << 16, 1 << 8, 1]).tolist()
    return json.dumps(body, separators=(",", ":")).encode()
