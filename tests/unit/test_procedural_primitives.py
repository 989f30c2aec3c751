"""Primitive solids: closed, outward, of the right volume and size."""

from __future__ import annotations

import numpy as np
import pytest

from helicube.train.procedural import primitives as shapes
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, loft, triangulate, tube

RNG = np.random.default_rng(3)
L_SHAPE = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
CUP = [(0.0, 0.0), (1.0, 0.0), (1.0, 2.0), (0.9, 2.0), (0.9, 0.1), (0.0, 0.1)]


def polygon_area(sides: int, radius: float) -> float:
    return 0.5 * sides * radius**2 * float(np.sin(2 * np.pi / sides))


def pieces(solid: Solid) -> int:
    """Euler characteristic over two: 1 for a ball, 0 for a ring."""
    edges = np.sort(solid.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    return (len(solid.vertices) - len(np.unique(edges, axis=0)) + len(solid.faces)) // 2


# Name, solid, its exact volume (None where it is random), and 1 for a ball's topology or 0 for a ring's.
CASES: list[tuple[str, Solid, float | None, int]] = [
    ("box", shapes.box(1, 2, 3), 6.0, 1),
    ("bevel box", shapes.bevel_box(2, 2, 2, 0.2), 8 - 12 * 0.5 * 0.04 * 1.6 - 8 * (0.008 - 0.008 / 6), 1),
    ("wedge", shapes.wedge(1, 2, 3), 3.0, 1),
    ("pyramid", shapes.wedge(1, 2, 3, ridge=0), 2.0, 1),
    ("frustum", shapes.frustum((2, -1, 1), (1, -0.5, 0.5), 0, 3), 3 / 3 * (4 + 1 + 2), 1),
    ("cylinder", shapes.cylinder(1, 2, 12), 2 * polygon_area(12, 1), 1),
    ("cone", shapes.cone(1, 3, 8), polygon_area(8, 1), 1),
    ("ball", shapes.ball(1, 2, 3), None, 1),
    ("icosphere", shapes.icosphere(2, 2, 2, 2), None, 1),
    ("blob", shapes.blob(RNG, 1, 1, 1), None, 1),
    ("rock", shapes.rock(RNG, 1, 2, 1), None, 1),
    ("capsule", shapes.capsule(0.5, 2), None, 1),
    ("round capsule", shapes.capsule(0.5, 1), None, 1),
    ("torus", shapes.torus(1, 0.2, 12, 6), None, 0),
    ("link", shapes.link((0, 0, 0), (0, 0, 2), 0.5, 6), 2 * polygon_area(6, 0.5), 1),
    ("slab", shapes.rounded_slab(2, 0.2, 1, 0.2), None, 1),
    ("terrain", shapes.terrain(np.full((4, 5), 0.5), 2, 3), 3.0, 1),
    ("extrusion", extrude(L_SHAPE, 2), 6.0, 1),
    ("clockwise extrusion", extrude(L_SHAPE[::-1], 2), 6.0, 1),
    ("cup", lathe(CUP, 10), 2 * polygon_area(10, 1) - 1.9 * polygon_area(10, 0.9), 1),
    ("pipe", tube(shapes.arc(1, 0, 180, 8), 0.1), None, 1),
    ("closed pipe", tube(shapes.arc(1, 0, 360, 8)[:-1], 0.1, loop=True), None, 0),
]


@pytest.mark.parametrize(("name", "solid", "volume", "topology"), CASES, ids=[case[0] for case in CASES])
def test_solids_are_closed_and_outward(name: str, solid: Solid, volume: float | None, topology: int) -> None:
    for shape in (solid, solid.mirrored("z"), solid.turned("x", 33).at(1, 2, 3).scaled(1, 1, 1)):
        faces = shape.faces
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        there = edges[:, 0] * len(shape.vertices) + edges[:, 1]
        back = edges[:, 1] * len(shape.vertices) + edges[:, 0]
        assert len(np.unique(there)) == len(there)
        assert set(there.tolist()) == set(back.tolist())
        assert pieces(shape) == topology
        assert shape.volume > 0
        if volume is not None:
            assert shape.volume == pytest.approx(volume, rel=1e-9)


def test_the_icosphere_fills_its_box_and_nears_the_ball() -> None:
    solid = shapes.icosphere(2, 4, 6, 2)
    assert np.ptp(solid.vertices, axis=0) == pytest.approx([2, 4, 6], rel=0.02)
    assert solid.volume == pytest.approx(4 / 3 * np.pi * 6, rel=0.06)
    assert len(solid.faces) == 320


def test_a_rock_stands_on_the_ground() -> None:
    for seed in range(10):
        solid = shapes.rock(np.random.default_rng(seed), 1, 1, 1)
        assert solid.vertices[:, 1].min() == pytest.approx(0, abs=1e-12)


def test_ear_clipping_keeps_the_area_of_a_comb() -> None:
    teeth = [(float(i), 1.0 if i % 2 else 3.0) for i in range(12, -1, -1)]
    outline = np.array([(0.0, 0.0), (12.0, 0.0), *teeth])
    x, y = outline.T
    area = float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    a, b, c = (outline[triangulate(outline)[:, i]] for i in range(3))
    parts = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    assert parts.min() > 0
    assert parts.sum() == pytest.approx(area)


def test_turning_and_bending_keep_handedness_and_length() -> None:
    assert shapes.box(1, 1, 1).at(1).turned("y", 90).vertices.mean(axis=0) == pytest.approx([0, 0, -1], abs=1e-12)
    assert shapes.box(1, 1, 1).at(0, 1).turned("x", 90).vertices.mean(axis=0) == pytest.approx([0, 0, 1], abs=1e-12)
    bent = lathe([(0.1, 0.5 * i) for i in range(9)], 8).bent(90)
    assert bent.volume == pytest.approx(4 * polygon_area(8, 0.1), rel=0.02)
    assert bent.vertices[:, 0].max() == pytest.approx(4 / (np.pi / 2), rel=0.05)


def test_a_loft_ends_in_points_where_its_rings_collapse() -> None:
    ring = np.array([[1.0, 0, 1], [1, 0, -1], [-1, 0, -1], [-1, 0, 1]])
    solid = loft([ring * 0 + [0, -1, 0], ring, ring * 0 + [0, 1, 0]])
    assert len(solid.vertices) == 6
    assert len(solid.faces) == 8
    assert solid.volume == pytest.approx(8 / 3)
