"""Dinosaurs; their heads at +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.critters import LIZARD
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, RGB, WHITE
from helicube.train.procedural.primitives import ball, bevel_box, cone, cylinder, icosphere, link
from helicube.train.procedural.quadrupeds import Build, add_quadruped
from helicube.train.procedural.sweep import tube

__all__ = ["dinosaur"]


def dinosaur(draft: Draft) -> None:
    """Tyrannosaurs, long-necked sauropods, stegosaurs and triceratops."""
    kind = draft.pick(("t-rex", "sauropod", "stegosaurus", "triceratops"))
    skin = draft.tint(LIZARD)
    second = draft.other(LIZARD, skin)
    draft.call(kind, "dinosaur", subclass="dinosaur")
    draft.wobble = 0.06
    if kind == "t-rex":
        _biped(draft, skin, second)
        return
    four = Build(leg=0.42, wide=0.5, high=0.5, neck=0.04, rise=0.1, head=0.3, muzzle=0.2, ears="none", tail="none")
    if kind == "sauropod":
        four = Build(leg=0.5, wide=0.46, high=0.5, neck=0.5, rise=0.95, head=0.2, muzzle=0.12, ears="none", tail="none")
    y, z = add_quadruped(draft, four, (skin, skin))
    draft.pieces = [piece for piece in draft.pieces if piece.part != "tail"]
    tail = [(0, 0.66, -0.4), (0, 0.6, -0.8), (0, 0.48, -1.15), (0, 0.42, -1.5 if kind == "sauropod" else -1.3)]
    draft.add("tail", skin, tube(tail, [0.2, 0.13, 0.07, 0.015], 7))
    if kind == "stegosaurus":
        for i in range(8):
            t = i / 7
            size = 0.2 + 0.22 * float(np.sin(np.pi * (0.12 + 0.8 * t)))
            plate = cylinder(size * 0.62, 0.06, 4, phase=0.0).turned("x", 90).turned("y", 90).scaled(1, 1.2, 1)
            height = 0.9 - 0.28 * max(0.0, t - 0.6) / 0.4 * 1.3
            draft.add("plate", second, plate.at((i % 2 - 0.5) * 0.1, height + size * 0.2, 0.4 - 1.3 * t))
        draft.features.append("with plates on its back")
    elif kind == "triceratops":
        frill = cylinder(0.36, 0.08, 10).turned("x", 78).at(0, y + 0.14, z - 0.12)
        draft.add("frill", second, frill)
        for x, dy, dz, long in ((-0.11, 0.2, 0.1, 0.36), (0.11, 0.2, 0.1, 0.36), (0.0, 0.08, 0.34, 0.2)):
            draft.add("horn", (232, 222, 196), cone(0.045, long, 6).turned("x", 50).at(x, y + dy, z + dz))
        draft.having(3, "horn")


def _biped(draft: Draft, skin: RGB, belly: RGB) -> None:
    spine = [(0, 0.62, -1.2), (0, 0.7, -0.7), (0, 0.8, -0.2), (0, 0.9, 0.15), (0, 1.1, 0.36), (0, 1.32, 0.46)]
    draft.add("body", skin, tube(spine, [0.02, 0.1, 0.22, 0.26, 0.2, 0.15], 8))
    draft.add("belly", belly, ball(0.36, 0.4, 0.5, 8, 6).at(0, 0.82, 0.16))
    draft.add(
        "head",
        skin,
        bevel_box(0.3, 0.22, 0.58, 0.06).at(0, 1.46, 0.68),
        bevel_box(0.26, 0.1, 0.5, 0.03).turned("x", 12).at(0, 1.27, 0.66),
    )
    for side in (-1, 1):
        draft.add("eyes", BLACK, icosphere(0.08, 0.08, 0.08, 0).at(side * 0.14, 1.52, 0.56))
        draft.add("leg", skin, ball(0.24, 0.5, 0.36, 8, 6).at(side * 0.22, 0.6, -0.02))
        draft.add(
            "leg",
            skin,
            link((side * 0.22, 0.5, -0.04), (side * 0.22, 0.22, -0.16), 0.1, 6),
            link((side * 0.22, 0.22, -0.16), (side * 0.22, 0.04, -0.02), 0.07, 6),
        )
        draft.add("foot", skin, ball(0.18, 0.1, 0.34, 6, 4).at(side * 0.22, 0.05, 0.08))
        draft.add("arm", skin, link((side * 0.18, 1.05, 0.4), (side * 0.2, 0.88, 0.55), 0.045, 6, top=0.03))
        for i in range(3):
            draft.add("teeth", WHITE, cone(0.025, 0.08, 4).turned("x", 180).at(side * 0.11, 1.34, 0.62 + 0.11 * i))
