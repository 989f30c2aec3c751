"""Fewer triangles: at most as many as asked for, and still a closed manifold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import fast_simplification
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, cKDTree

from helicube.errors import GeometryError
from helicube.geometry.measure import dot, face_vectors, face_volumes
from helicube.geometry.mesh import Mesh
from helicube.geometry.part import part
from helicube.geometry.topology import face_components, is_manifold, is_watertight

__all__ = ["simplify"]

# Faces, as a multiple of the budget, that bodies have before each is brought within its share.
SPARE = 8
# Least budget at which joined sheets are parted: below, so much may have grown together that little is left.
PARTED_FROM = 1000


def simplify(mesh: Mesh, max_triangles: int) -> Mesh:
    """At most `max_triangles` triangles, watertight and manifold if the mesh was; unchanged if it has no more.

    Quadric edge collapses (fast-simplification) do nearly all budgets. Their result is checked; where sheets that
    nearly touched have grown together, they are parted again. Where that does not help, and for tiny budgets, libigl's
    collapses take over, ten times slower, which refuse what would break a manifold. Where the topology itself needs
    more faces (handles, many bodies), the smallest bodies go and the others turn into their convex hulls. Colours are
    those of the nearest old vertices; normals are dropped.

    Raises:
        GeometryError: fewer than 4 triangles, which enclose nothing; or a mesh that is not watertight.
    """
    if max_triangles < 4:
        raise GeometryError(f"max_triangles is {max_triangles}; a closed mesh needs at least 4")
    if mesh.num_faces <= max_triangles:
        return mesh
    if not is_watertight(mesh.faces):
        raise GeometryError("the mesh is not watertight; repair it before simplifying")
    for vertices, faces in attempts(mesh, max_triangles):
        if 0 < len(faces) <= max_triangles and is_manifold(faces) and volume(vertices, faces) > 0:
            return carry_colors(mesh, vertices, faces)
    raise GeometryError(f"the mesh cannot be simplified to {max_triangles} triangles; choose a larger budget")


Triangles = tuple[NDArray[np.float32], NDArray[np.int32]]


def attempts(mesh: Mesh, target: int) -> Iterator[Triangles]:
    """Ever more forceful ways, each computed only if those before it failed."""
    yield quick(mesh, target)
    if target >= PARTED_FROM:
        # A hundredth to spare: parting takes a few faces.
        vertices, faces = quick(mesh, target - target // 100)
        parted = part(Mesh(vertices=vertices, faces=faces))
        yield parted.vertices, parted.faces
    yield sound(mesh.vertices, mesh.faces, target)
    yield without_small_bodies(*sound(mesh.vertices, mesh.faces, SPARE * target), target)


def quick(mesh: Mesh, target: int) -> Triangles:
    # The default aggressiveness: higher values were no faster, lost more shape, and broke manifolds (docs/log.md).
    vertices, faces = fast_simplification.simplify(mesh.vertices, mesh.faces, target_count=target, agg=5.0)
    return np.asarray(vertices, dtype=np.float32), np.asarray(faces, dtype=np.int32)


def sound(vertices: NDArray[np.float32], faces: NDArray[np.int32], target: int) -> Triangles:
    """Of a manifold a manifold of the same genus, perhaps with more faces than asked for."""
    if len(faces) <= target:
        return vertices, faces
    # Few meshes need it.
    import igl

    fewer = igl.qslim(vertices.astype(np.float64), faces.astype(np.int64), target)
    return np.asarray(fewer[0], dtype=np.float32), np.asarray(fewer[1], dtype=np.int32)


def without_small_bodies(vertices: NDArray[np.float32], faces: NDArray[np.int32], target: int) -> Triangles:
    """The largest bodies, as many as there are fours in the budget, each within its share of it."""
    count, labels = face_components(faces)
    bodies = [faces[labels == i] for i in range(count)]
    bodies.sort(key=lambda f: -abs(volume(vertices, f)))
    bodies = bodies[: target // 4]
    left, parts = target, []
    for i, body in enumerate(bodies):
        # The bodies still to come need four each; the rest is shared by size.
        share = left - 4 * (len(bodies) - i - 1)
        ideal = round(left * len(body) / sum(map(len, bodies[i:])))
        part = within(vertices, body, max(4, min(share, ideal)))
        left -= len(part[1])
        parts.append(part)
    offsets = np.cumsum([0] + [len(v) for v, _ in parts])
    return (
        np.concatenate([v for v, _ in parts]),
        np.concatenate([f + o for (_, f), o in zip(parts, offsets[:-1], strict=True)]).astype(np.int32),
    )


def within(vertices: NDArray[np.float32], faces: NDArray[np.int32], target: int) -> Triangles:
    """One body within a budget: with its handles, else as its convex hull."""
    used, inverse = np.unique(faces, return_inverse=True)
    vertices, faces = vertices[used], inverse.reshape(-1, 3).astype(np.int32)
    collapsed = sound(vertices, faces, target)
    if len(collapsed[1]) <= target and volume(*collapsed) > 0:
        return collapsed
    return sound(*convex_hull(vertices), target)


def convex_hull(vertices: NDArray[np.float32]) -> Triangles:
    hull = ConvexHull(vertices.astype(np.float64), qhull_options="QJ Pp")
    used, inverse = np.unique(hull.simplices, return_inverse=True)
    points, faces = vertices[used], inverse.reshape(-1, 3).astype(np.int32)
    inward = dot(face_vectors(points.astype(np.float64), faces), points[faces[:, 0]] - points.mean(axis=0))
    return points, np.where((inward < 0)[:, None], faces[:, ::-1], faces)


def volume(vertices: NDArray[np.float32], faces: NDArray[np.int32]) -> float:
    return float(face_volumes(vertices, faces).sum())


def carry_colors(old: Mesh, vertices: NDArray[np.float32], faces: NDArray[np.int32]) -> Mesh:
    colors = old.vertex_colors
    if colors is not None:
        colors = colors[cKDTree(old.vertices).query(vertices)[1]]
    return replace(old, vertices=vertices, faces=faces, vertex_colors=colors, vertex_normals=None)
