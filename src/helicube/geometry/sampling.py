"""Coarse-to-fine sampling of a field: ask it near its zero set, and nowhere else.

What is guaranteed. On return every pair of neighbouring grid points that differ in sign has both its values from the
field, never from interpolation. Marching cubes (Lorensen's table) looks at nothing else, so each component of the
surface that was met at all comes out exactly as from a dense grid: parts thinner than a coarse cell are followed from
where they join what was found. A component is met if a point of the coarse grid lies in it, or if the field bends
towards it between points (`bending_cells`): with a bend factor of 2 that covers every part whose influence on the
field is locally at least linear over one coarse cell, as for distance fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.errors import EmptyFieldError, GeometryError
from helicube.geometry.grid import Grid

__all__ = ["Field", "Lattice", "bending_cells", "refuse_one_sign", "sample_near_surface"]

# (n, 3) float32 coordinates -> (n,) logits, above zero inside.
Field = Callable[[NDArray[np.float32]], NDArray[np.float32]]
Flat = NDArray[np.intp]

# (27, 3) points of a cell in the grid with half its spacing; (8, 3) its children, or its corners.
OFFSETS_27 = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
OFFSETS_8 = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)

# Greedy ids are the same for every seed.
REMEDY = "try another prompt, or another seed if ids are drawn (temperature above 0)"


@dataclass(slots=True, kw_only=True)
class Lattice:
    """Values on a grid, some asked of the field and the others interpolated; one level of the refinement."""

    grid: Grid
    # Points of one call of the field.
    batch_points: int
    # grid.shape, above zero inside.
    values: NDArray[np.float32]
    # grid.shape, true where `values` is the field's own.
    known: NDArray[np.bool_]

    def ask(self, query: Field, flat: Flat) -> Flat:
        """Evaluate the field at these points; return those whose sign was not as predicted."""
        if not len(flat):
            return flat
        answer = np.empty(len(flat), dtype=np.float32)
        for start in range(0, len(flat), self.batch_points):
            part = slice(start, start + self.batch_points)
            answer[part] = np.asarray(query(self.grid.points(flat[part])), dtype=np.float32).reshape(-1)
        if not np.isfinite(answer).all():
            raise GeometryError("the field returned NaN or infinity; check the weights")
        values, known = self.values.reshape(-1), self.known.reshape(-1)
        flipped = (answer > 0) != (values[flat] > 0)
        values[flat] = answer
        known[flat] = True
        return np.asarray(flat[flipped], dtype=np.intp)

    def close(self, query: Field, flat: Flat) -> None:
        """Ask at `flat`, then until both ends of every edge with a change of sign are known."""
        step = neighbour_steps(self.grid)
        values, known = self.values.reshape(-1), self.known.reshape(-1)
        while len(flat):
            flipped = self.ask(query, flat)
            # Border points are known and never flip, so steps from flipped points stay inside the array.
            around = flipped[:, None] + step[None, :]  # (m, 6)
            differs = (values[around] > 0) != (values[flipped] > 0)[:, None]
            flat = np.unique(around[differs & ~known[around]])


def neighbour_steps(grid: Grid) -> Flat:
    """(6,) flat offsets to the neighbours along the axes."""
    _, ny, nz = grid.shape
    return np.array([ny * nz, -ny * nz, nz, -nz, 1, -1], dtype=np.intp)


def sample_near_surface(
    query: Field,
    grid: Grid,
    *,
    levels: int,
    bend: float,
    batch_points: int,
    seed_cells: NDArray[np.integer] | None = None,
) -> Lattice:
    """Sample a field so that all its sign changes on `grid` are exact.

    Args:
        query: the field.
        grid: finest grid; its cells are multiples of 2**levels.
        levels: halvings of the cell size; the grid 2**levels times coarser is sampled whole.
        bend: factor on the local slope when looking for parts between coarse points; 0 turns that off.
        batch_points: points per call of the field.
        seed_cells: (n, 3) cells of the coarsest grid that are known to hold surface.

    Raises:
        EmptyFieldError: the field has one sign only, as far as it was looked at.
        GeometryError: the field is not finite.
    """
    lattice = sample_whole(query, grid.coarser(2**levels), batch_points)
    suspects = bending_cells(lattice.values, bend)  # (n, 3)
    if seed_cells is not None and len(seed_cells):
        inside = np.clip(np.asarray(seed_cells, dtype=np.intp), 0, np.array(lattice.grid.cells) - 1)
        suspects = np.unique(np.concatenate([suspects, inside]), axis=0)
    if not len(suspects):
        refuse_one_sign(lattice.values)
    for level in range(levels - 1, -1, -1):
        lattice = refined(lattice, grid.coarser(2**level))
        lattice.close(query, unknown_points(lattice, suspects))
        suspects = bending_children(lattice.values, suspects, bend)
    set_border_outside(lattice.values)
    return lattice


def sample_whole(query: Field, grid: Grid, batch_points: int) -> Lattice:
    """All inner points of a grid; the border is outside by decree, so that every surface closes, and is never asked."""
    values = np.full(grid.shape, -1.0, dtype=np.float32)
    known = np.ones(grid.shape, dtype=np.bool_)
    known[1:-1, 1:-1, 1:-1] = False
    lattice = Lattice(grid=grid, batch_points=batch_points, values=values, known=known)
    lattice.ask(query, np.flatnonzero(~known))
    set_border_outside(values)
    return lattice


def set_border_outside(values: NDArray[np.float32]) -> None:
    """Give the border the negated size of what lies next to it: a part that is cut there ends half a cell inside."""
    for axis in range(3):
        v = np.moveaxis(values, axis, 0)
        v[0], v[-1] = -np.abs(v[1]), -np.abs(v[-2])


def refuse_one_sign(values: NDArray[np.float32]) -> None:
    """Raise EmptyFieldError if all values but the border's have one sign."""
    values = values[1:-1, 1:-1, 1:-1]
    low, high = float(values.min()), float(values.max())
    if high <= 0:
        raise EmptyFieldError(
            f"the object came out empty: its field is above 0, which is inside, nowhere ({high:.3g} at most); {REMEDY}"
        )
    if low > 0:
        raise EmptyFieldError(
            "the object came out without a surface: its field is 0 or less, which is outside, nowhere "
            f"({low:.3g} at least); {REMEDY}, or a larger bound"
        )


def refined(coarse: Lattice, grid: Grid) -> Lattice:
    """The next level: values carried over and interpolated trilinearly, axis by axis."""
    values = coarse.values
    # The strided axis first, while the array is small; the last step copies whole planes.
    for axis in (2, 1, 0):
        old = np.moveaxis(values, axis, 0)
        shape = list(values.shape)
        shape[axis] = 2 * shape[axis] - 1
        values = np.empty(shape, dtype=np.float32)
        new = np.moveaxis(values, axis, 0)
        new[::2] = old
        np.add(old[1:], old[:-1], out=new[1::2])
        new[1::2] *= np.float32(0.5)
    known = np.zeros(grid.shape, dtype=np.bool_)
    known[::2, ::2, ::2] = coarse.known
    for axis in range(3):
        border = np.moveaxis(known, axis, 0)
        border[0] = border[-1] = True
    return Lattice(grid=grid, batch_points=coarse.batch_points, values=values, known=known)


def unknown_points(lattice: Lattice, coarse_cells: NDArray[np.intp]) -> Flat:
    """Points not asked yet that differ in sign from a neighbour, or lie in these (n, 3) cells of the coarser grid."""
    inside = (lattice.values > 0).reshape(-1)
    wanted = np.zeros(inside.shape, dtype=np.bool_)
    # A flat step along y or z runs over from one row into the next, but from border to border: both are outside.
    for step in neighbour_steps(lattice.grid)[::2]:
        crossing = inside[step:] != inside[:-step]
        wanted[step:] |= crossing
        wanted[:-step] |= crossing
    corner = 2 * coarse_cells[:, None, :] + OFFSETS_27  # (n, 27, 3)
    wanted[np.ravel_multi_index((corner[..., 0], corner[..., 1], corner[..., 2]), lattice.grid.shape)] = True
    wanted &= ~lattice.known.reshape(-1)
    return np.flatnonzero(wanted)


def bending_cells(values: NDArray[np.float32], bend: float) -> NDArray[np.intp]:
    """(n, 3) cells without a change of sign in which the field, carried on from outside the cell, would change it.

    From each corner the field is continued to the centre of the cell with `bend` times the slope that it has on the
    corner's far side. A plane passes this test without alarm for `bend` below 2; a part that lies between the
    points pulls the values around it towards zero, and so betrays itself.
    """
    if bend <= 0:
        return np.empty((0, 3), dtype=np.intp)
    size = np.abs(values)
    sign = np.where(values > 0, np.float32(1), np.float32(-1))
    nx, ny, nz = (n - 1 for n in values.shape)
    low = np.full((nx, ny, nz), np.inf, dtype=np.float32)
    slope = [far_slopes(values, axis) for axis in range(3)]
    uniform = np.zeros((nx, ny, nz), dtype=np.int8)
    half = np.float32(bend / 2)
    for a in (0, 1):
        for b in (0, 1):
            for c in (0, 1):
                at = (slice(a, a + nx), slice(b, b + ny), slice(c, c + nz))
                rise = slope[0][a][at] + slope[1][b][at] + slope[2][c][at]
                np.minimum(low, size[at] + half * sign[at] * rise, out=low)
                uniform += values[at] > 0
    return np.argwhere((low < 0) & ((uniform == 0) | (uniform == 8)))


def far_slopes(values: NDArray[np.float32], axis: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Value minus that of the neighbour behind, seen from a cell above (first) and below (second) along an axis."""
    v = np.moveaxis(values, axis, 0)
    above, below = np.zeros_like(v), np.zeros_like(v)
    above[1:] = v[1:] - v[:-1]
    below[:-1] = v[:-1] - v[1:]
    return np.moveaxis(above, 0, axis), np.moveaxis(below, 0, axis)


def bending_children(values: NDArray[np.float32], parents: NDArray[np.intp], bend: float) -> NDArray[np.intp]:
    """The test of `bending_cells` on the eight children of each parent cell only."""
    if not len(parents) or bend <= 0:
        return np.empty((0, 3), dtype=np.intp)
    cells = (2 * parents[:, None, :] + OFFSETS_8).reshape(-1, 3)  # (n, 3)
    top = np.array(values.shape) - 1
    low = np.full(len(cells), np.inf, dtype=np.float32)
    uniform = np.zeros(len(cells), dtype=np.int8)
    for corner in OFFSETS_8:
        at = cells + corner
        here = values[at[:, 0], at[:, 1], at[:, 2]]
        rise = np.zeros(len(cells), dtype=np.float32)
        for axis in range(3):
            behind = at.copy()
            behind[:, axis] += 2 * corner[axis] - 1
            np.clip(behind, 0, top, out=behind)
            rise += here - values[behind[:, 0], behind[:, 1], behind[:, 2]]
        np.minimum(low, np.abs(here) + np.float32(bend / 2) * np.where(here > 0, 1, -1) * rise, out=low)
        uniform += here > 0
    return np.asarray(cells[(low < 0) & ((uniform == 0) | (uniform == 8))], dtype=np.intp)
