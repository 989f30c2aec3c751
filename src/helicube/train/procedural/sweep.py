"""Solids swept from rings of points: lofts, revolutions, tubes, extrusions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from helicube.train.procedural.solid import Floats, Ints, Solid, oriented

__all__ = ["circle", "extrude", "lathe", "loft", "triangulate", "tube"]

_POINT = 1e-9


def loft(rings: ArrayLike, *, loop: bool = False) -> Solid:
    """Join K rings of N points each, given as (K, N, 3), by quads; the ends are capped, or joined if `loop`.

    An end ring whose points all coincide becomes one vertex. Caps are fans from the first point of their ring, so end
    rings must be convex (or at least visible from there).
    """
    points = np.asarray(rings, dtype=np.float64)
    count, size = points.shape[:2]
    index = np.arange(count * size).reshape(count, size)
    tips = [] if loop else [row for row in (0, count - 1) if np.ptp(points[row], axis=0).max() < _POINT]
    for row in tips:
        index[row] = index[row, 0]
    upper = np.roll(index, -1, axis=0) if loop else index[1:]
    lower = index if loop else index[:-1]
    a, b = lower, np.roll(lower, -1, axis=1)
    d, c = upper, np.roll(upper, -1, axis=1)
    faces = [np.stack([a, b, c], axis=-1).reshape(-1, 3), np.stack([a, c, d], axis=-1).reshape(-1, 3)]
    if not loop:
        fan = np.stack([np.zeros(size - 2, np.int64), np.arange(1, size - 1), np.arange(2, size)], axis=1)
        faces += [index[0][fan[:, ::-1]]] if 0 not in tips else []
        faces += [index[-1][fan]] if count - 1 not in tips else []
    return _compact(points.reshape(-1, 3), np.concatenate(faces))


def _compact(points: Floats, faces: Ints) -> Solid:
    """Drop faces that name a vertex twice and vertices that no face names."""
    same = (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 2] == faces[:, 0])
    used, inverse = np.unique(faces[~same], return_inverse=True)
    return oriented(points[used], inverse.reshape(-1, 3).astype(np.int64))


def circle(radius: float, sides: int, *, phase: float = 0.0) -> Floats:
    """(sides, 2) points (x, z), counter-clockwise seen from +Y; `phase` in turns of one side."""
    angle = (np.arange(sides) + phase) * (2 * np.pi / sides)
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)


def lathe(profile: Sequence[tuple[float, float]], sides: int = 12, *, loop: bool = False, phase: float = 0.0) -> Solid:
    """Turn (radius, y) points about the Y axis; a radius of 0 at an end closes it with a vertex."""
    unit = circle(1.0, sides, phase=phase)
    radius, y = np.array(profile, dtype=np.float64).T
    rings = np.empty((len(radius), sides, 3))
    rings[:, :, 0] = radius[:, None] * unit[:, 0]
    rings[:, :, 1] = y[:, None]
    rings[:, :, 2] = radius[:, None] * unit[:, 1]
    return loft(rings, loop=loop)


def tube(path: ArrayLike, radius: float | Sequence[float], sides: int = 8, *, loop: bool = False) -> Solid:
    """Sweep a circle along (K, 3) points with one radius or one for each point; frames by parallel transport."""
    points = np.asarray(path, dtype=np.float64)
    radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), len(points))
    ahead = np.roll(points, -1, axis=0) - points
    behind = np.roll(ahead, 1, axis=0)
    if not loop:
        ahead[-1], behind[0] = ahead[-2], behind[1]
    tangents = ahead / np.linalg.norm(ahead, axis=1)[:, None] + behind / np.linalg.norm(behind, axis=1)[:, None]
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1), _POINT)[:, None]
    side = np.eye(3)[np.argmin(np.abs(tangents[0]))]
    unit = circle(1.0, sides, phase=0.5)
    rings = np.empty((len(points), sides, 3))
    for i, tangent in enumerate(tangents):
        side = side - tangent * (side @ tangent)
        side = side / np.linalg.norm(side)
        other = np.cross(tangent, side)
        rings[i] = points[i] + radii[i] * (unit[:, :1] * side + unit[:, 1:] * other)
    return loft(rings, loop=loop)


def extrude(outline: ArrayLike, depth: float) -> Solid:
    """Extrude a simple polygon of (N, 2) points (x, y) along z, centred on z = 0; concave outlines are fine."""
    points = np.asarray(outline, dtype=np.float64)
    x, y = points.T
    if float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) < 0:
        points = points[::-1]
    size = len(points)
    caps = triangulate(points)
    base = np.arange(size)
    step = np.roll(base, -1)
    sides = np.concatenate([np.stack([base, step, step + size], 1), np.stack([base, step + size, base + size], 1)])
    back = np.column_stack([points, np.full(size, -depth / 2)])
    front = np.column_stack([points, np.full(size, depth / 2)])
    return Solid(np.concatenate([back, front]), np.concatenate([sides, caps[:, ::-1], caps + size]))


def triangulate(points: Floats) -> Ints:
    """Ear clipping of a simple counter-clockwise polygon of (N, 2) points; (N - 2, 3) indices."""
    rest = list(range(len(points)))
    coords = points.tolist()
    faces: list[tuple[int, int, int]] = []
    while len(rest) > 3:
        best = max(range(len(rest)), key=lambda k: _ear_quality(coords, rest, k))
        a, b, c = rest[best - 1], rest[best], rest[(best + 1) % len(rest)]
        faces.append((a, b, c))
        del rest[best]
    faces.append((rest[0], rest[1], rest[2]))
    return np.array(faces, dtype=np.int64)


def _ear_quality(coords: list[list[float]], rest: list[int], k: int) -> float:
    """Twice the area of the ear at position k over its squared longest side; negative where it is none."""
    ia, ib, ic = rest[k - 1], rest[k], rest[(k + 1) % len(rest)]
    (ax, ay), (bx, by), (cx, cy) = coords[ia], coords[ib], coords[ic]
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    if area <= _POINT:
        return area - 1.0
    for i in rest:
        if i in (ia, ib, ic):
            continue
        px, py = coords[i]
        if (
            (bx - ax) * (py - ay) - (by - ay) * (px - ax) >= 0
            and (cx - bx) * (py - by) - (cy - by) * (px - bx) >= 0
            and (ax - cx) * (py - cy) - (ay - cy) * (px - cx) >= 0
        ):
            return -2.0
    longest = max((bx - ax) ** 2 + (by - ay) ** 2, (cx - bx) ** 2 + (cy - by) ** 2, (ax - cx) ** 2 + (ay - cy) ** 2)
    return area / longest
