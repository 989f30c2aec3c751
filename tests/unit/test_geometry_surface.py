"""Sparse extraction equals the dense grid, bit for bit, and coordinates are exact."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_fields import FIELDS, Points, box, signed_volume, sphere, thin_rod
from numpy.typing import NDArray

from helicube.errors import EmptyFieldError, GeometryError, InputError
from helicube.geometry.surface import SurfaceOptions, extract_surface
from helicube.geometry.topology import face_components, is_manifold


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("cells", [64, 128])
def test_sparse_equals_dense(name: str, cells: int) -> None:
    sparse = extract_surface(FIELDS[name], SurfaceOptions(cells=cells))
    dense = extract_surface(FIELDS[name], SurfaceOptions(cells=cells, coarse_cells=cells))
    np.testing.assert_array_equal(sparse.mesh.faces, dense.mesh.faces)
    np.testing.assert_array_equal(sparse.mesh.vertices, dense.mesh.vertices)
    assert is_manifold(sparse.mesh.faces)
    assert dense.num_queries == (cells - 1) ** 3
    assert sparse.num_dense == (cells + 1) ** 3


def test_at_256_cells_sparse_equals_dense_with_a_tenth_of_the_queries() -> None:
    # One field only: the dense side asks for 17 million points.
    def field(points: Points) -> NDArray[np.float32]:
        return np.maximum(sphere(points, 0.3, (0.4, 0.2, 0.1)), thin_rod(points))

    sparse = extract_surface(field, SurfaceOptions(cells=256))
    dense = extract_surface(field, SurfaceOptions(cells=256, coarse_cells=256))
    np.testing.assert_array_equal(sparse.mesh.faces, dense.mesh.faces)
    np.testing.assert_array_equal(sparse.mesh.vertices, dense.mesh.vertices)
    assert 10 * sparse.num_queries < sparse.num_dense


@pytest.mark.parametrize("name", FIELDS)
def test_queries_at_128_cells_are_a_tenth_of_the_dense_grid(name: str) -> None:
    surface = extract_surface(FIELDS[name], SurfaceOptions(cells=128))
    assert 10 * surface.num_queries < surface.num_dense


@pytest.mark.parametrize("cells", [32, 64, 100, 128])
def test_sphere_is_neither_shifted_nor_shrunk(cells: int) -> None:
    # Off the lattice, so that no symmetry hides a shift. Linear interpolation of a distance field errs by up to
    # spacing**2 / (8 radius), always inwards.
    centre, radius = (0.113, -0.071, 0.042), 0.6
    surface = extract_surface(lambda p: sphere(p, radius, centre), SurfaceOptions(cells=cells))
    spacing = 2.1 / cells
    distance = np.linalg.norm(surface.mesh.vertices - np.asarray(centre, dtype=np.float32), axis=1)
    assert np.abs(distance - radius).max() <= spacing**2 / (8 * radius) + 1e-6
    middle = (surface.mesh.vertices.max(axis=0) + surface.mesh.vertices.min(axis=0)) / 2
    np.testing.assert_allclose(middle, centre, atol=spacing**2)
    volume = signed_volume(surface.mesh)
    assert volume == pytest.approx(4 / 3 * np.pi * radius**3, rel=2 * (spacing / radius) ** 2)


def test_flat_sides_are_exact() -> None:
    surface = extract_surface(lambda p: box(p, (0.1, 0.2, -0.05), (0.5, 0.3, 0.4)), SurfaceOptions(cells=64))
    np.testing.assert_allclose(surface.mesh.vertices.max(axis=0), [0.6, 0.5, 0.35], atol=2e-6)
    np.testing.assert_allclose(surface.mesh.vertices.min(axis=0), [-0.4, -0.1, -0.45], atol=2e-6)


def test_parts_thinner_than_a_coarse_cell_and_apart_from_everything_are_found() -> None:
    # None of these has a point of the coarse grid (spacing 0.066) inside; each would be lost to signs alone.
    def field(points: Points) -> NDArray[np.float32]:
        parts = [box(points, (x, 0.033, 0.033), (0.008, 0.4, 0.008)) for x in (-0.624, -0.361, 0.033, 0.361)]
        return np.asarray(np.maximum.reduce([*parts, sphere(points, 0.01, (0.69, -0.69, 0.69))]), dtype=np.float32)

    options = SurfaceOptions(cells=256)
    count, _ = face_components(extract_surface(field, options).mesh.faces)
    assert count == 5
    with pytest.raises(EmptyFieldError, match="empty"):
        extract_surface(field, SurfaceOptions(cells=256, bend=0, coarse_cells=16))


@pytest.mark.parametrize("cells", [64, 128])
def test_an_object_between_all_coarse_points_is_found_by_those_twice_as_fine(cells: int) -> None:
    def field(points: Points) -> NDArray[np.float32]:
        # A step, which no slope betrays, around a coordinate of the 64-cell grid that the 32-cell grid lacks.
        near = np.abs(points - (-1.05 + 33 * 2.1 / 64)).max(axis=1) < 0.03
        return np.where(near, 1, -1).astype(np.float32)

    found = extract_surface(field, SurfaceOptions(cells=cells))
    dense = extract_surface(field, SurfaceOptions(cells=cells, coarse_cells=cells))
    np.testing.assert_array_equal(found.mesh.faces, dense.mesh.faces)
    np.testing.assert_array_equal(found.mesh.vertices, dense.mesh.vertices)
    assert found.num_queries > 31**3 + 63**3 - 1, "both looks are counted"
    assert found.sampling_s > 0


def test_thin_tails_are_followed_from_a_body_without_the_slope_test() -> None:
    def field(points: Points) -> NDArray[np.float32]:
        return np.maximum(sphere(points, 0.2), thin_rod(points))

    sparse = extract_surface(field, SurfaceOptions(cells=128, bend=0))
    dense = extract_surface(field, SurfaceOptions(cells=128, coarse_cells=128))
    np.testing.assert_array_equal(sparse.mesh.faces, dense.mesh.faces)
    np.testing.assert_array_equal(sparse.mesh.vertices, dense.mesh.vertices)


def test_seed_cells_find_what_nothing_else_would() -> None:
    def field(points: Points) -> NDArray[np.float32]:
        # A step: no slope betrays the speck.
        speck = sphere(points, 0.03, (0.5, 0.5, 0.5)) > 0
        return np.where(speck | (sphere(points, 0.3, (-0.3, 0, 0)) > 0), 1, -1).astype(np.float32)

    blind = extract_surface(field, SurfaceOptions(cells=128))
    cell = np.floor((np.array([[0.5, 0.5, 0.5]]) + 1.05) / (2.1 / 32)).astype(np.int64)
    told = extract_surface(field, SurfaceOptions(cells=128), seed_cells=cell)
    assert face_components(blind.mesh.faces)[0] == 1
    assert face_components(told.mesh.faces)[0] == 2


def test_noise_gives_a_manifold() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(33, 33, 33)).astype(np.float32)

    def field(points: Points) -> NDArray[np.float32]:
        i = np.round((points + 1.05) / (2.1 / 32)).astype(int)
        return np.asarray(noise[i[:, 0], i[:, 1], i[:, 2]], dtype=np.float32)

    mesh = extract_surface(field, SurfaceOptions(cells=32, coarse_cells=32)).mesh
    assert mesh.num_faces > 50_000
    assert is_manifold(mesh.faces)


def test_a_part_beyond_the_border_is_cut_and_closed() -> None:
    surface = extract_surface(lambda p: sphere(p, 0.5, (0.9, 0, 0)), SurfaceOptions(cells=64))
    assert is_manifold(surface.mesh.faces)
    top = float(surface.mesh.vertices[:, 0].max())
    assert 1.05 - 2.1 / 64 <= top <= 1.05


def test_zeros_on_the_lattice_give_no_degenerate_faces() -> None:
    # With 42 cells the spacing is 0.05: the sides of this box lie on lattice points, where the field is zero. Marching
    # cubes bevels the twelve edges by up to half a cell's section each.
    surface = extract_surface(lambda p: np.round(box(p, (0, 0, 0), (0.5, 0.5, 0.5)), 4), SurfaceOptions(cells=42))
    assert is_manifold(surface.mesh.faces)
    assert signed_volume(surface.mesh) == pytest.approx(1.0, abs=12 * 0.05**2 / 2)


def test_scale_gives_longer_axes_more_cells_and_stretches_the_mesh() -> None:
    surface = extract_surface(lambda p: sphere(p, 0.8), SurfaceOptions(cells=128, scale=(2.0, 1.0, 0.5)))
    assert surface.cells == (128, 64, 32)
    np.testing.assert_allclose(surface.mesh.extents, [3.2, 1.6, 0.8], rtol=5e-3)


def test_bound_by_axis() -> None:
    surface = extract_surface(lambda p: sphere(p, 0.4), SurfaceOptions(cells=64, bound=(1.0, 0.5, 0.5)))
    assert surface.cells == (64, 32, 32)
    np.testing.assert_allclose(surface.mesh.extents, [0.8, 0.8, 0.8], rtol=5e-3)


def test_batches_do_not_change_the_surface() -> None:
    whole = extract_surface(FIELDS["wavy"], SurfaceOptions(cells=64))
    sizes: list[int] = []

    def counting(points: Points) -> NDArray[np.float32]:
        sizes.append(len(points))
        return FIELDS["wavy"](points)

    parts = extract_surface(counting, SurfaceOptions(cells=64, batch_points=1000))
    np.testing.assert_array_equal(whole.mesh.vertices, parts.mesh.vertices)
    assert max(sizes) <= 1000
    assert sum(sizes) == parts.num_queries


@pytest.mark.parametrize(
    ("value", "words"),
    [(-1.0, "empty.*-1.*seed"), (1.0, "without a surface.*bound"), (np.nan, "NaN"), (np.inf, "infinity")],
)
def test_a_field_without_a_surface_is_a_clear_error(value: float, words: str) -> None:
    with pytest.raises(GeometryError, match=words) as caught:
        extract_surface(lambda p: np.full(len(p), value, dtype=np.float32))
    # NaN is no sign of an object that is not there.
    assert isinstance(caught.value, EmptyFieldError) == bool(np.isfinite(value))
    assert "more cells" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"cells": 2}, {"cells": 5000}, {"coarse_cells": 1}, {"bound": 0.0}, {"scale": (1.0, 0.0, 1.0)}]
)
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        SurfaceOptions(**options)  # type: ignore[arg-type]
