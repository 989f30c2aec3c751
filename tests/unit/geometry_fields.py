"""Analytic fields and meshes with known size, for the tests of geometry. Positive inside, lengths in field units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from skimage.measure import marching_cubes

from helicube.geometry.mesh import Mesh
from helicube.geometry.repair import repair

Points = NDArray[np.float32]
Field = Callable[[Points], NDArray[np.float32]]


def sphere(points: Points, radius: float = 0.8, centre: tuple[float, float, float] = (0, 0, 0)) -> NDArray[np.float32]:
    return np.asarray(radius - np.linalg.norm(points - np.asarray(centre, dtype=np.float32), axis=1), dtype=np.float32)


def torus(points: Points) -> NDArray[np.float32]:
    return np.asarray(0.15 - np.hypot(np.hypot(points[:, 0], points[:, 2]) - 0.6, points[:, 1]), dtype=np.float32)


def box(points: Points, centre: tuple[float, float, float], half: tuple[float, float, float]) -> NDArray[np.float32]:
    q = np.abs(points - np.asarray(centre, dtype=np.float32)) - np.asarray(half, dtype=np.float32)
    outside = np.linalg.norm(np.maximum(q, 0), axis=1)
    return np.asarray(-(outside + np.minimum(q.max(axis=1), 0)), dtype=np.float32)


def thin_plate(points: Points) -> NDArray[np.float32]:
    """0.024 thick: about a third of a coarse cell."""
    return box(points, (0.011, 0.013, 0.007), (0.9, 0.9, 0.012))


def thin_rod(points: Points) -> NDArray[np.float32]:
    """Radius 0.015, a quarter of a coarse cell, and between the points of the coarse grid."""
    radial = 0.015 - np.hypot(points[:, 0] - 0.035, points[:, 2] - 0.03)
    return np.asarray(np.minimum(radial, 0.9 - np.abs(points[:, 1])), dtype=np.float32)


def two_bodies(points: Points) -> NDArray[np.float32]:
    return np.maximum(sphere(points, 0.3, (0.5, 0, 0)), sphere(points, 0.2, (-0.5, -0.3, 0)))


def chair(points: Points) -> NDArray[np.float32]:
    """Seat, back and four legs 0.05 wide."""
    field = np.maximum(box(points, (0, 0, 0), (0.5, 0.04, 0.5)), box(points, (0, 0.45, -0.46), (0.5, 0.45, 0.03)))
    for x in (-0.45, 0.45):
        for z in (-0.45, 0.45):
            field = np.maximum(field, box(points, (x, -0.45, z), (0.025, 0.45, 0.025)))
    return field


def wavy(points: Points) -> NDArray[np.float32]:
    """A sphere with smooth noise of several wavelengths, saturated as a network's logits are."""
    rng = np.random.default_rng(7)
    field = sphere(points, 0.7)
    for _ in range(12):
        x, y, z = (rng.normal(size=3) * rng.uniform(3, 14)).astype(np.float32)
        # Not a matrix product: BLAS rounds by batch size, and the tests compare bits.
        phase = points[:, 0] * x + points[:, 1] * y + points[:, 2] * z + np.float32(rng.uniform(0, 6))
        field = field + np.float32(0.02) * np.sin(phase)
    return np.asarray(8 * np.tanh(12 * field), dtype=np.float32)


FIELDS: dict[str, Field] = {
    "sphere": sphere,
    "torus": torus,
    "thin_plate": thin_plate,
    "thin_rod": thin_rod,
    "two_bodies": two_bodies,
    "chair": chair,
    "wavy": wavy,
}


def cube_mesh(size: float = 1.0, centre: tuple[float, float, float] = (0, 0, 0)) -> Mesh:
    """A closed cube of 12 triangles, wound outwards."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=np.float32)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [f for a, b, c, d in quads for f in ((a, b, c), (a, c, d))]
    vertices = (corners - 0.5) * np.float32(size) + np.asarray(centre, dtype=np.float32)
    return Mesh(vertices=vertices.astype(np.float32), faces=np.array(faces, dtype=np.int32))


def joined(*meshes: Mesh) -> Mesh:
    """Meshes side by side in one."""
    offsets = np.cumsum([0] + [m.num_vertices for m in meshes[:-1]])
    return Mesh(
        vertices=np.concatenate([m.vertices for m in meshes]),
        faces=np.concatenate([m.faces + o for m, o in zip(meshes, offsets, strict=True)]).astype(np.int32),
    )


def turned(mesh: Mesh) -> Mesh:
    """Inside out."""
    return Mesh(vertices=mesh.vertices, faces=np.ascontiguousarray(mesh.faces[:, ::-1]))


def signed_volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, i]].astype(np.float64) for i in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def rough_blocks(seed: int = 5) -> Mesh:
    """Cells that nearly touch, with pits and bridges on every face: collapses make its sheets meet."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(-1, 1, 73)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    cells = np.minimum(np.minimum(np.cos(9 * x), np.cos(9 * y)), np.cos(9 * z)) + 0.93
    noise = zoom(rng.normal(size=(19, 19, 19)), 73 / 19, order=1)
    inside = np.minimum(cells + 0.25 * noise, 0.9 - np.maximum(np.maximum(abs(x), abs(y)), abs(z)))
    vertices, faces, _, _ = marching_cubes(inside, 0.0, method="lorensen")  # type: ignore[no-untyped-call]
    return repair(Mesh(vertices=vertices.astype(np.float32), faces=faces[:, ::-1].astype(np.int32))).mesh
