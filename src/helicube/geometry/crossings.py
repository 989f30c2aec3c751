"""Exact winding numbers of closed meshes on a lattice, by signed crossings along columns.

A mesh is closed here if every directed edge is balanced by its reverse, wherever the parts overlap: then the
generalised winding number is a whole number, and equals the signed count of faces below a point. That is some thirty
times faster than asking for every point, and exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["is_closed", "winding_lattice"]

# Columns stand a little off the voxel centres, so that none runs exactly through an edge or a vertex.
OFFSET_X, OFFSET_Y = 1.7320508e-5, 2.2360680e-5
# Candidate pairs (triangle, column) that are tested at once; bounds memory.
BATCH = 4_000_000


def is_closed(vertices: NDArray[np.floating], faces: NDArray[np.integer]) -> bool:
    """Whether each directed edge occurs as often as its reverse, with vertices at the same place taken as one."""
    merged = np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1)[faces].astype(np.int64)
    start, end = merged.reshape(-1), merged[:, [1, 2, 0]].reshape(-1)
    count = int(merged.max()) + 1
    forward = np.sort(start * count + end)
    backward = np.sort(end * count + start)
    return bool(np.array_equal(forward, backward))


def winding_lattice(local: NDArray[np.float64], faces: NDArray[np.integer], resolution: int) -> NDArray[np.int16]:
    """Winding numbers of a closed mesh at voxel centres; (R, R, R) int16, indexed x, y, z.

    Args:
        local: (V, 3) in voxel units: voxel i has its centre at i + 0.5.
    """
    # The extra slab takes the crossings above the last voxel centre.
    steps = np.zeros((resolution, resolution, resolution + 1), dtype=np.int16)
    corners = local[faces]  # (F, 3, 3)
    first_column = np.array([0.5 + OFFSET_X, 0.5 + OFFSET_Y])
    low = np.ceil(corners[:, :, :2].min(axis=1) - first_column).astype(np.int64).clip(0, resolution)
    high = np.floor(corners[:, :, :2].max(axis=1) - first_column).astype(np.int64).clip(-1, resolution - 1)
    size = (high - low + 1).clip(0)
    pairs = size[:, 0] * size[:, 1]
    ends = np.cumsum(pairs)
    first = 0
    while first < len(faces):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + BATCH, side="right")))
        _add_crossings(steps, corners[first:last], low[first:last], size[first:last], pairs[first:last])
        first = last
    return np.cumsum(steps[:, :, :-1], axis=2, dtype=np.int16)


def _add_crossings(
    steps: NDArray[np.int16],
    corners: NDArray[np.float64],
    low: NDArray[np.int64],
    size: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> None:
    """Add the crossings of some triangles to `steps`; entering through a face from below adds one."""
    triangle = np.repeat(np.arange(len(corners)), pairs)
    place = np.arange(len(triangle)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    column = low[triangle] + np.stack(np.divmod(place, size[triangle, 1].clip(1)), axis=1)  # (P, 2)
    x = column[:, 0] + (0.5 + OFFSET_X)
    y = column[:, 1] + (0.5 + OFFSET_Y)
    edge = []  # Twice the signed area between the column and each edge.
    for a, b in ((1, 2), (2, 0), (0, 1)):
        p, q = corners[:, a, :2], corners[:, b, :2]
        d = (q - p)[triangle]
        edge.append(d[:, 0] * (y - p[triangle, 1]) - d[:, 1] * (x - p[triangle, 0]))
    up = (edge[0] > 0) & (edge[1] > 0) & (edge[2] > 0)
    hit = np.flatnonzero(up | ((edge[0] < 0) & (edge[1] < 0) & (edge[2] < 0)))
    weights = np.stack([e[hit] for e in edge], axis=1)
    z = (weights * corners[triangle[hit], :, 2]).sum(axis=1) / weights.sum(axis=1)
    above = np.ceil(z - 0.5).astype(np.int64).clip(0, steps.shape[2] - 1)
    np.add.at(steps, (column[hit, 0], column[hit, 1], above), np.where(up[hit], -1, 1).astype(np.int16))
