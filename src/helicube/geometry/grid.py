"""The lattice on which a field is sampled: cells per axis, and indices to coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A box lattice centred on the origin; points sit on cell corners, the first and last on the box itself."""

    # Cells along x, y, z; points are one more.
    cells: tuple[int, int, int]
    # Half size of the box along x, y, z, in field coordinates.
    half: tuple[float, float, float]

    @staticmethod
    def fit(cells: int, half: tuple[float, float, float], scale: tuple[float, float, float], multiple: int) -> Grid:
        """Share out `cells` so that cells are nearly cubes after `scale`; each axis is a multiple of `multiple`.

        The longest axis gets `cells`, rounded up to the multiple; the others in proportion, at least four multiples.
        """
        length = [h * s for h, s in zip(half, scale, strict=True)]
        share = [cells * x / max(length) for x in length]
        x, y, z = (max(4, math.ceil(n / multiple - 1e-9)) * multiple for n in share)
        return Grid(cells=(x, y, z), half=half)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of points along x, y, z."""
        x, y, z = self.cells
        return (x + 1, y + 1, z + 1)

    @property
    def num_points(self) -> int:
        return math.prod(self.shape)

    @property
    def spacing(self) -> NDArray[np.float64]:
        """(3,) size of a cell in field coordinates."""
        return np.asarray(2 * np.asarray(self.half) / np.asarray(self.cells), dtype=np.float64)

    def coarser(self, factor: int) -> Grid:
        """The same box with `factor` times fewer cells; its points are points of this grid."""
        x, y, z = (n // factor for n in self.cells)
        return Grid(cells=(x, y, z), half=self.half)

    def points(self, flat: NDArray[np.intp]) -> NDArray[np.float32]:
        """(n, 3) coordinates of the points with these flat (C order) indices."""
        # One table per axis, made in float64: cells are counted, not points, so nothing shrinks or shifts.
        table = [np.linspace(-h, h, n + 1).astype(np.float32) for h, n in zip(self.half, self.cells, strict=True)]
        out = np.empty((len(flat), 3), dtype=np.float32)
        for axis, index in enumerate(np.unravel_index(flat, self.shape)):
            out[:, axis] = table[axis][index]
        return out

    def to_coordinates(self, index: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, 3) fractional indices to field coordinates."""
        return np.asarray(index * self.spacing - np.asarray(self.half), dtype=np.float32)
