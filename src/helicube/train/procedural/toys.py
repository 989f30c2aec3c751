"""Toys and balls."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, CLOTH, PAINT, WHITE, WOOD
from helicube.train.procedural.primitives import (
    ball,
    bevel_box,
    box,
    capsule,
    cone,
    cylinder,
    icosphere,
    link,
    torus,
)
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["toy"]


def toy(draft: Draft) -> None:
    """Balls, building blocks, teddy bears, rubber ducks, toy cars, rocking horses, spinning tops, targets."""
    makers = {
        "ball": _ball,
        "toy blocks": _blocks,
        "teddy bear": _teddy,
        "rubber duck": _duck,
        "spinning top": _top,
        "target": _target,
        "rocking horse": _rocker,
    }
    kind = draft.pick(tuple(makers))
    sub = kind if kind in {"ball", "teddy bear", "target", "rocking horse"} else "toy"
    draft.call(kind, *(("toy",) if kind not in {"ball", "target"} else ()), subclass=sub)
    draft.wobble = 0.05
    makers[kind](draft)


def _ball(draft: Draft) -> None:
    color = draft.tint(PAINT)
    second = draft.other((WHITE, *PAINT), color)
    kind = draft.pick(("beach ball", "football", "basketball"))
    draft.call(kind, "ball", subclass="ball")
    if kind == "football":
        draft.call("soccer ball", "ball", subclass="ball")
        draft.add("ball", WHITE, icosphere(1.0, 1.0, 1.0, 2))
        base = icosphere(1, 1, 1, 0).vertices
        for x, y, z in base:
            patch = cylinder(0.17, 0.06, 5).at(y=0.485)
            tilt = float(np.degrees(np.arccos(np.clip(y * 2, -1, 1))))
            turn = float(np.degrees(np.arctan2(x, z)))
            draft.add("patch", BLACK, patch.turned("x", tilt).turned("y", turn))
        return
    if kind == "basketball":
        draft.add("ball", (226, 116, 50), icosphere(1.0, 1.0, 1.0, 2))
        for axis, turn in (("x", 0), ("x", 90), ("z", 90)):
            draft.add("line", BLACK, torus(0.495, 0.035, 20, 4).turned(axis, turn))
        return
    draft.add("ball", color, icosphere(1.0, 1.0, 1.0, 2))
    for i in range(3):
        wedge_ = lathe([(0.0, -0.51), (0.3, -0.42), (0.5, -0.12), (0.5, 0.12), (0.3, 0.42), (0.0, 0.51)], 12)
        points = wedge_.vertices.copy()
        points[:, 0] *= 0.28
        draft.add("stripe", second, type(wedge_)(points * np.array([1, 1, 1.03]), wedge_.faces).turned("y", 60 * i))


def _blocks(draft: Draft) -> None:
    number = draft.pick((3, 4, 6))
    spots = {3: ((-0.27, 0.0), (0.27, 0.0), (0.0, 0.5)), 4: ((0.0, 0.0), (0.03, 0.5), (-0.02, 1.0), (0.02, 1.5))}.get(
        number, ((-0.55, 0.0), (0.0, 0.0), (0.55, 0.0), (-0.27, 0.5), (0.27, 0.5), (0.0, 1.0))
    )
    for x, y in spots:
        draft.add(
            "block",
            draft.tint(PAINT[:18]),
            bevel_box(0.5, 0.5, 0.5, 0.04).turned("y", draft.between(-12, 12)).at(x, y + 0.25, 0),
        )
    draft.nouns = ["stack of toy blocks", "stack of toy blocks"]
    draft.having(number, "block")


def _teddy(draft: Draft) -> None:
    fur = draft.tint(((150, 102, 64), (176, 124, 80), (118, 80, 52), (222, 190, 146), (236, 170, 190)))
    light = draft.other(((222, 190, 146), (240, 226, 200), (196, 150, 100)), fur)
    draft.add("body", fur, icosphere(0.75, 0.85, 0.62, 2).at(y=0.42))
    draft.add("belly", light, icosphere(0.5, 0.55, 0.3, 1).at(0, 0.4, 0.2))
    draft.add("head", fur, icosphere(0.68, 0.62, 0.6, 2).at(0, 1.05, 0.03))
    draft.add("muzzle", light, icosphere(0.32, 0.24, 0.26, 1).at(0, 0.98, 0.3))
    draft.add("nose", BLACK, icosphere(0.12, 0.09, 0.08, 0).at(0, 1.03, 0.43))
    for side in (-1, 1):
        draft.add("ear", fur, icosphere(0.26, 0.26, 0.14, 1).at(side * 0.27, 1.32, 0))
        draft.add("eyes", BLACK, icosphere(0.08, 0.09, 0.06, 0).at(side * 0.14, 1.13, 0.3))
        draft.add("arm", fur, ball(0.26, 0.55, 0.26, 8, 6).turned("z", side * 40).at(side * 0.42, 0.56, 0.1))
        draft.add("leg", fur, ball(0.32, 0.32, 0.6, 8, 6).turned("y", side * 18).at(side * 0.26, 0.15, 0.34))
        draft.add("foot", light, icosphere(0.22, 0.24, 0.08, 1).at(side * 0.34, 0.16, 0.62))


def _duck(draft: Draft) -> None:
    color = draft.tint(((240, 204, 60), (244, 190, 50), (236, 140, 176), (84, 160, 220)))
    draft.add(
        "body", color, icosphere(0.85, 0.62, 1.15, 2).at(y=0.32), cone(0.2, 0.4, 6).turned("x", -50).at(0, 0.5, -0.55)
    )
    draft.add("head", color, icosphere(0.56, 0.56, 0.56, 2).at(0, 0.82, 0.3))
    draft.add("beak", (236, 130, 40), ball(0.3, 0.1, 0.34, 6, 4).at(0, 0.78, 0.62))
    for side in (-1, 1):
        draft.add("eyes", BLACK, icosphere(0.09, 0.1, 0.07, 0).at(side * 0.17, 0.92, 0.52))
        draft.add("wing", color, ball(0.14, 0.34, 0.6, 6, 4).at(side * 0.42, 0.36, -0.08))


def _top(draft: Draft) -> None:
    color = draft.tint(PAINT)
    second = draft.other((WHITE, *PAINT), color)
    draft.add("top", color, lathe([(0.0, -0.6), (0.1, -0.45), (0.6, 0.0), (0.45, 0.22), (0.0, 0.32)], 14))
    draft.add("stripe", second, lathe([(0.5, -0.09), (0.64, 0.0), (0.56, 0.09)], 14))
    draft.add("handle", second, cylinder(0.07, 0.5, 8).at(y=0.5), icosphere(0.18, 0.18, 0.18, 1).at(y=0.76))


def _target(draft: Draft) -> None:
    red = draft.tint(((204, 44, 44), (54, 104, 200)))
    draft.adjectives.append("round")
    for i in range(4):
        radius = 0.9 - 0.22 * i
        draft.add("ring", WHITE if i % 2 else red, cylinder(radius, 0.16 + 0.03 * i, 18).turned("x", 90).at(0, 1.1, 0))
    wood = draft.tint(WOOD)
    for side in (-1, 1):
        draft.add("leg", wood, link((side * 0.55, 0, 0.1), (side * 0.3, 1.4, -0.12), 0.06, 6))
    draft.add("leg", wood, link((0, 0, -0.75), (0, 1.5, -0.12), 0.06, 6))


def _rocker(draft: Draft) -> None:
    wood = draft.tint((*WOOD, *PAINT[:6]))
    mane = draft.other((*WOOD, *CLOTH), wood)
    draft.add("body", wood, capsule(0.22, 1.0, 8).turned("x", 90).at(0, 0.85, 0))
    draft.add(
        "head",
        wood,
        link((0, 0.9, 0.32), (0, 1.35, 0.55), 0.18, 8, top=0.14),
        bevel_box(0.22, 0.24, 0.48, 0.06).turned("x", 25).at(0, 1.4, 0.66),
    )
    draft.add("mane", mane, box(0.08, 0.6, 0.2).turned("x", 25).at(0, 1.2, 0.34))
    draft.add("tail", mane, link((0, 0.9, -0.5), (0, 0.62, -0.72), 0.09, 6, top=0.03))
    draft.add("saddle", mane, bevel_box(0.48, 0.1, 0.42, 0.04).at(0, 1.06, -0.05))
    for side in (-1, 1):
        t = np.linspace(-1, 1, 9)
        rail = np.stack([0 * t + side * 0.26, 0.06 + 0.24 * t**2, 1.0 * t], axis=1)
        draft.add("rocker", mane, tube(rail, 0.06, 6))
        for z in (-0.34, 0.34):
            draft.add("leg", wood, link((side * 0.12, 0.75, z), (side * 0.26, 0.1, z * 1.4), 0.08, 6, top=0.06))
