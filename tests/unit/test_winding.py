"""Occupancy by winding number: closed meshes exactly, open ones as libigl says at every voxel."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray

from helicube.geometry.crossings import is_closed, winding_lattice
from helicube.geometry.winding import box_lattice, occupancy, occupancy_lattice

LOW, HIGH = np.full(3, -1.0), np.full(3, 1.0)


def lattice_of(mesh: trimesh.Trimesh, resolution: int) -> NDArray[np.bool_]:
    vertices = mesh.vertices.astype(np.float32)
    return occupancy_lattice(vertices, mesh.faces, resolution=resolution, low=LOW, high=HIGH)


def join(*meshes: trimesh.Trimesh) -> trimesh.Trimesh:
    joined = trimesh.util.concatenate(list(meshes))
    assert isinstance(joined, trimesh.Trimesh)
    return joined


def two_overlapping() -> trimesh.Trimesh:
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.6)
    box = trimesh.creation.box((0.8, 0.9, 0.7))
    box.apply_translation((0.35, 0.1, -0.2))
    return join(ball, box)


@pytest.mark.parametrize(
    "mesh",
    [trimesh.creation.icosphere(subdivisions=3, radius=0.7), trimesh.creation.torus(0.6, 0.2), two_overlapping()],
    ids=["sphere", "torus", "overlapping"],
)
def test_closed_mesh_equals_the_dense_winding_number(mesh: trimesh.Trimesh) -> None:
    assert is_closed(mesh.vertices, mesh.faces)
    points = box_lattice(32, LOW, HIGH)
    dense = occupancy(mesh.vertices, mesh.faces, points.reshape(-1, 3)).reshape(32, 32, 32)
    assert np.array_equal(lattice_of(mesh, 32), dense)


def test_box_fills_exactly_its_voxels() -> None:
    inside = lattice_of(trimesh.creation.box((1.0, 0.5, 1.5)), 32)
    expected = np.zeros((32, 32, 32), dtype=bool)
    expected[8:24, 12:20, 4:28] = True
    assert np.array_equal(inside, expected)


def test_an_edge_between_a_voxels_centre_and_its_column_is_crossed_once() -> None:
    # Columns stand 1.7e-5 off the centres. The top of this box is split just before such a column, the bottom is not.
    split = 2.50001
    corners = [(1.2, 1.2), (5.2, 1.2), (5.2, 5.2), (1.2, 5.2)]
    vertices = np.array([(x, y, z) for z in (1.2, 5.2) for x, y in corners] + [(split, 1.2, 5.2), (split, 5.2, 5.2)])
    bottom, top = [(0, 3, 2), (0, 2, 1)], [(4, 8, 9), (4, 9, 7), (8, 5, 6), (8, 6, 9)]
    sides = [
        (0, 1, 8),
        (0, 8, 4),
        (1, 5, 8),
        (1, 2, 6),
        (1, 6, 5),
        (2, 3, 9),
        (2, 9, 6),
        (3, 7, 9),
        (3, 0, 4),
        (3, 4, 7),
    ]
    faces = np.array(bottom + top + sides)
    assert is_closed(vertices, faces)
    expected = np.zeros((8, 8, 8), np.int16)
    expected[1:5, 1:5, 1:5] = 1
    np.testing.assert_array_equal(winding_lattice(vertices, faces, 8), expected)


def test_overlap_counts_twice_and_an_inverted_mesh_negative() -> None:
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    twice = join(box, box)
    local = (twice.vertices + 1) * 8
    assert set(np.unique(winding_lattice(local, twice.faces, 16))) == {0, 2}
    assert set(np.unique(winding_lattice(local, twice.faces[:, ::-1], 16))) == {0, -2}


def test_open_mesh_agrees_with_every_dense_query() -> None:
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.8)
    ball.update_faces(ball.triangles_center[:, 1] < 0.5)
    assert not is_closed(ball.vertices, ball.faces)
    dense = occupancy(ball.vertices, ball.faces, box_lattice(48, LOW, HIGH).reshape(-1, 3)).reshape(48, 48, 48)
    # The opening has no triangles; blocks that it crosses are found by their corners alone.
    assert (lattice_of(ball, 48) != dense).mean() < 1e-3
    volume = dense.mean() * 8
    assert volume == pytest.approx(4 / 3 * np.pi * 0.8**3 * 0.86, rel=0.1)
