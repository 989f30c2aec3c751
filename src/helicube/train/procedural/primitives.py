"""Closed low-poly solids, centred on the origin unless said otherwise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull

from helicube.train.procedural.solid import Floats, Ints, Solid, oriented
from helicube.train.procedural.sweep import lathe, loft, tube

__all__ = [
    "arc",
    "ball",
    "bevel_box",
    "blob",
    "box",
    "capsule",
    "cone",
    "cylinder",
    "frustum",
    "hull",
    "icosphere",
    "link",
    "rock",
    "rounded_slab",
    "terrain",
    "torus",
    "wedge",
]


def box(x: float, y: float, z: float) -> Solid:
    """A box of full sizes x, y, z."""
    return Solid(_CUBE_VERTICES * np.array([x, y, z]) / 2, _CUBE_FACES)


_CUBE_VERTICES: Floats = np.array([[i, j, k] for i in (-1.0, 1.0) for j in (-1.0, 1.0) for k in (-1.0, 1.0)])
_CUBE_FACES: Ints = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
     [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)  # fmt: skip


def bevel_box(x: float, y: float, z: float, bevel: float) -> Solid:
    """A box whose edges are cut off at `bevel`, which is kept under 45 % of the smallest side."""
    half = np.array([x, y, z]) / 2
    cut = min(bevel, 0.9 * float(half.min()))
    inner = half - cut
    points = [sign * np.where(np.arange(3) == axis, half, inner) for sign in _CUBE_VERTICES for axis in range(3)]
    return Solid(np.array(points), _bevel_faces())


@lru_cache(maxsize=1)
def _bevel_faces() -> Ints:
    points = [sign * np.where(np.arange(3) == axis, 1.0, 0.7) for sign in _CUBE_VERTICES for axis in range(3)]
    solid = hull(points)
    order = [int(np.argmin(np.abs(np.array(points) - v).sum(axis=1))) for v in solid.vertices]
    return np.array(order, dtype=np.int64)[solid.faces]


def hull(points: ArrayLike) -> Solid:
    """The convex hull of (N, 3) points that do not all lie in a plane."""
    cloud = np.asarray(points, dtype=np.float64)
    qhull = ConvexHull(cloud)
    faces = qhull.simplices.astype(np.int64)
    a, b, c = (cloud[faces[:, i]] for i in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), qhull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    used, inverse = np.unique(faces, return_inverse=True)
    return Solid(cloud[used], inverse.reshape(-1, 3).astype(np.int64))


def wedge(x: float, y: float, z: float, *, ridge: float = 1.0) -> Solid:
    """A gable: an x by z rectangle at the bottom, a ridge along z of length `ridge` * z at the top."""
    corners = [(i * x / 2, -y / 2, k * z / 2) for i in (-1, 1) for k in (-1, 1)]
    if ridge <= 0:
        return Solid(np.array([*corners, (0.0, y / 2, 0.0)]), _PYRAMID_FACES)
    return Solid(np.array([*corners, (0.0, y / 2, -ridge * z / 2), (0.0, y / 2, ridge * z / 2)]), _WEDGE_FACES)


_WEDGE_FACES: Ints = np.array([[0, 2, 3], [0, 3, 1], [0, 4, 2], [1, 3, 5], [0, 1, 5], [0, 5, 4], [2, 4, 5], [2, 5, 3]])
_PYRAMID_FACES: Ints = np.array([[0, 2, 3], [0, 3, 1], [0, 4, 2], [1, 3, 4], [0, 1, 4], [2, 4, 3]])


def frustum(bottom: tuple[float, float, float], top: tuple[float, float, float], low: float, high: float) -> Solid:
    """A block between two rectangles, each given as (width in x, back z, front z), at the heights `low` and `high`."""
    rings = [
        [(x / 2, y, back), (-x / 2, y, back), (-x / 2, y, front), (x / 2, y, front)]
        for (x, back, front), y in ((bottom, low), (top, high))
    ]
    return loft(rings)


def cylinder(radius: float, height: float, sides: int = 12, *, top: float | None = None, phase: float = 0.5) -> Solid:
    """A cylinder along y, or a frustum where `top` gives another radius; a `top` of 0 is a cone."""
    upper = radius if top is None else top
    return lathe([(radius, -height / 2), (upper, height / 2)], sides, phase=phase)


def cone(radius: float, height: float, sides: int = 8) -> Solid:
    """A cone along y with its tip up."""
    return cylinder(radius, height, sides, top=0.0)


def ball(x: float, y: float, z: float, sides: int = 10, rings: int = 6) -> Solid:
    """An ellipsoid of full sizes x, y, z, with poles on y."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, rings + 1)
    profile = [(float(np.cos(a)), float(np.sin(a))) for a in angle]
    profile[0], profile[-1] = (0.0, -1.0), (0.0, 1.0)
    return lathe(profile, sides).scaled(x / 2, y / 2, z / 2)


@lru_cache(maxsize=4)
def _icosphere(level: int) -> Solid:
    g = (1 + 5**0.5) / 2
    points = [(0.0, i, j * g) for i in (-1.0, 1.0) for j in (-1.0, 1.0)]
    points += [(i, j * g, 0.0) for i in (-1.0, 1.0) for j in (-1.0, 1.0)]
    points += [(j * g, 0.0, i) for i in (-1.0, 1.0) for j in (-1.0, 1.0)]
    solid = hull(np.array(points) / (1 + g * g) ** 0.5)
    for _ in range(level):
        ends = np.sort(solid.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        edges, inverse = np.unique(ends, axis=0, return_inverse=True)
        middle = solid.vertices[edges].mean(axis=1)
        ab, bc, ca = (inverse.reshape(-1, 3) + len(solid.vertices)).T
        a, b, c = solid.faces.T
        faces = np.concatenate([np.stack(t, 1) for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))])
        unit = middle / np.linalg.norm(middle, axis=1)[:, None]
        solid = Solid(np.concatenate([solid.vertices, unit]), faces)
    return solid


def icosphere(x: float, y: float, z: float, level: int = 1) -> Solid:
    """An ellipsoid of full sizes x, y, z with 20 * 4^level even triangles."""
    return _icosphere(level).scaled(x / 2, y / 2, z / 2)


def blob(rng: np.random.Generator, x: float, y: float, z: float, *, rough: float = 0.12, level: int = 1) -> Solid:
    """An ellipsoid of about sizes x, y, z with a smooth random relief of relative height `rough`."""
    base = _icosphere(level)
    waves = rng.normal(size=(5, 3)) * 2.2
    relief = np.sin(base.vertices @ waves.T + rng.uniform(0, 2 * np.pi, 5)).mean(axis=1)
    jitter = rng.uniform(-0.4, 0.4, len(relief))
    factor = 1 + rough * (1.6 * relief + jitter)
    return Solid(base.vertices * factor[:, None] * np.array([x, y, z]) / 2, base.faces)


def rock(rng: np.random.Generator, x: float, y: float, z: float, *, rough: float = 0.2, cuts: int = 5) -> Solid:
    """A boulder of about sizes x, y, z standing on y = 0: a rough ellipsoid pressed against random planes."""
    points = blob(rng, 2.0, 2.0, 2.0, rough=rough, level=1).vertices
    for _ in range(cuts):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        over = np.maximum(points @ normal - rng.uniform(0.62, 0.85), 0)
        points = points - 0.96 * over[:, None] * normal
    points[:, 1] = np.where(points[:, 1] < -0.55, -0.55 + 0.02 * (points[:, 1] + 0.55), points[:, 1])
    solid = hull(points).scaled(x / 2, y / 1.55, z / 2)
    return solid.at(y=-float(solid.vertices[:, 1].min()))


def capsule(radius: float, length: float, sides: int = 8, rings: int = 3) -> Solid:
    """A cylinder along y with round ends; `length` includes them."""
    straight = max(length / 2 - radius, 0.0)
    angle = np.linspace(0, np.pi / 2, rings + 1)
    dome = [(radius * float(np.cos(a)), straight + radius * float(np.sin(a))) for a in angle]
    dome[-1] = (0.0, straight + radius)
    lower = [(r, -y) for r, y in reversed(dome)]
    return lathe(lower + (dome if straight > 0 else dome[1:]), sides)


def torus(radius: float, thickness: float, sides: int = 12, tube_sides: int = 6) -> Solid:
    """A ring in the x-z plane: `radius` to the middle of the tube, `thickness` the tube's diameter."""
    angle = (np.arange(tube_sides) + 0.5) * (2 * np.pi / tube_sides)
    profile = [(radius + thickness / 2 * float(np.cos(a)), thickness / 2 * float(np.sin(a))) for a in angle]
    return lathe(profile, sides, loop=True)


def arc(radius: float, start: float, stop: float, steps: int) -> Floats:
    """(steps + 1, 3) points on a circle in the x-y plane; angles in degrees from +x towards +y."""
    angle = np.radians(np.linspace(start, stop, steps + 1))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)], axis=1)


def link(start: ArrayLike, stop: ArrayLike, radius: float, sides: int = 6, *, top: float | None = None) -> Solid:
    """A straight round bar between two points, tapering from `radius` to `top` where given."""
    ends = np.array([start, stop], dtype=np.float64)
    return tube(ends, [radius, radius if top is None else top], sides)


def terrain(heights: ArrayLike, x: float, z: float) -> Solid:
    """A block over an (N, M) grid of positive heights, x by z in size, with a flat bottom at y = 0."""
    grid = np.asarray(heights, dtype=np.float64)
    rows, columns = grid.shape
    xs, zs = np.meshgrid(np.linspace(-x / 2, x / 2, rows), np.linspace(-z / 2, z / 2, columns), indexing="ij")
    top = np.stack([xs, grid, zs], axis=-1).reshape(-1, 3)
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
    faces = np.concatenate([np.stack([a, d, c], -1).reshape(-1, 3), np.stack([a, c, b], -1).reshape(-1, 3)])
    rim = np.concatenate([index[0, :-1], index[:-1, -1], index[-1, :0:-1], index[:0:-1, 0]])
    size = rows * columns
    low = np.arange(len(rim)) + size
    step, low_step = np.roll(rim, -1), np.roll(low, -1)
    sides = [np.stack([rim, low, low_step], 1), np.stack([rim, low_step, step], 1)]
    middle = np.full(len(rim), size + len(rim))
    bottom = np.stack([middle, low_step, low], 1)
    ground = top[rim] * np.array([1.0, 0.0, 1.0])
    points = np.concatenate([top, ground, [[0.0, 0.0, 0.0]]])
    return oriented(points, np.concatenate([faces, *sides, bottom]))


def rounded_slab(x: float, y: float, z: float, corner: float, steps: int = 2) -> Solid:
    """A plate of sizes x, y, z whose four upright edges are rounded."""
    cut = min(corner, 0.49 * min(x, z))
    quarter = np.linspace(0, np.pi / 2, steps + 1)
    ring = [
        (sx * (x / 2 - cut) + cut * np.sin(q + turn), sz * (z / 2 - cut) + cut * np.cos(q + turn))
        for turn, (sx, sz) in zip(np.arange(4) * np.pi / 2, ((1, 1), (1, -1), (-1, -1), (-1, 1)), strict=True)
        for q in quarter
    ]
    return loft([[(px, h, pz) for px, pz in ring] for h in (-y / 2, y / 2)])
