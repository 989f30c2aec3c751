"""Close and disentangle a mesh that is not a manifold: weld, orient, split, fill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from helicube.errors import GeometryError
from helicube.geometry.mesh import Mesh
from helicube.geometry.topology import (
    connected_labels,
    edge_faults,
    fan_labels,
    half_edges,
    is_manifold,
    twins_of,
)

__all__ = ["compact", "mend", "split_fans", "weld"]


def mend(mesh: Mesh, *, tolerance: float = 1e-6, max_hole_edges: int = 10_000) -> Mesh:
    """A closed, edge- and vertex-manifold mesh with the same faces, as far as the input allows.

    Args:
        mesh: any triangles.
        tolerance: vertices closer than this share of the largest extent become one.
        max_hole_edges: holes with more edges than this are refused, not filled.

    Raises:
        GeometryError: nothing is left, a hole is too large, or the faces cannot be wound consistently.
    """
    mesh = drop_doubles(weld(mesh, tolerance))
    if not mesh.num_faces:
        raise GeometryError("the mesh has no face with an area; nothing is left to repair")
    mesh = replace(mesh, faces=consistently_wound(mesh.faces), vertex_normals=None)
    mesh = split_fans(mesh, pair_crowded(mesh, twins_of(mesh.faces)))
    mesh = fill_holes(mesh, max_hole_edges)
    if not is_manifold(mesh.faces):
        faults = edge_faults(mesh.faces)
        raise GeometryError(
            f"the mesh cannot be made manifold: {faults.num_open} open and {faults.num_doubled} doubled edges remain; "
            "rebuild it from its occupancy (helicube tokenize, then detokenize)"
        )
    return mesh


def weld(mesh: Mesh, tolerance: float) -> Mesh:
    """Make vertices that round to one lattice point of `tolerance` times the largest extent one vertex (the first)."""
    step = max(float(mesh.extents.max()) * tolerance, np.finfo(np.float32).tiny)
    lattice = np.round((mesh.vertices.astype(np.float64) - mesh.vertices.min(axis=0)) / step).astype(np.int64)
    _, first, inverse = np.unique(lattice, axis=0, return_index=True, return_inverse=True)
    return compact(replace(mesh, faces=first[inverse.reshape(-1)][mesh.faces].astype(np.int32)))


def compact(mesh: Mesh) -> Mesh:
    """Leave out vertices that no face uses; the order stays."""
    used = np.zeros(mesh.num_vertices, dtype=np.bool_)
    used[mesh.faces] = True
    if used.all():
        return mesh
    new = np.cumsum(used, dtype=np.int32) - 1
    return replace(take_vertices(mesh, np.flatnonzero(used)), faces=new[mesh.faces])


def take_vertices(mesh: Mesh, index: NDArray[np.integer]) -> Mesh:
    """The mesh with vertex i replaced by old vertex index[i], attributes included; faces are left as they are."""
    colors, normals = mesh.vertex_colors, mesh.vertex_normals
    return replace(
        mesh,
        vertices=mesh.vertices[index],
        vertex_colors=None if colors is None else colors[index],
        vertex_normals=None if normals is None else normals[index],
    )


def drop_doubles(mesh: Mesh) -> Mesh:
    """Without faces that use a vertex twice, and with one face for each set of three vertices.

    Two faces on the same vertices in opposite directions are a sheet without volume: both go. Of more, one stays that
    goes the way most of them do.
    """
    f = mesh.faces
    f = f[(f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 2] != f[:, 0])]
    if not len(f):
        return replace(mesh, faces=f)
    key = np.sort(f, axis=1)
    _, inverse = np.unique(key, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    turn = np.argmin(f, axis=1)
    second = f[np.arange(len(f)), (turn + 1) % 3]
    forward = np.where(second == key[:, 1], 1, -1)
    balance = np.bincount(inverse, weights=forward)
    usual = np.flatnonzero(forward == np.sign(balance[inverse]))
    keep = np.sort(usual[np.unique(inverse[usual], return_index=True)[1]])
    return compact(replace(mesh, faces=f[keep]))


def consistently_wound(faces: NDArray[np.int32]) -> NDArray[np.int32]:
    """Faces turned so that the two faces of an edge run along it in opposite directions, wherever that is possible.

    Each face is two nodes, as it is and turned; an edge of the mesh joins the nodes that agree. The two components of
    a patch are its two windings, and the one with the most faces as they were is taken.
    """
    start, end = half_edges(faces)
    size = int(faces.max()) + 1
    key = np.minimum(start, end) * size + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    count = np.diff(np.append(first, len(ordered)))
    one, two = order[first[count == 2]], order[first[count == 2] + 1]
    f, g, agree = one // 3, two // 3, start[one] != start[two]
    if agree.all():
        return faces
    n = len(faces)
    a = np.concatenate([f, f + n])
    b = np.concatenate([np.where(agree, g, g + n), np.where(agree, g + n, g)])
    label = connected_labels(a, b, 2 * n)
    votes = np.bincount(label[:n], minlength=int(label.max()) + 1)
    as_is, turned = label[:n], label[n:]
    turn = (votes[turned] > votes[as_is]) | ((votes[turned] == votes[as_is]) & (turned < as_is))
    out = faces.copy()
    out[turn] = faces[turn][:, ::-1]
    return out


def split_fans(mesh: Mesh, twins: NDArray[np.int64]) -> Mesh:
    """Give each fan of faces a vertex of its own, so that no two sheets touch in a vertex or an edge."""
    label = fan_labels(mesh.faces, twins)
    _, first = np.unique(label, return_index=True)
    if len(first) == mesh.num_vertices:
        return mesh
    # Number fans by their first corner's vertex, so that untouched meshes keep their order.
    order = np.argsort(mesh.faces.reshape(-1)[first], kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    source = mesh.faces.reshape(-1)[first][order]
    return replace(take_vertices(mesh, source), faces=rank[label].reshape(-1, 3))


def pair_crowded(mesh: Mesh, twins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pair the half-edges of edges with more than two faces, so that each pair bounds one wedge of solid."""
    start, end = half_edges(mesh.faces)
    lone = np.flatnonzero(twins < 0)
    if not len(lone):
        return twins
    size = mesh.num_vertices
    key = np.minimum(start[lone], end[lone]) * size + np.maximum(start[lone], end[lone])
    order = np.argsort(key, kind="stable")
    splits = np.flatnonzero(np.diff(key[order])) + 1
    twins = twins.copy()
    for group in np.split(lone[order], splits):
        if len(group) > 2:
            for forward, backward in pair_by_angle(mesh, group):
                twins[forward], twins[backward] = backward, forward
    return twins


def pair_by_angle(mesh: Mesh, group: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Pairs (forward, backward) among the half-edges of one edge.

    Seen along the edge, the solid lies clockwise of a forward face and counter-clockwise of a backward one, so a
    backward face opens a wedge and the next forward face closes it: brackets, matched around the circle.
    """
    corner = mesh.faces.reshape(-1)
    after = group - group % 3 + (group + 1) % 3
    apex = mesh.vertices[corner[group - group % 3 + (group + 2) % 3]].astype(np.float64)
    low = np.minimum(corner[group], corner[after])[0]
    high = np.maximum(corner[group], corner[after])[0]
    origin = mesh.vertices[low].astype(np.float64)
    axis = mesh.vertices[high].astype(np.float64) - origin
    axis /= max(float(np.linalg.norm(axis)), 1e-300)
    arm = apex - origin
    arm -= np.outer(arm @ axis, axis)
    u = arm[0] / max(float(np.linalg.norm(arm[0])), 1e-300)
    angle = np.arctan2(arm @ np.cross(axis, u), arm @ u)
    around = group[np.argsort(angle, kind="stable")].tolist()
    pairs: list[tuple[int, int]] = []
    waiting: list[int] = []
    taken: set[int] = set()
    for h in around * 2:
        if h in taken:
            continue
        if corner[h] != low:
            if h not in waiting:
                waiting.append(h)
        elif waiting:
            backward = waiting.pop()
            pairs.append((h, backward))
            taken.update((h, backward))
    return pairs


def fill_holes(mesh: Mesh, max_hole_edges: int) -> Mesh:
    """Close each hole with a fan around the mean of its rim.

    Needs a mesh of single fans (`split_fans`): then every rim vertex has one open edge in and one out.
    """
    start, end = half_edges(mesh.faces)
    lone = np.flatnonzero(twins_of(mesh.faces) < 0)
    if not len(lone):
        return mesh
    a, b = start[lone], end[lone]
    loop_of_vertex = connected_labels(a, b, mesh.num_vertices)
    loops, loop, count = np.unique(loop_of_vertex[a], return_inverse=True, return_counts=True)
    if count.max() > max_hole_edges:
        raise GeometryError(f"the mesh has a hole with {count.max()} edges, above max_hole_edges {max_hole_edges}")
    rim = mesh.vertices[a].astype(np.float64)
    centre = np.stack([np.bincount(loop, rim[:, i]) for i in range(3)], axis=1) / count[:, None]
    hub = mesh.num_vertices + np.arange(len(loops))
    caps = np.stack([b, a, hub[loop]], axis=1).astype(np.int32)
    colors = mesh.vertex_colors
    if colors is not None:
        mean = np.stack([np.bincount(loop, colors[a][:, i]) for i in range(3)], axis=1) / count[:, None]
        colors = np.concatenate([colors, np.round(mean).astype(np.uint8)])
    return Mesh(
        vertices=np.concatenate([mesh.vertices, centre.astype(np.float32)]),
        faces=np.concatenate([mesh.faces, caps]),
        vertex_colors=colors,
    )
