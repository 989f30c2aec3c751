"""Edge collapses that cannot break a closed manifold: slow, careful, for small meshes and tiny budgets.

Plain Python numbers throughout: arrays of three would cost ten times as much here.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.measure import face_vectors

__all__ = ["collapse_edges"]

Point = tuple[float, float, float]
# Upper half of a symmetric 4 by 4 matrix: xx xy xz xw yy yz yw zz zw ww.
Quadric = tuple[float, ...]


def collapse_edges(
    vertices: NDArray[np.float32], faces: NDArray[np.int32], target: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Collapse the cheapest edges of a closed manifold until at most `target` faces are left, or no edge may go.

    An edge may go if the two rings around its ends share two vertices only (the link condition), which keeps the mesh
    a closed manifold of the same genus; of four faces that enclose something nothing goes. Turned-over faces are
    refused as long as there is another way.

    Sources: Garland and Heckbert, Surface Simplification Using Quadric Error Metrics (SIGGRAPH 1997); the link
    condition is that of Dey et al., Topology Preserving Edge Contraction (1999).
    """
    work = _Collapse(vertices, faces)
    work.run(target, gentle=True)
    if work.num_faces > target:
        work.run(target, gentle=False)
    return work.result()


class _Collapse:
    """A mesh in pieces: faces by number, faces of each vertex, an error quadric for each vertex."""

    def __init__(self, vertices: NDArray[np.float32], faces: NDArray[np.int32]) -> None:
        self.position: list[Point] = [(x, y, z) for x, y, z in vertices.astype(np.float64).tolist()]
        self.faces: dict[int, list[int]] = dict(enumerate(faces.tolist()))
        self.around: list[set[int]] = [set() for _ in vertices]
        for i, face in self.faces.items():
            for v in face:
                self.around[v].add(i)
        self.quadric = quadrics(vertices.astype(np.float64), faces)
        self.age = [0] * len(vertices)

    @property
    def num_faces(self) -> int:
        return len(self.faces)

    def run(self, target: int, *, gentle: bool) -> None:
        heap = [self.entry(u, v) for face in self.faces.values() for u, v in edges_of(face) if u < v]
        heapq.heapify(heap)
        while len(self.faces) > target and heap:
            _, u, v, age_u, age_v, place = heapq.heappop(heap)
            if self.age[u] != age_u or self.age[v] != age_v:
                continue
            if self.may_go(u, v) and not (gentle and self.turns_over(u, v, place)):
                self.collapse(u, v, place)
                for w in self.ring(u):
                    heapq.heappush(heap, self.entry(u, w))

    def entry(self, u: int, v: int) -> tuple[float, int, int, int, int, Point]:
        """Cost, ends, their ages, and the place of least cost."""
        q = tuple(a + b for a, b in zip(self.quadric[u], self.quadric[v], strict=True))
        cost, place = min((cost_at(q, p), p) for p in places(q, self.position[u], self.position[v]))
        return (cost, u, v, self.age[u], self.age[v], place)

    def ring(self, v: int) -> set[int]:
        return {w for i in self.around[v] for w in self.faces[i]} - {v}

    def may_go(self, u: int, v: int) -> bool:
        shared = self.around[u] & self.around[v]
        closed = len(self.around[u]) == 3 and len(self.around[v]) == 3
        return len(shared) == 2 and not closed and len(self.ring(u) & self.ring(v)) == 2

    def turns_over(self, u: int, v: int, place: Point) -> bool:
        for i in self.around[u] ^ self.around[v]:
            before = [self.position[w] for w in self.faces[i]]
            after = [place if w in {u, v} else p for w, p in zip(self.faces[i], before, strict=True)]
            n, m = normal_of(before), normal_of(after)
            along = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
            if along <= 0.1 * ((n[0] ** 2 + n[1] ** 2 + n[2] ** 2) * (m[0] ** 2 + m[1] ** 2 + m[2] ** 2)) ** 0.5:
                return True
        return False

    def collapse(self, u: int, v: int, place: Point) -> None:
        """Move v into u."""
        for i in self.around[u] & self.around[v]:
            for w in self.faces.pop(i):
                self.around[w].discard(i)
        for i in self.around[v]:
            self.faces[i] = [u if w == v else w for w in self.faces[i]]
            self.around[u].add(i)
        self.around[v] = set()
        self.position[u] = place
        self.quadric[u] = tuple(a + b for a, b in zip(self.quadric[u], self.quadric[v], strict=True))
        self.age[u] += 1
        self.age[v] += 1

    def result(self) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        faces = np.array([self.faces[i] for i in sorted(self.faces)], dtype=np.int64)
        used, inverse = np.unique(faces, return_inverse=True)
        vertices = np.array([self.position[v] for v in used], dtype=np.float32)
        return vertices, inverse.reshape(-1, 3).astype(np.int32)


def edges_of(face: list[int]) -> list[tuple[int, int]]:
    a, b, c = face
    return [(a, b), (b, c), (c, a)]


def normal_of(corners: list[Point]) -> Point:
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = corners
    ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
    return (uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx)


def cost_at(q: Quadric, p: Point) -> float:
    """Weighted squared distance of a point to the planes in a quadric."""
    x, y, z = p
    xx, xy, xz, xw, yy, yz, yw, zz, zw, ww = q
    return x * (xx * x + 2 * (xy * y + xz * z + xw)) + y * (yy * y + 2 * (yz * z + yw)) + z * (zz * z + 2 * zw) + ww


def places(q: Quadric, a: Point, b: Point) -> list[Point]:
    """Where the vertex of a collapsed edge may go: five places along it, and the quadric's minimum if that is near.

    On flat parts the minimum is not one point, and numbers run away; hence the test of the determinant.
    """
    between = [
        (a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])) for t in (0, 0.25, 0.5, 0.75, 1)
    ]
    xx, xy, xz, xw, yy, yz, yw, zz, zw, _ = q
    # Cofactors of the upper left 3 by 3.
    c0, c1, c2 = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    determinant = xx * c0 + xy * c1 + xz * c2
    if abs(determinant) > 1e-6 * (xx + yy + zz) ** 3:
        c3, c4, c5 = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
        free = (
            -(c0 * xw + c1 * yw + c2 * zw) / determinant,
            -(c1 * xw + c3 * yw + c4 * zw) / determinant,
            -(c2 * xw + c4 * yw + c5 * zw) / determinant,
        )
        middle = between[2]
        off = sum((f - m) ** 2 for f, m in zip(free, middle, strict=True))
        if off < 4 * sum((s - t) ** 2 for s, t in zip(a, b, strict=True)):
            between.append(free)
    return between


def quadrics(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> list[Quadric]:
    """For each vertex the squared distances to the planes of its faces, weighted by their areas."""
    vector = face_vectors(vertices, faces)
    area = np.linalg.norm(vector, axis=1)
    unit = vector / np.maximum(area, 1e-300)[:, None]
    plane = np.concatenate([unit, -np.einsum("ij,ij->i", unit, vertices[faces[:, 0]])[:, None]], axis=1)
    row, column = np.triu_indices(4)
    each = area[:, None] * plane[:, row] * plane[:, column]  # (F, 10)
    total = np.zeros((len(vertices), 10))
    for corner in range(3):
        np.add.at(total, faces[:, corner], each)
    # A little pull towards where the vertex was decides on flat parts, where every place costs nothing.
    pull = float(area.mean()) * 1e-6
    total[:, [0, 4, 7]] += pull
    total[:, [3, 6, 8]] -= pull * vertices
    total[:, 9] += pull * np.einsum("ij,ij->i", vertices, vertices)
    return [tuple(q) for q in total.tolist()]
