"""Metrics against values known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_fields import FIELDS, cube_mesh, joined, turned
from numpy.typing import NDArray

from helicube.errors import GeometryError
from helicube.geometry import metrics
from helicube.geometry.mesh import Mesh
from helicube.geometry.surface import SurfaceOptions, extract_surface


def block(low: int, high: int, n: int = 12) -> NDArray[np.bool_]:
    out = np.zeros((n, n, n), dtype=np.bool_)
    out[low:high, low:high, low:high] = True
    return out


def test_volume_iou() -> None:
    a, b = block(2, 6), block(4, 8)
    assert metrics.volume_iou(a, b) == 8 / (64 + 64 - 8)
    assert metrics.volume_iou(a, a) == 1
    assert metrics.volume_iou(a, ~a) == 0
    assert metrics.volume_iou(np.zeros((2, 2), bool), np.zeros((2, 2), bool)) == 1
    with pytest.raises(GeometryError, match="shapes"):
        metrics.volume_iou(a, a[1:])


def test_surface_cells_are_a_shell() -> None:
    # 4 points a side: the surface crosses the cells of a 5-block but for the 3-block inside.
    assert metrics.surface_cells(block(2, 6)).sum() == 5**3 - 3**3
    assert metrics.surface_cells(block(2, 6)).shape == (11, 11, 11)
    assert metrics.surface_iou(block(2, 6), block(2, 6)) == 1
    assert metrics.surface_iou(block(0, 3), block(8, 11)) == 0
    assert 0 < metrics.surface_iou(block(2, 6), block(3, 7)) < metrics.volume_iou(block(2, 6), block(3, 7))


def test_samples_are_even_and_lie_on_their_faces() -> None:
    big, small = cube_mesh(2), cube_mesh(1, (5, 0, 0))
    mesh = joined(big, small)
    points, face = metrics.sample_points(mesh, 50_000, seed=3)
    # Areas 24 and 6; four standard deviations.
    share = (points[:, 0] < 3).mean()
    assert share == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 50_000))
    inside = np.abs(points[points[:, 0] < 3])
    np.testing.assert_allclose(inside.max(axis=1), 1, atol=1e-6)
    corners = mesh.vertices[mesh.faces[face]]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.abs(np.einsum("nd,nd->n", points - corners[:, 0], normal)).max() < 1e-5
    again, _ = metrics.sample_points(mesh, 50_000, seed=3)
    np.testing.assert_array_equal(points, again)
    assert not np.array_equal(points, metrics.sample_points(mesh, 50_000, seed=4)[0])
    # Each side of the small cube gets its sixth: no triangle is preferred.
    counts = np.bincount(face[face >= 12] - 12, minlength=12)
    assert counts.min() > 0.8 * counts.mean()


def test_samples_skip_faces_without_area() -> None:
    cube = cube_mesh()
    faces = np.concatenate([np.array([[0, 0, 1]], dtype=np.int32), cube.faces])
    _, face = metrics.sample_points(Mesh(vertices=cube.vertices, faces=faces), 1000)
    assert face.min() >= 1
    with pytest.raises(GeometryError, match="no area"):
        metrics.sample_points(Mesh(vertices=cube.vertices, faces=faces[:1]), 10)


def test_chamfer() -> None:
    a = np.array([[0, 0, 0], [1, 0, 0]], dtype=np.float32)
    b = np.array([[0, 0, 3]], dtype=np.float32)
    assert metrics.chamfer(a, b) == pytest.approx(((3 + np.sqrt(10)) / 2 + 3) / 2)
    assert metrics.chamfer(a, a) == 0


@pytest.mark.parametrize("turn", range(4))
def test_best_yaw_finds_the_turn(turn: int) -> None:
    rng = np.random.default_rng(turn)
    points = (rng.normal(size=(300, 3)) * [1, 0.5, 0.2] + [0.3, 0, 0.1]).astype(np.float32)
    match = metrics.best_yaw(points, metrics.turn_yaw(points, turn))
    assert match.quarter_turns == turn
    assert match.distance == pytest.approx(0, abs=1e-6)
    other = rng.normal(size=(200, 3)).astype(np.float32)
    by_hand = min(metrics.chamfer(metrics.turn_yaw(points, k), other) for k in range(4))
    assert metrics.best_yaw(points, other).distance == pytest.approx(by_hand, rel=1e-6)


def test_a_quarter_turn_takes_z_to_x() -> None:
    front = np.array([[0, 0, 1]], dtype=np.float32)
    np.testing.assert_array_equal(metrics.turn_yaw(front, 1), [[1, 0, 0]])
    np.testing.assert_array_equal(metrics.turn_yaw(metrics.turn_yaw(front, 3), 1), front)


def test_topology_numbers() -> None:
    cube = cube_mesh(2)
    assert metrics.volume(cube) == pytest.approx(8)
    assert metrics.volume(turned(cube)) == pytest.approx(-8)
    assert metrics.euler(cube) == 2
    assert metrics.num_components(cube) == 1
    assert metrics.is_watertight(cube.faces)
    two = joined(cube, cube_mesh(1, (5, 0, 0)))
    assert (metrics.euler(two), metrics.num_components(two)) == (4, 2)
    ring = extract_surface(FIELDS["torus"], SurfaceOptions(cells=32)).mesh
    assert metrics.euler(ring) == 0
    empty = Mesh(vertices=np.zeros((0, 3), np.float32), faces=np.zeros((0, 3), np.int32))
    assert (metrics.euler(empty), metrics.num_components(empty)) == (0, 0)
