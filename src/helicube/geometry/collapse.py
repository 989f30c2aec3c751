"""Edge collapses that cannot break a closed manifold: slow, careful, for small meshes and tiny budgets."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

__all__ = ["collapse_edges"]

Vector = NDArray[np.float64]


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
    work = _Collapse(vertices.astype(np.float64), faces)
    work.run(target, gentle=True)
    if work.num_faces > target:
        work.run(target, gentle=False)
    return work.result()


class _Collapse:
    """A mesh in pieces: faces by number, faces of each vertex, an error quadric for each vertex."""

    def __init__(self, vertices: Vector, faces: NDArray[np.int32]) -> None:
        self.position: list[Vector] = list(vertices)
        self.faces: dict[int, list[int]] = dict(enumerate(faces.tolist()))
        self.around: list[set[int]] = [set() for _ in vertices]
        for i, face in self.faces.items():
            for v in face:
                self.around[v].add(i)
        self.quadric = quadrics(vertices, faces)
        self.age = [0] * len(vertices)

    @property
    def num_faces(self) -> int:
        return len(self.faces)

    def run(self, target: int, *, gentle: bool) -> None:
        heap = [self.entry(u, v) for face in self.faces.values() for u, v in edges_of(face) if u < v]
        heapq.heapify(heap)
        while len(self.faces) > target and heap:
            _, u, v, age_u, age_v = heapq.heappop(heap)
            if self.age[u] != age_u or self.age[v] != age_v:
                continue
            best = self.best_place(u, v)
            if self.may_go(u, v) and not (gentle and self.turns_over(u, v, best)):
                self.collapse(u, v, best)
                for w in self.ring(u):
                    heapq.heappush(heap, self.entry(u, w))

    def entry(self, u: int, v: int) -> tuple[float, int, int, int, int]:
        return (self.cost(u, v, self.best_place(u, v)), u, v, self.age[u], self.age[v])

    def cost(self, u: int, v: int, place: Vector) -> float:
        h = np.append(place, 1.0)
        return float(h @ (self.quadric[u] + self.quadric[v]) @ h)

    def best_place(self, u: int, v: int) -> Vector:
        """The least error on the line between the ends and a third beyond: free minima run away on flat parts."""
        a, b = self.position[u], self.position[v]
        places = [a + t * (b - a) for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
        q = self.quadric[u] + self.quadric[v]
        matrix = q[:3, :3]
        if abs(np.linalg.det(matrix)) > 1e-6 * max(float(np.trace(matrix)) ** 3, 1e-300):
            free = np.asarray(np.linalg.solve(matrix, -q[:3, 3]), dtype=np.float64)
            if float(np.linalg.norm(free - (a + b) / 2)) < 2 * float(np.linalg.norm(b - a)):
                places.append(free)
        return min(places, key=lambda p: self.cost(u, v, p))

    def ring(self, v: int) -> set[int]:
        return {w for i in self.around[v] for w in self.faces[i]} - {v}

    def may_go(self, u: int, v: int) -> bool:
        shared = self.around[u] & self.around[v]
        closed = len(self.around[u]) == 3 and len(self.around[v]) == 3
        return len(shared) == 2 and not closed and len(self.ring(u) & self.ring(v)) == 2

    def turns_over(self, u: int, v: int, place: Vector) -> bool:
        for i in self.around[u] ^ self.around[v]:
            before = [self.position[w] for w in self.faces[i]]
            after = [place if w in {u, v} else p for w, p in zip(self.faces[i], before, strict=True)]
            n, m = (np.cross(p[1] - p[0], p[2] - p[0]) for p in (before, after))
            if float(n @ m) <= 0.1 * float(np.linalg.norm(n) * np.linalg.norm(m)):
                return True
        return False

    def collapse(self, u: int, v: int, place: Vector) -> None:
        """Move v into u."""
        for i in self.around[u] & self.around[v]:
            for w in self.faces.pop(i):
                self.around[w].discard(i)
        for i in self.around[v]:
            self.faces[i] = [u if w == v else w for w in self.faces[i]]
            self.around[u].add(i)
        self.around[v] = set()
        self.position[u] = place
        self.quadric[u] = self.quadric[u] + self.quadric[v]
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


def quadrics(vertices: Vector, faces: NDArray[np.int32]) -> list[Vector]:
    """(4, 4) for each vertex: squared distances to the planes of its faces, weighted by their areas."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    area = np.linalg.norm(normal, axis=1)
    unit = normal / np.maximum(area, 1e-300)[:, None]
    plane = np.concatenate([unit, -np.einsum("ij,ij->i", unit, a)[:, None]], axis=1)
    each = np.einsum("f,fi,fj->fij", area, plane, plane)
    total = np.zeros((len(vertices), 4, 4))
    for corner in range(3):
        np.add.at(total, faces[:, corner], each)
    # A little pull towards where the vertex was decides on flat parts, where every place costs nothing.
    mean = area.mean() * 1e-6
    for i, p in enumerate(vertices):
        pull = np.eye(4)
        pull[:3, 3] = pull[3, :3] = -p
        pull[3, 3] = float(p @ p)
        total[i] += mean * pull
    return list(total)
