"""Closed, manifold, outward, without floaters and inner shells."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_fields import FIELDS, Points, cube_mesh, joined, signed_volume, sphere, turned
from numpy.typing import NDArray

from helicube.errors import GeometryError
from helicube.geometry.mend import drop_doubles, mend, weld
from helicube.geometry.mesh import Mesh
from helicube.geometry.repair import RepairOptions, repair, winding_numbers
from helicube.geometry.surface import SurfaceOptions, extract_surface
from helicube.geometry.topology import edge_faults, face_components, is_manifold, is_watertight


def stretched(size: tuple[float, float, float], centre: tuple[float, float, float]) -> Mesh:
    cube = cube_mesh()
    vertices = cube.vertices * np.array(size, dtype=np.float32) + np.array(centre, dtype=np.float32)
    return Mesh(vertices=vertices, faces=cube.faces)


@pytest.mark.parametrize("name", FIELDS)
def test_a_clean_surface_is_left_alone(name: str) -> None:
    mesh = extract_surface(FIELDS[name], SurfaceOptions(cells=64)).mesh
    result = repair(mesh, RepairOptions(min_volume=0, min_extent=0))
    assert result.mesh is mesh
    assert not result.mended


def test_floaters_go_and_thin_long_parts_stay() -> None:
    body, speck = cube_mesh(1.0), cube_mesh(0.04, (2, 0, 0))
    rod = stretched((0.03, 0.9, 0.03), (0.9, 0, 0))
    result = repair(joined(body, speck, rod))
    assert (result.num_components, result.num_floaters, result.num_inner) == (3, 1, 0)
    assert signed_volume(result.mesh) == pytest.approx(1 + 0.9 * 0.03**2, rel=1e-5)
    assert result.mesh.num_vertices == 16


def test_keep_largest_is_by_volume() -> None:
    long = stretched((0.1, 3, 0.1), (2, 0, 0))
    result = repair(joined(long, cube_mesh(1.0)), RepairOptions(keep="largest"))
    assert result.mesh.num_faces == 12
    np.testing.assert_allclose(result.mesh.extents, 1)


def test_the_most_components_are_the_largest() -> None:
    many = joined(*[cube_mesh(0.5 + 0.01 * i, (2.0 * i, 0, 0)) for i in range(20)])
    result = repair(many, RepairOptions(max_components=3))
    assert face_components(result.mesh.faces)[0] == 3
    assert (result.num_floaters, result.num_components) == (17, 20)
    assert result.mesh.vertices[:, 0].min() > 33


def test_hollows_and_bodies_in_hollows_go() -> None:
    nested = joined(cube_mesh(1.0), turned(cube_mesh(0.8)), cube_mesh(0.6))
    result = repair(nested)
    assert (result.num_components, result.num_floaters, result.num_inner) == (3, 0, 2)
    assert signed_volume(result.mesh) == pytest.approx(1.0)


def test_bodies_whose_boxes_nest_but_which_do_not_are_kept() -> None:
    # The small cube sits in the hole of a ring, inside its bounding box and outside its body.
    def field(points: Points) -> NDArray[np.float32]:
        ring = 0.2 - np.hypot(np.hypot(points[:, 0], points[:, 2]) - 0.7, points[:, 1])
        return np.maximum(ring, sphere(points, 0.15)).astype(np.float32)

    result = repair(extract_surface(field, SurfaceOptions(cells=64)).mesh)
    assert (result.num_components, result.num_inner) == (2, 0)


def test_inside_out_is_turned() -> None:
    result = repair(turned(cube_mesh()))
    assert signed_volume(result.mesh) == pytest.approx(1.0)
    assert is_manifold(result.mesh.faces)


def test_a_triangle_soup_is_welded() -> None:
    cube = cube_mesh()
    soup = Mesh(vertices=cube.vertices[cube.faces].reshape(-1, 3), faces=np.arange(36, dtype=np.int32).reshape(-1, 3))
    result = repair(soup)
    assert result.mended
    assert (result.mesh.num_vertices, result.mesh.num_faces) == (8, 12)
    assert signed_volume(result.mesh) == pytest.approx(1.0)


def test_mixed_winding_is_made_consistent() -> None:
    rng = np.random.default_rng(0)
    mesh = extract_surface(sphere, SurfaceOptions(cells=32)).mesh
    flip = rng.random(mesh.num_faces) < 0.3
    faces = np.where(flip[:, None], mesh.faces[:, ::-1], mesh.faces).astype(np.int32)
    result = repair(Mesh(vertices=mesh.vertices, faces=faces))
    assert is_manifold(result.mesh.faces)
    assert signed_volume(result.mesh) == pytest.approx(signed_volume(mesh), rel=1e-6)


@pytest.mark.parametrize("missing", [1, 2, 5])
def test_holes_are_filled(missing: int) -> None:
    cube = cube_mesh()
    result = repair(Mesh(vertices=cube.vertices, faces=cube.faces[missing:]))
    assert result.mended
    assert is_manifold(result.mesh.faces)
    assert 0.5 < signed_volume(result.mesh) <= 1.0 + 1e-6


def test_two_cubes_that_share_an_edge_come_apart_there() -> None:
    # Both cubes use the four shared half-edges' vertices: 4 faces meet in one edge.
    touching = weld(joined(cube_mesh(1.0), cube_mesh(1.0, (1, 1, 0))), 1e-6)
    assert edge_faults(touching.faces).num_doubled == 2
    result = repair(touching)
    assert is_manifold(result.mesh.faces)
    assert face_components(result.mesh.faces)[0] == 2
    assert signed_volume(result.mesh) == pytest.approx(2.0)


def test_two_cubes_that_share_a_vertex_come_apart_there() -> None:
    touching = weld(joined(cube_mesh(1.0), cube_mesh(1.0, (1, 1, 1))), 1e-6)
    assert is_watertight(touching.faces)
    assert not is_manifold(touching.faces)
    assert touching.num_vertices == 15
    assert mend(touching).num_vertices == 16


def test_degenerate_and_doubled_faces_go() -> None:
    cube = cube_mesh()
    extra = np.array([[0, 0, 1], [2, 2, 2], *cube.faces[:3].tolist()], dtype=np.int32)
    mesh = Mesh(vertices=cube.vertices, faces=np.concatenate([cube.faces, extra]))
    assert not is_watertight(mesh.faces)
    assert repair(mesh).mesh.num_faces == 12


def test_colours_follow_their_vertices() -> None:
    body, speck = cube_mesh(1.0), cube_mesh(0.01, (2, 0, 0))
    both = joined(speck, body)
    colors = np.arange(48, dtype=np.uint8).reshape(16, 3)
    kept = repair(Mesh(vertices=both.vertices, faces=both.faces, vertex_colors=colors)).mesh
    assert kept.vertex_colors is not None
    np.testing.assert_array_equal(kept.vertex_colors, colors[8:])


def test_winding_numbers_count_turns() -> None:
    cube = cube_mesh()
    points = np.array([[0, 0, 0], [0.49, 0.49, 0.49], [0.51, 0, 0], [3, 3, 3]], dtype=np.float32)
    np.testing.assert_allclose(winding_numbers(cube.vertices, cube.faces, points), [1, 1, 0, 0], atol=1e-6)


def test_what_cannot_be_repaired_is_a_clear_error() -> None:
    empty = Mesh(vertices=np.zeros((0, 3), np.float32), faces=np.zeros((0, 3), np.int32))
    with pytest.raises(GeometryError, match="no faces"):
        repair(empty)
    sheet = Mesh(vertices=np.eye(3, dtype=np.float32), faces=np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int32))
    with pytest.raises(GeometryError, match=r"no volume|no face with an area"):
        repair(sheet)
    with pytest.raises(GeometryError, match="shares"):
        RepairOptions(min_volume=2)


def test_a_band_with_one_side_is_cut_and_closed() -> None:
    n = 12
    turn = np.arange(n) * 2 * np.pi / n
    arm = np.stack([np.cos(turn / 2), np.sin(turn / 2)], axis=1) * 0.3
    edge = [(1 + s * arm[:, 0]) for s in (-1, 1)]
    top, bottom = (
        np.stack([r * np.cos(turn), s * arm[:, 1], r * np.sin(turn)], axis=1)
        for r, s in zip(edge, (-1, 1), strict=True)
    )
    faces = []
    for i in range(n):
        j = (i + 1) % n
        a, b = i, i + n
        c, d = (j, j + n) if j else (n, 0)
        faces += [(a, b, c), (b, d, c)]
    band = Mesh(vertices=np.concatenate([top, bottom]).astype(np.float32), faces=np.array(faces, dtype=np.int32))
    assert is_manifold(repair(band).mesh.faces)


def test_of_three_faces_on_one_triangle_the_way_of_most_stays() -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    faces = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 1, 3], [1, 0, 3]], np.int32)
    found = drop_doubles(Mesh(vertices=corners, faces=faces))
    assert found.faces.tolist() == [[1, 0, 2]]
