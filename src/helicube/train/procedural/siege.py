"""Catapults, ballistas and battering rams; they face +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import DARK_METAL, METAL, RGB, STONE, WOOD
from helicube.train.procedural.primitives import box, cylinder, link, rock, torus
from helicube.train.procedural.sweep import lathe
from helicube.train.procedural.wheels import spoked_wheel

__all__ = ["siege_engine"]


def siege_engine(draft: Draft) -> None:
    """Catapults, ballistas and battering rams on wheels."""
    wood = draft.tint(WOOD)
    trim = draft.other((*METAL, *DARK_METAL, *WOOD), wood)
    draft.material = "wooden"
    kind = draft.pick(("catapult", "catapult", "ballista", "battering ram"))
    draft.call(kind, subclass="catapult")
    long, wide = draft.between(1.8, 2.3), draft.between(0.9, 1.1)
    for side in (-1, 1):
        draft.add("frame", wood, box(0.14, 0.16, long).at(side * wide / 2, 0.4, 0))
        draft.add("frame", wood, box(wide, 0.14, 0.14).at(0, 0.4, side * long * 0.42))
        for z, name in ((long * 0.34, "front"), (-long * 0.34, "back")):
            solids = [solid.at(side * (wide / 2 + 0.16), 0.34, z) for solid in spoked_wheel(0.34, 0.12, 6)]
            draft.add(f"wheel {name} " + ("left" if side > 0 else "right"), wood, *solids)
    draft.having(4, "wheel")
    {"catapult": _catapult, "ballista": _ballista}.get(kind, _ram)(draft, (wood, trim), (wide, long))


def _catapult(draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float]) -> None:
    wood, trim = colors
    wide, long = size
    for side in (-1, 1):
        draft.add("frame", wood, box(0.12, 1.0, 0.14).at(side * wide * 0.42, 0.9, 0.15))
        draft.add("frame", wood, link((side * wide * 0.42, 1.35, 0.15), (side * wide * 0.42, 0.45, 0.85), 0.06, 4))
    draft.add(
        "frame",
        wood,
        cylinder(0.09, wide, 8).turned("z", 90).at(0, 1.36, 0.15),
        cylinder(0.08, wide, 8).turned("z", 90).at(0, 0.6, 0.0),
    )
    tip = np.array([0.0, draft.between(1.0, 1.9), -long * 0.42])
    draft.add("arm", wood, link((0, 0.6, 0.0), tip, 0.07, 6))
    cup = lathe([(0.0, 0.0), (0.2, 0.06), (0.26, 0.2), (0.2, 0.2), (0.14, 0.1), (0.0, 0.06)], 8)
    draft.add("bucket", trim, cup.at(*tip))
    if draft.chance(0.6):
        draft.add(
            "stone", draft.tint(STONE), rock(draft.rng, 0.34, 0.3, 0.34, cuts=3).at(*(tip + np.array([0, 0.08, 0])))
        )
        draft.features.append("with a stone")


def _ballista(draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float]) -> None:
    wood, trim = colors
    _, long = size
    draft.add("frame", wood, box(0.2, 0.6, 0.2).at(0, 0.75, 0))
    draft.add("bow", wood, box(0.22, 0.18, long * 0.9).turned("x", -12).at(0, 1.1, 0.1))
    for side in (-1, 1):
        draft.add("bow", wood, link((0, 1.25, 0.7), (side * 0.85, 1.2, 0.35), 0.07, 6, top=0.04))
        draft.add("string", (226, 222, 210), link((side * 0.85, 1.2, 0.35), (0, 1.08, -0.5), 0.02, 4))
    draft.add("bolt", trim, link((0, 1.12, -0.5), (0, 1.4, 1.2), 0.045, 6))


def _ram(draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float]) -> None:
    wood, trim = colors
    wide, long = size
    for z in (-0.3, 0.3):
        for side in (-1, 1):
            draft.add("frame", wood, link((side * wide * 0.48, 0.4, z * long), (0, 1.35, z * long), 0.06, 6))
    for side in (-1, 1):
        plate = box(0.72, 0.07, long * 0.95).turned("z", -side * 44).at(side * 0.26, 1.25, 0)
        draft.add("roof", trim, plate)
    draft.add("ram", wood, cylinder(0.13, long * 1.1, 8).turned("x", 90).at(0, 0.75, 0.2))
    draft.add("ram", METAL[1], cylinder(0.16, 0.25, 8, top=0.06).turned("x", 90).at(0, 0.75, 0.2 + long * 0.58))
    for z in (-0.25, 0.3):
        draft.add(
            "chain",
            METAL[4],
            torus(0.15, 0.05, 8, 4).turned("x", 90).at(0, 0.76, z * long),
            link((0, 0.85, z * long), (0, 1.35, z * long), 0.025, 4),
        )
