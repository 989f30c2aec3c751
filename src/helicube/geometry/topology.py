"""How faces hang together: half-edges, twins, fans, components. Positions play no part here.

A half-edge h = 3 f + c runs along face f from its corner c to its next corner. Legend: F faces, V vertices, H = 3 F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

__all__ = ["EdgeFaults", "edge_faults", "face_components", "fan_labels", "is_manifold", "is_watertight", "twins_of"]

Faces = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeFaults:
    """Ways in which edges fail to be shared by exactly two faces in opposite directions."""

    # Faces that use a vertex twice.
    num_degenerate: int
    # Directed edges used more than once.
    num_doubled: int
    # Directed edges without one in the opposite direction.
    num_open: int

    @property
    def none(self) -> bool:
        return not (self.num_degenerate or self.num_doubled or self.num_open)


def half_edges(faces: Faces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end vertex of each half-edge, both (H,)."""
    start = faces.reshape(-1).astype(np.int64)
    end = np.roll(faces, -1, axis=1).reshape(-1).astype(np.int64)
    return start, end


def edge_faults(faces: Faces) -> EdgeFaults:
    """Count what keeps a mesh from being a closed, consistently wound 2-manifold along its edges."""
    if not len(faces):
        return EdgeFaults(num_degenerate=0, num_doubled=0, num_open=0)
    start, end = half_edges(faces)
    size = int(max(start.max(), end.max())) + 1
    there, back = np.sort(start * size + end), np.sort(end * size + start)
    doubled = int(np.count_nonzero(there[1:] == there[:-1]))
    num_open = 0 if np.array_equal(there, back) else int(np.count_nonzero(~np.isin(there, back)))
    return EdgeFaults(num_degenerate=int(np.count_nonzero(start == end)), num_doubled=doubled, num_open=num_open)


def is_watertight(faces: Faces) -> bool:
    """Every edge is used exactly twice, in opposite directions, and there is at least one face."""
    return len(faces) > 0 and edge_faults(faces).none


def is_manifold(faces: Faces) -> bool:
    """Watertight, and the faces at each vertex form a single fan."""
    return is_watertight(faces) and num_fans(twins_of(faces)) == int(np.count_nonzero(np.bincount(faces.reshape(-1))))


def twins_of(faces: Faces) -> NDArray[np.int64]:
    """(H,) the half-edge on the other side, or -1 unless an edge has exactly two, in opposite directions."""
    start, end = half_edges(faces)
    size = int(max(start.max(), end.max())) + 1
    key = np.minimum(start, end) * size + np.maximum(start, end)
    order = np.argsort(key)
    ordered = key[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    pair = first[np.diff(first, append=len(ordered)) == 2]
    one, two = order[pair], order[pair + 1]
    opposite = start[one] != start[two]
    twins = np.full(len(start), -1, dtype=np.int64)
    twins[one[opposite]] = two[opposite]
    twins[two[opposite]] = one[opposite]
    return twins


def num_fans(twins: NDArray[np.int64]) -> int:
    """Number of fans of a mesh in which every half-edge has a twin; a few times faster than `fan_labels`.

    From a corner, the twin of the half-edge before it starts at the next corner of the fan: a permutation, whose
    cycles are the fans. Labels spread along it by doubling steps.
    """
    h = np.arange(len(twins))
    step = twins[h - h % 3 + (h + 2) % 3]
    label = h
    while True:
        lower = np.minimum(label, label[step])
        if np.array_equal(lower, label):
            return int(np.count_nonzero(label == h))
        label, step = lower, step[step]


def fan_labels(faces: Faces, twins: NDArray[np.int64]) -> NDArray[np.int32]:
    """(H,) for each corner the fan it belongs to: corners at one vertex that twins connect share a label."""
    paired = np.flatnonzero(twins >= 0)
    # The end corner of h and the start corner of its twin are at the same vertex.
    after = paired - paired % 3 + (paired + 1) % 3
    return connected_labels(after, twins[paired], faces.size)


def face_components(faces: Faces) -> tuple[int, NDArray[np.int32]]:
    """Number of components that share vertices, and (F,) the component of each face."""
    size = int(faces.max()) + 1
    of_vertex = connected_labels(
        np.concatenate([faces[:, 0], faces[:, 1]]), np.concatenate([faces[:, 1], faces[:, 2]]), size
    )
    of_face = of_vertex[faces[:, 0]]
    # Vertices that no face uses have labels too; close the gaps.
    used = np.zeros(int(of_vertex.max()) + 1, dtype=np.int32)
    used[of_face] = 1
    dense = np.cumsum(used, dtype=np.int32) - 1
    return int(dense[-1]) + 1, dense[of_face]


def connected_labels(a: NDArray[np.integer], b: NDArray[np.integer], size: int) -> NDArray[np.int32]:
    """(size,) component of each node of the graph with edges a[i]-b[i]."""
    graph = coo_matrix((np.ones(len(a), dtype=np.bool_), (a, b)), shape=(size, size)).tocsr()
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)
