"""A field to a triangle mesh of its zero set."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from skimage.measure import marching_cubes

from helicube.errors import EmptyFieldError, InputError
from helicube.geometry.grid import Grid
from helicube.geometry.mesh import Mesh
from helicube.geometry.sampling import Field, refuse_one_sign, sample_near_surface

__all__ = ["Surface", "SurfaceOptions", "extract_surface"]

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceOptions:
    """How finely to look, and where."""

    # Cells along the longest side; rounded up to a multiple of the coarsening factor.
    cells: int = 128
    # Half size of the box in field coordinates: one number for a cube, or x, y, z.
    bound: float | Vector = 1.05
    # Vertices are field coordinates times this. Cells are nearly cubes after scaling: longer axes get more.
    scale: Vector = (1.0, 1.0, 1.0)
    # Least cells along the longest side of the coarsest grid, which is sampled whole. `cells` or more: a dense grid.
    # Where it shows no surface, one with twice as many is sampled whole too.
    coarse_cells: int = 32
    # Factor on the field's slope when looking for parts between coarse points; 0: rely on signs alone.
    bend: float = 1.5
    # Most points in one call of the field.
    batch_points: int = 1 << 17

    def __post_init__(self) -> None:
        # 512 take 1.3 GB, and 8 times as much would follow.
        if not 4 <= self.cells <= 512:
            raise InputError(f"cells is {self.cells}; choose from 4 to 512 (128 is quick, 256 is fine)")
        if self.coarse_cells < 4:
            raise InputError(f"coarse_cells is {self.coarse_cells}; choose 4 or more")
        if min(*self.half, *self.scale) <= 0:
            raise InputError(f"bound {self.bound} and scale {self.scale} must be above 0")

    @property
    def half(self) -> Vector:
        return self.bound if isinstance(self.bound, tuple) else (self.bound,) * 3

    @property
    def levels(self) -> int:
        """Halvings between the coarsest and the finest grid."""
        return max(0, (self.cells // self.coarse_cells).bit_length() - 1)

    @property
    def grid(self) -> Grid:
        return Grid.fit(self.cells, self.half, self.scale, 2**self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A surface and what it took to find it."""

    mesh: Mesh
    # Cells along x, y, z.
    cells: tuple[int, int, int]
    # Points at which the field was evaluated, and how many a dense grid has.
    num_queries: int
    num_dense: int
    # Seconds inside the field, in choosing the points, and in marching cubes.
    field_s: float
    sampling_s: float
    marching_s: float


class _Meter:
    """A field that counts its points and its seconds."""

    def __init__(self, query: Field) -> None:
        self.query = query
        self.num_queries = 0
        self.seconds = 0.0

    def __call__(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        start = time.perf_counter()
        answer = self.query(points)
        self.seconds += time.perf_counter() - start
        self.num_queries += len(points)
        return answer


def extract_surface(
    query: Field, options: SurfaceOptions | None = None, *, seed_cells: NDArray[np.integer] | None = None
) -> Surface:
    """The zero set of a field as a closed, consistently wound triangle mesh.

    Args:
        query: (n, 3) float32 coordinates to (n,) logits, above zero inside.
        options: resolution and box.
        seed_cells: (n, 3) cells of the coarsest grid known to hold surface, if the caller knows some.

    Vertices lie where the trilinear field is zero on grid edges: exact for a field that is linear along edges, and
    the same as from a dense grid (see `sampling`). Parts that reach the border of the box are cut and closed there.

    Raises:
        EmptyFieldError: the field has one sign only.
        GeometryError: the field is not finite.

    Source: Lorensen and Cline, Marching Cubes (SIGGRAPH 1987). That table and not the later one by Lewiner, because it
    depends on signs alone, so that sparse equals dense, and because scikit-image's implementation of it came out
    manifold on noise where Lewiner's did not.
    """
    options = options or SurfaceOptions()
    start, meter = time.perf_counter(), _Meter(query)
    try:
        return _extract(meter, options, options.levels, start, seed_cells)
    except EmptyFieldError:
        if not options.levels:
            raise
    # A thin object may have slipped between the coarse points.
    return _extract(meter, options, options.levels - 1, start, None)


def _extract(
    meter: _Meter, options: SurfaceOptions, levels: int, start: float, seed_cells: NDArray[np.integer] | None
) -> Surface:
    """See `extract_surface`; this many levels below the finest, the grid is sampled whole."""
    grid = options.grid
    lattice = sample_near_surface(
        meter, grid, levels=levels, bend=options.bend, batch_points=options.batch_points, seed_cells=seed_cells
    )
    sampled = time.perf_counter()
    index, faces = march(lattice.values)  # (v, 3), (f, 3)
    vertices = np.asarray(grid.to_coordinates(index) * np.asarray(options.scale, dtype=np.float32), dtype=np.float32)
    return Surface(
        mesh=Mesh(vertices=vertices, faces=faces),
        cells=grid.cells,
        num_queries=meter.num_queries,
        num_dense=grid.num_points,
        field_s=meter.seconds,
        sampling_s=sampled - start - meter.seconds,
        marching_s=time.perf_counter() - sampled,
    )


def march(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Marching cubes at zero, on the box around the surface only: fractional indices (v, 3) and faces (f, 3)."""
    mixed = mixed_cells(values)
    low, box = [], []
    part = mixed
    for axis in range(3):
        used = np.flatnonzero(part.any(axis=tuple(a for a in range(3) if a != axis)))
        if not len(used):
            refuse_one_sign(values)
        low.append(int(used[0]) - 1)
        # From the lower corner of the first cell to the upper corner of the last.
        box.append(slice(int(used[0]) - 1, int(used[-1]) + 1))
        part = part[(slice(None),) * axis + (box[-1],)]
    near = np.ascontiguousarray(values[tuple(box)])
    # A zero puts the vertices of several edges on one spot, and triangles of no area between them.
    near[near == 0] = -np.finfo(np.float32).tiny
    # Its winding is for (z, y, x) arrays; seen as (x, y, z) it is mirrored, hence "ascent" for a field that descends.
    vertices, faces, _, _ = marching_cubes(  # type: ignore[no-untyped-call]
        near, 0.0, mask=part, method="lorensen", gradient_direction="ascent"
    )
    return vertices + np.asarray(low, dtype=np.float32), np.asarray(faces, dtype=np.int32)


def mixed_cells(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """values.shape, true at the upper corner (where scikit-image's mask looks) of each cell that the zero set cuts."""
    some = (values > 0).reshape(-1)
    every = some
    _, ny, nz = values.shape
    # Flat steps: what runs over the end of a row is border, and outside, on both sides.
    for step in (1, nz, ny * nz):
        grown, shrunk = some.copy(), every.copy()
        grown[step:] |= some[:-step]
        shrunk[step:] &= every[:-step]
        some, every = grown, shrunk
    return np.asarray((some & ~every).reshape(values.shape), dtype=np.bool_)
