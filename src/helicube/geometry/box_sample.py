"""What a tokenizer sees of one mesh: occupancy and coloured surface points in the coordinates of its bounding box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.winding import occupancy_lattice

__all__ = ["BAND", "EXTENT", "POINTS", "RESOLUTION", "BoxSample", "pool_mean", "sample_in_box", "unpack"]

# Voxels along each side of the box lattice. Divisible by the input voxels of lattices of 2, 4, 6 and 12 cells.
RESOLUTION = 96
# The object's bounding box spans ±EXTENT of the lattice's cube [-1, 1]³ along every axis, whatever its aspect.
EXTENT = 0.96
# Voxels kept beside the surface, and coloured points on it.
BAND = 8192
POINTS = 4096
# Objects with less of their box filled are open sheets, which have no inside to learn.
MIN_OCCUPANCY = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSample:
    """One object in box coordinates: each axis is stretched on its own to ±0.96."""

    # (R³/8,) uint8, occupancy bits of the voxel centres, x slowest.
    bits: NDArray[np.uint8]
    # (BAND,) uint32, flat indices of voxels beside the surface (repeated where there are fewer).
    band: NDArray[np.uint32]
    # (POINTS, 3) int16, positions · 32767.
    points: NDArray[np.int16]
    # (POINTS, 3) int8, unit normals in box coordinates · 127.
    normals: NDArray[np.int8]
    # (POINTS, 3) uint8, sRGB.
    colors: NDArray[np.uint8]
    # (3,) float32, size of the true bounding box, in the units of the mesh.
    extents: NDArray[np.float32]

    @property
    def surface(self) -> NDArray[np.float32]:
        """(POINTS, 3) points on the surface, box coordinates."""
        return self.points.astype(np.float32) / np.float32(32767)


def sample_in_box(
    vertices: NDArray[np.float32], faces: NDArray[np.integer], face_colors: NDArray[np.uint8], *, seed: int
) -> BoxSample | None:
    """Sample a mesh; None where it encloses (almost) no volume.

    Args:
        vertices, faces, face_colors: (V, 3), (F, 3), (F, 3) sRGB.
        seed: for the choice of voxels and points.
    """
    rng = np.random.default_rng(seed)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    extents = np.maximum(high - low, 1e-3 * max(float((high - low).max()), 1e-9))
    boxed = ((vertices - (low + high) / 2) / extents * (2 * EXTENT)).astype(np.float32)
    inside = occupancy_lattice(boxed, faces, resolution=RESOLUTION, low=np.full(3, -1.0), high=np.full(3, 1.0))
    if inside.mean() < MIN_OCCUPANCY:
        return None
    band = np.flatnonzero(_beside_surface(inside))
    face, points, normals = _surface_points(boxed, faces, inside, rng)
    return BoxSample(
        bits=np.packbits(inside),
        band=rng.choice(band, BAND, replace=len(band) < BAND).astype(np.uint32),
        points=np.round(points * 32767).astype(np.int16),
        normals=np.round(normals * 127).astype(np.int8),
        colors=face_colors[face],
        extents=extents.astype(np.float32),
    )


def _beside_surface(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Voxels with a face neighbour on the other side; (R, R, R) bool."""
    near = np.zeros_like(inside)
    for axis in range(3):
        a = inside.swapaxes(0, axis)
        n = near.swapaxes(0, axis)
        differ = a[1:] != a[:-1]
        n[1:] |= differ
        n[:-1] |= differ
    return near


def _surface_points(
    boxed: NDArray[np.float32], faces: NDArray[np.integer], inside: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Faces, points and normals, spread by area, of the surface that can be seen: inside on one side only."""
    corners = boxed[faces]  # (F, 3, 3)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1)
    face = rng.choice(len(area), 4 * POINTS, p=area / area.sum())
    u, v = rng.random((2, 4 * POINTS, 1))
    flip = u + v > 1
    u, v = np.where(flip, 1 - u, u), np.where(flip, 1 - v, v)
    a, b, c = corners[face, 0], corners[face, 1], corners[face, 2]
    points = a + u * (b - a) + v * (c - a)
    normals = cross[face] / area[face, None]
    step = normals * (2.0 / RESOLUTION)
    seen = np.flatnonzero(_look_up(inside, points + step) != _look_up(inside, points - step))
    pool = seen if len(seen) >= POINTS // 16 else np.arange(len(points))
    chosen = rng.choice(pool, POINTS, replace=len(pool) < POINTS)
    return face[chosen], points[chosen].astype(np.float32), normals[chosen].astype(np.float32)


def _look_up(inside: NDArray[np.bool_], points: NDArray[np.floating]) -> NDArray[np.bool_]:
    index = np.floor((points + 1) * (RESOLUTION / 2)).astype(np.int64).clip(0, RESOLUTION - 1)
    return np.asarray(inside[index[:, 0], index[:, 1], index[:, 2]])


def unpack(bits: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """(R³/8,) bits to (R, R, R) bool."""
    return np.unpackbits(bits).view(np.bool_).reshape((RESOLUTION,) * 3)


def pool_mean(voxels: NDArray[np.bool_], cells: int) -> NDArray[np.float32]:
    """Filled share of each of cells³ equal blocks of voxels; (cells, cells, cells) float32."""
    by = len(voxels) // cells
    assert by * cells == len(voxels), f"{cells} cells must divide {len(voxels)} voxels"
    counts = np.ascontiguousarray(voxels).view(np.uint8)
    # Slowest axis first: adding whole slabs is the cheap direction. by³ must fit a byte.
    counts = reduce(np.add, (counts[i::by] for i in range(by)))
    counts = reduce(np.add, (counts[:, i::by] for i in range(by)))
    counts = reduce(np.add, (counts[:, :, i::by] for i in range(by)))
    return np.asarray(counts, dtype=np.float32) / np.float32(by**3)
