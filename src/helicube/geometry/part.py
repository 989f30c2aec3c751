"""Part sheets that touch along edges and in vertices, on a closed mesh; the faces stay but for a few split edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.mend import drop_doubles, pair_crowded, split_fans
from helicube.geometry.mesh import Mesh
from helicube.geometry.topology import half_edges, is_manifold, twins_of

__all__ = ["part"]

# Split edges can touch others anew; after so many rounds the mesh is left as it is.
ROUNDS = 8
# How far vertices at one place are drawn towards their own neighbours, as a share of the way.
NUDGE = 1e-3


def part(mesh: Mesh) -> Mesh:
    """The mesh with each sheet on vertices and edges of its own, if it could be done; manifold then.

    Two sheets that touch along an edge can end on the same two vertices even after each has its own fans: then the edge
    of one of them gets a vertex in its middle, and its two faces become four.

    Args:
        mesh: closed, consistently wound, without colours and normals.
    """
    mesh = drop_doubles(mesh)
    for _ in range(ROUNDS):
        twins = pair_crowded(mesh, twins_of(mesh.faces))
        mesh = split_fans(mesh, twins)
        if (twins < 0).any() or is_manifold(mesh.faces):
            break
        mesh = split_edges(mesh, twins)
    return draw_apart(mesh)


def split_edges(mesh: Mesh, twins: NDArray[np.int64]) -> Mesh:
    """With a vertex in the middle of all but one of the edges between the same two vertices, where no face has two."""
    start, end = half_edges(mesh.faces)
    key = np.minimum(start, end) * mesh.num_vertices + np.maximum(start, end)
    _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    faces = mesh.faces.tolist()
    taken: set[int] = set()
    kept: set[int] = set()
    middles: list[NDArray[np.float32]] = []
    for h in np.flatnonzero((count[inverse] > 2) & (start < end)).tolist():
        t = int(twins[h])
        if int(key[h]) not in kept:
            kept.add(int(key[h]))
        elif not {h // 3, t // 3} & taken:
            taken |= {h // 3, t // 3}
            middle = mesh.num_vertices + len(middles)
            middles.append((mesh.vertices[start[h]] + mesh.vertices[end[h]]) / 2)
            for half in (h, t):
                face = faces[half // 3]
                faces.append([middle if i == half % 3 else v for i, v in enumerate(face)])
                faces[half // 3] = [middle if i == (half + 1) % 3 else v for i, v in enumerate(face)]
    if not middles:
        return mesh
    vertices = np.concatenate([mesh.vertices, np.array(middles, dtype=np.float32)])
    return Mesh(vertices=vertices, faces=np.array(faces, dtype=np.int32))


def draw_apart(mesh: Mesh) -> Mesh:
    """Vertices at one place a little towards their neighbours, since readers merge what has the same position."""
    _, inverse, count = np.unique(mesh.vertices, axis=0, return_inverse=True, return_counts=True)
    shared = count[inverse.reshape(-1)] > 1
    if not shared.any():
        return mesh
    start, end = half_edges(mesh.faces)
    degree = np.maximum(np.bincount(start, minlength=mesh.num_vertices), 1)
    sums = [np.bincount(start, mesh.vertices[end, axis], minlength=mesh.num_vertices) for axis in range(3)]
    towards = np.stack(sums, axis=1) / degree[:, None]
    moved = mesh.vertices + NUDGE * (towards - mesh.vertices)
    return replace(mesh, vertices=np.where(shared[:, None], moved, mesh.vertices).astype(np.float32))
