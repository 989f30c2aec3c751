"""Occupancy of a triangle soup by generalised winding number.

Source: Barill et al., "Fast Winding Numbers for Soups and Clouds" (2018), through libigl. A point is inside where the
absolute winding number exceeds one half, so meshes with holes or overlapping parts have an inside too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.crossings import is_closed, winding_lattice

__all__ = ["box_lattice", "occupancy", "occupancy_lattice"]

Inside = Callable[[NDArray[np.floating]], NDArray[np.bool_]]

# The lattice is decided in blocks of 4³ voxels, then groups of 2³, then single voxels.
BLOCK, GROUP = 4, 2
# Spacing of the points that find the voxels near a triangle, in voxels: what they miss of a group is thinner than the
# half voxel between the group's border and its first voxel centre.
SPACING = 0.7


# Barnes-Hut accuracy of the tree code. 1.5 differs from the exact value in about 1 voxel of 5,000 and takes two thirds
# of the time of libigl's default, 2.
ACCURACY = 1.5


def occupancy(
    vertices: NDArray[np.floating], faces: NDArray[np.integer], points: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Whether each of the (n, 3) points is inside the mesh of (V, 3) vertices and (F, 3) faces; (n,) bool."""
    return _tree_inside(vertices, faces)(points)


def _tree_inside(vertices: NDArray[np.floating], faces: NDArray[np.integer]) -> Inside:
    """A question that can be asked many times of one mesh."""
    import igl

    tree = igl.FastWindingNumberBVH()
    tree.init(np.asarray(vertices, dtype=np.float64), np.asarray(faces, dtype=np.int64))

    def inside(points: NDArray[np.floating]) -> NDArray[np.bool_]:
        winding = tree.winding_number(np.asarray(points, dtype=np.float64), ACCURACY)
        return np.asarray(np.abs(winding) > 0.5)

    return inside


def box_lattice(resolution: int, low: NDArray[np.floating], high: NDArray[np.floating]) -> NDArray[np.float64]:
    """Centres of resolution³ voxels that fill the box [low, high]; (R, R, R, 3), indexed x, y, z."""
    steps = (np.arange(resolution) + 0.5) / resolution
    axes = [low[d] + steps * (high[d] - low[d]) for d in range(3)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def occupancy_lattice(
    vertices: NDArray[np.float32],
    faces: NDArray[np.integer],
    *,
    resolution: int,
    low: NDArray[np.floating],
    high: NDArray[np.floating],
) -> NDArray[np.bool_]:
    """Occupancy at the voxel centres of a box; (R, R, R) bool, indexed x, y, z.

    Closed meshes are decided by counting crossings. For others the winding number is asked for only where it can
    change: it is harmonic away from the triangles, so a block that none of them touches and whose corners agree is
    decided by the corners, and a group of 2³ voxels that none touches by its centre. About five times fewer queries
    than the dense lattice.

    Args:
        resolution: R, a multiple of 4.
        low, high: (3,) opposite corners of the box.
    """
    assert resolution % BLOCK == 0, f"resolution={resolution} must be a multiple of {BLOCK}"
    # In voxel units: voxel i has its centre at i + 0.5.
    scale = resolution / (np.asarray(high, dtype=np.float64) - low)

    local = (np.asarray(vertices, dtype=np.float64) - low) * scale
    if is_closed(vertices, faces):
        return np.asarray(winding_lattice(local, faces, resolution) != 0)
    inside = _tree_inside(local, faces)
    touched_groups = _touched(local, faces, resolution // GROUP)
    blocks = resolution // BLOCK
    block_inside, open_blocks = _blocks_by_corners(inside(_corners(blocks)).reshape((blocks + 1,) * 3))
    open_blocks |= _pool_any(touched_groups)
    group_inside = _refine(block_inside)
    by_centre = _refine(open_blocks) & ~touched_groups
    _ask(group_inside, by_centre, GROUP, inside)
    voxel_inside = _refine(group_inside)
    _ask(voxel_inside, _refine(touched_groups), 1, inside)
    return voxel_inside


def _ask(values: NDArray[np.bool_], where: NDArray[np.bool_], size: int, inside: Inside) -> None:
    """Overwrite `values` at the cells of edge `size` voxels in `where` with the occupancy of their centres."""
    index = np.argwhere(where)
    if len(index):
        values[where] = inside((index + 0.5) * size)


def _refine(cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n, n, n) to (2n, 2n, 2n), each cell repeated."""
    return cells.repeat(2, 0).repeat(2, 1).repeat(2, 2)


def _pool_any(cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(2n, 2n, 2n) to (n, n, n), true where any of the eight is."""
    n = cells.shape[0] // 2
    return np.asarray(cells.reshape(n, 2, n, 2, n, 2).any(axis=(1, 3, 5)))


def _corners(blocks: int) -> NDArray[np.float64]:
    axis = np.arange(blocks + 1, dtype=np.float64) * BLOCK
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)


def _blocks_by_corners(corner: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Per block: whether most corners are inside, and whether the corners disagree; both (n, n, n) bool."""
    n = corner.shape[0] - 1
    count = sum(
        corner[dx : dx + n, dy : dy + n, dz : dz + n].astype(np.int8)
        for dx in (0, 1) for dy in (0, 1) for dz in (0, 1)
    )  # fmt: skip
    return np.asarray(count > 4), np.asarray((count > 0) & (count < 8))


def _touched(local: NDArray[np.float64], faces: NDArray[np.integer], groups: int) -> NDArray[np.bool_]:
    """Groups that a triangle passes through; local: (V, 3) in voxel units; (groups, groups, groups) bool."""
    touched = np.zeros((groups, groups, groups), dtype=np.bool_)
    corners = local[faces]  # (F, 3, 3)
    edges = corners - corners[:, [1, 2, 0]]
    steps = np.ceil(np.linalg.norm(edges, axis=-1).max(axis=1) / SPACING).astype(np.int64).clip(1)
    # Rounded up to powers of two, so that few distinct patterns of points serve all triangles.
    steps = 1 << np.ceil(np.log2(steps)).astype(np.int64)
    for count in np.unique(steps):
        weights = _barycentric(int(count))  # (P, 3)
        chosen = corners[steps == count]
        batch = max(1, 2_000_000 // len(weights))
        for start in range(0, len(chosen), batch):
            points = np.einsum("pk,fkd->fpd", weights, chosen[start : start + batch], optimize=True)
            index = np.floor(points.reshape(-1, 3) / GROUP).astype(np.int64)
            index = index[((index >= 0) & (index < groups)).all(axis=1)]
            touched[index[:, 0], index[:, 1], index[:, 2]] = True
    return touched


def _barycentric(steps: int) -> NDArray[np.float64]:
    """Weights of the points that divide each edge of a triangle into `steps`; ((n+1)(n+2)/2, 3)."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    keep = i + j <= steps
    a, b = i[keep], j[keep]
    return np.asarray(np.stack([a, b, steps - a - b], axis=1) / steps)
