"""Procedural objects: closed solids, exact boxes, determinism, captions that agree with the geometry."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helicube.errors import InputError
from helicube.train.objects import TrainingObject
from helicube.train.procedural import CLASSES, generate, generate_many

SEEDS = range(3)


def piece_of_face(faces: NDArray[np.int64], num_vertices: int) -> NDArray[np.int64]:
    """(F,) number of the piece, connected by shared vertices, that each face belongs to."""
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(num_vertices, num_vertices))
    labels: NDArray[np.int64] = connected_components(graph, directed=False)[1]
    return labels[faces[:, 0]]


def assert_closed_outward(item: TrainingObject) -> None:
    """Every edge exactly twice, in opposite directions, and every connected piece of positive volume."""
    faces, vertices = item.faces, item.vertices.astype(np.float64)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there = np.sort(edges[:, 0] * len(vertices) + edges[:, 1])
    back = np.sort(edges[:, 1] * len(vertices) + edges[:, 0])
    assert len(np.unique(there)) == len(there), f"{item.id}: an edge is used twice in one direction"
    assert np.array_equal(there, back), f"{item.id}: an edge has no opposite"
    assert np.array_equal(np.unique(faces), np.arange(len(vertices))), f"{item.id}: an unused vertex"
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    piece = piece_of_face(faces, len(vertices))
    volumes = np.bincount(piece, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6)
    assert volumes.min() > 0, f"{item.id}: a piece of volume {volumes.min()}"
    for values in (item.face_parts, item.face_colors):
        assert all(len(np.unique(values[piece == k], axis=0)) == 1 for k in range(piece.max() + 1))


@pytest.mark.parametrize("name", CLASSES)
def test_objects_are_closed_and_normalised(name: str) -> None:
    for seed in SEEDS:
        item = generate(name, seed)
        assert item.class_name == name
        assert item.split == "train"
        assert np.isfinite(item.vertices).all()
        low, high = item.vertices.min(axis=0), item.vertices.max(axis=0)
        assert np.abs(low + high).max() < 1e-6, f"{item.id}: not centred"
        assert abs(float((high - low).max()) - 1.92) < 1e-6, f"{item.id}: longest side {(high - low).max()}"
        assert item.vertices.dtype == np.float32
        assert item.faces.dtype == np.int64
        assert item.face_colors.shape == item.faces.shape
        assert item.face_parts.max() + 1 == len(item.part_names) == len(set(item.part_names))
        assert 8 <= len(item.faces) <= 6000
        assert_closed_outward(item)


@pytest.mark.parametrize("name", CLASSES)
def test_the_same_seed_gives_the_same_object(name: str) -> None:
    first, again, other = generate(name, 7), generate(name, 7), generate(name, 8)
    assert np.array_equal(first.vertices, again.vertices)
    assert np.array_equal(first.faces, again.faces)
    assert np.array_equal(first.face_colors, again.face_colors)
    assert first.captions == again.captions
    assert first.id == again.id != other.id
    assert not np.array_equal(first.vertices, other.vertices)


def test_a_stream_is_balanced_and_takes_its_objects_from_generate() -> None:
    count = len(CLASSES) + 3
    items = list(generate_many(count, 3))
    assert len({item.id for item in items}) == count
    assert [item.class_name for item in items[: len(CLASSES)]] == list(CLASSES)
    last = items[len(CLASSES) + 1]
    assert last.id == f"proc-{last.class_name}-3000001"
    assert np.array_equal(last.vertices, generate(last.class_name, 3_000_001).vertices)


def test_unknown_classes_and_seeds_are_refused() -> None:
    with pytest.raises(InputError, match="no procedural class 'sofas'"):
        generate("sofas", 0)
    with pytest.raises(InputError, match="seed=-1"):
        generate("sofa", -1)
