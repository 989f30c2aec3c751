"""Normals, colours, size, axis and pivot."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_fields import FIELDS, Points, cube_mesh, signed_volume
from numpy.typing import NDArray

from helicube.errors import GeometryError, InputError
from helicube.geometry.attributes import with_colors, with_creases, with_normals
from helicube.geometry.mesh import Mesh
from helicube.geometry.placement import Placement, place, z_up
from helicube.geometry.surface import SurfaceOptions, extract_surface


def normals_of(mesh: Mesh) -> NDArray[np.float32]:
    assert mesh.vertex_normals is not None
    return mesh.vertex_normals


@pytest.mark.parametrize("weight", ["angle", "area"])
def test_sphere_normals_point_outwards(weight: str) -> None:
    mesh = with_normals(extract_surface(FIELDS["sphere"], SurfaceOptions(cells=64)).mesh, weight=weight)  # type: ignore[arg-type]
    unit = mesh.vertices / np.linalg.norm(mesh.vertices, axis=1, keepdims=True)
    cosine = np.einsum("vd,vd->v", normals_of(mesh), unit)
    assert cosine.min() > np.cos(np.radians(3))
    np.testing.assert_allclose(np.linalg.norm(normals_of(mesh), axis=1), 1, atol=1e-6)


def test_angle_weights_do_not_see_the_diagonals() -> None:
    # At each corner of a cube three sides meet at right angles: the normal is the diagonal, however they are cut up.
    cube = with_normals(cube_mesh(), weight="angle")
    np.testing.assert_allclose(normals_of(cube), np.sign(cube.vertices) / np.sqrt(3), atol=1e-6)
    longer = Mesh(vertices=cube.vertices * np.array([5, 5, 1], dtype=np.float32), faces=cube.faces)
    by_area = normals_of(with_normals(longer, weight="area"))
    np.testing.assert_allclose(np.abs(by_area[:, 2]), 25 / np.sqrt(25**2 + 5**2 + 5**2), atol=1e-6)


def test_creases_split_sharp_edges_only() -> None:
    cube = with_creases(cube_mesh(), 25)
    assert cube.num_vertices == 24
    corners = cube.vertices[cube.faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    for k in range(3):
        np.testing.assert_allclose(normals_of(cube)[cube.faces[:, k]], flat, atol=1e-6)
    assert with_creases(cube_mesh(), 100).num_vertices == 8
    ball = extract_surface(FIELDS["sphere"], SurfaceOptions(cells=64)).mesh
    assert with_creases(ball, 25).num_vertices == ball.num_vertices


def test_normals_are_unit_even_where_faces_cancel_or_vanish() -> None:
    # A sheet seen from both sides, a face without area, and a vertex that no face uses.
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 0], [3, 0, 0], [9, 9, 9]], dtype=np.float32)
    faces = np.array([[0, 1, 2], [2, 1, 0], [1, 3, 4]], dtype=np.int32)
    normals = normals_of(with_normals(Mesh(vertices=vertices, faces=faces)))
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-6)
    assert abs(normals[0, 2]) == pytest.approx(1)
    np.testing.assert_array_equal(normals[5], [0, 1, 0])


def test_tiny_meshes_have_normals_too() -> None:
    tiny = cube_mesh(1e-6)
    np.testing.assert_allclose(normals_of(with_normals(tiny)), normals_of(with_normals(cube_mesh())), atol=1e-5)


@pytest.mark.parametrize("batch", [3, 8, 1000])
def test_colours_come_from_the_callback(batch: int) -> None:
    def paint(points: Points) -> NDArray[np.float32]:
        assert len(points) <= batch
        return points + 0.5

    mesh = with_colors(cube_mesh(), paint, batch_points=batch)
    assert mesh.vertex_colors is not None
    np.testing.assert_array_equal(mesh.vertex_colors, np.where(mesh.vertices > 0, 255, 0))
    same = with_colors(cube_mesh(), lambda p: np.full((len(p), 3), 77, dtype=np.uint8)).vertex_colors
    assert same is not None
    assert (same == 77).all()
    clipped = with_colors(cube_mesh(), lambda p: 9 * p).vertex_colors
    np.testing.assert_array_equal(clipped, mesh.vertex_colors)


def test_colours_of_the_wrong_kind() -> None:
    with pytest.raises(GeometryError, match=r"\(8, 3\) is needed"):
        with_colors(cube_mesh(), lambda p: p[:, :2])
    with pytest.raises(GeometryError, match="NaN"):
        with_colors(cube_mesh(), lambda p: p * np.float32(np.nan))


def test_size_is_that_of_the_longest_side() -> None:
    mesh = Mesh(vertices=cube_mesh().vertices * np.array([1, 3, 2], dtype=np.float32) + 7, faces=cube_mesh().faces)
    placed = place(mesh, Placement(size_m=0.9))
    np.testing.assert_allclose(placed.extents, [0.3, 0.9, 0.6], rtol=1e-6)
    assert signed_volume(placed) == pytest.approx(0.3 * 0.9 * 0.6, rel=1e-5)


@pytest.mark.parametrize(("pivot", "bottom"), [("base", 0.0), ("center", -0.5)])
def test_pivot(pivot: str, bottom: float) -> None:
    placed = place(cube_mesh(1, (5, 6, 7)), Placement(pivot=pivot))  # type: ignore[arg-type]
    np.testing.assert_allclose(placed.vertices.min(axis=0), [-0.5, bottom, -0.5], atol=1e-6)
    np.testing.assert_allclose(placed.extents, 1, rtol=1e-6)


def test_z_up_is_a_rotation_of_positions_and_normals() -> None:
    mesh = with_normals(cube_mesh())
    placed = z_up(mesh)
    turn = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    assert np.linalg.det(turn) == pytest.approx(1)
    np.testing.assert_allclose(placed.vertices, mesh.vertices @ turn.T, atol=1e-6)
    np.testing.assert_allclose(normals_of(placed), normals_of(mesh) @ turn.T, atol=1e-6)
    assert signed_volume(placed) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), 1e9])
def test_sizes_out_of_range(size: float) -> None:
    with pytest.raises(InputError, match="size_m"):
        Placement(size_m=size)


def test_a_point_has_no_size() -> None:
    point = Mesh(vertices=np.ones((3, 3), np.float32), faces=np.array([[0, 1, 2]], np.int32))
    with pytest.raises(GeometryError, match="single point"):
        place(point, Placement(size_m=1))
