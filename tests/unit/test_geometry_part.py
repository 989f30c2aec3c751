"""Sheets that touch are parted, whatever touches, and nothing else moves."""

from __future__ import annotations

import fast_simplification
import numpy as np
import pytest
import trimesh
from geometry_fields import rough_blocks

from helicube.geometry.budget import volume
from helicube.geometry.mesh import Mesh
from helicube.geometry.part import part
from helicube.geometry.topology import edge_faults, is_manifold


def box_mesh(*centres: tuple[float, float, float]) -> Mesh:
    """Unit boxes, sharing vertices where they touch."""
    box = trimesh.creation.box()
    points = np.concatenate([box.vertices + np.array(centre) for centre in centres])
    faces = np.concatenate([box.faces + len(box.vertices) * i for i in range(len(centres))])
    vertices, index = np.unique(points, axis=0, return_inverse=True)
    return Mesh(vertices=vertices.astype(np.float32), faces=index.reshape(-1)[faces].astype(np.int32))


def test_a_manifold_comes_back_as_it_is() -> None:
    one = box_mesh((0, 0, 0))
    same = part(one)
    assert np.array_equal(same.faces, one.faces)
    assert np.array_equal(same.vertices, one.vertices)


@pytest.mark.parametrize("second", [(1, 1, 0), (1, 1, 1)], ids=["along an edge", "in a vertex"])
def test_boxes_that_touch_become_two(second: tuple[float, float, float]) -> None:
    touching = box_mesh((0, 0, 0), second)
    assert not is_manifold(touching.faces)
    two = part(touching)
    assert is_manifold(two.faces)
    assert two.num_faces == 24
    assert volume(two.vertices, two.faces) == pytest.approx(2, abs=2e-2)
    # Readers merge vertices of one position; the boxes are still two then.
    read = trimesh.Trimesh(two.vertices, two.faces, process=True)
    assert read.is_watertight
    assert read.body_count == 2


@pytest.mark.parametrize("seed", range(4))
def test_what_careless_collapses_joined_is_parted(seed: int) -> None:
    rough = rough_blocks(seed)
    vertices, faces = fast_simplification.simplify(rough.vertices, rough.faces, target_count=4000, agg=5.0)
    raw = Mesh(vertices=vertices.astype(np.float32), faces=faces.astype(np.int32))
    faults = edge_faults(raw.faces)
    assert faults.num_doubled, "this surface would not show the fault"
    parted = part(raw)
    assert is_manifold(parted.faces)
    # Each doubled edge costs two faces at most, in each of a few rounds.
    assert parted.num_faces <= raw.num_faces + 4 * faults.num_doubled
    assert volume(parted.vertices, parted.faces) == pytest.approx(volume(raw.vertices, raw.faces), rel=1e-3)
    assert trimesh.Trimesh(parted.vertices, parted.faces, process=True).is_watertight
