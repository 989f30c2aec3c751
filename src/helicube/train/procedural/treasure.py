"""Coins and jewelry."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import CLOTH, GOLD, METAL, RGB
from helicube.train.procedural.primitives import arc, ball, box, cylinder, frustum, icosphere, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, tube
from helicube.train.procedural.trinkets import star_outline

__all__ = ["coin", "jewelry"]

_GEM: tuple[RGB, ...] = ((204, 40, 60), (60, 160, 90), (60, 110, 220), (150, 84, 200), (150, 210, 236), (240, 190, 60))


def coin(draft: Draft) -> None:
    """Single standing coins, with a star or a square hole, and stacks."""
    metal = draft.tint((*GOLD, *GOLD, METAL[3], (176, 110, 64)))
    kind = draft.pick(("coin", "coin", "stack"))
    draft.wobble = 0.05
    name = {True: "gold", False: "silver"}[metal[2] < 100 and metal[0] > 190]
    name = "bronze" if metal[0] < 190 and metal[2] < 100 else name
    draft.call(draft.pick(("coin", f"{name} coin")), "coin", subclass="coin")
    if kind == "stack":
        number = draft.count(4, 9)
        for i in range(number):
            at = (draft.between(-0.06, 0.06), 0.075 + 0.15 * i, draft.between(-0.06, 0.06))
            draft.add("coin", metal, cylinder(0.5, 0.12, 16).at(*at), cylinder(0.46, 0.15, 16).at(*at))
        draft.nouns = ["stack of coins"]
        return
    sides = draft.pick((12, 16, 20, 8))
    thick = draft.between(0.14, 0.24)
    draft.add(
        "coin",
        metal,
        lathe([(0.84, -thick / 2), (1.0, -thick / 2), (1.0, thick / 2), (0.84, thick / 2)], sides, loop=True).turned(
            "x", 90
        ),
    )
    draft.add("coin", metal, cylinder(0.88, thick * 0.7, sides).turned("x", 90))
    mark = draft.pick(("star", "bar", "diamond"))
    shape: Solid
    if mark == "star":
        shape = extrude(star_outline(5, 0.5, 0.24), thick * 1.05)
        draft.features.append("with a star")
    elif mark == "bar":
        shape = box(0.2, 0.8, thick * 1.05)
    else:
        shape = box(0.5, 0.5, thick * 1.05).turned("z", 45)
    draft.add("mark", metal, shape)


def jewelry(draft: Draft) -> None:
    """Rings with a gem, crowns, necklaces, cut gems, gold bars."""
    kind = draft.pick(("ring", "ring", "crown", "necklace", "gem", "gold bar"))
    metal, gem = draft.tint((*GOLD, METAL[3])), draft.tint(_GEM)
    sub = {"gold bar": "gold bars"}.get(kind, kind)
    draft.call(kind, *(("jewelry",) if kind in {"ring", "necklace"} else ()), subclass=sub)
    draft.wobble = 0.07
    if kind == "ring":
        draft.add("ring", metal, torus(0.6, 0.16, 18, 6).turned("x", 90))
        draft.add("setting", metal, cylinder(0.16, 0.16, 8, top=0.24).at(y=0.7))
        draft.add("gem", gem, lathe([(0.0, 0.0), (0.3, 0.26), (0.18, 0.42), (0.0, 0.42)], draft.pick((6, 8))).at(y=0.7))
        draft.having_one_colored("gem", gem)
    elif kind == "crown":
        _crown(draft, metal, gem)
    elif kind == "necklace":
        angle = np.radians(np.linspace(70, 470, 25)[:-1])
        for i, a in enumerate(angle):
            size = 0.1 if i % 2 else 0.14
            draft.add("chain", metal, icosphere(size, size, size, 0).at(0.75 * np.cos(a), 0.75 * np.sin(a) * 1.15, 0))
        draft.add("chain", metal, tube(arc(0.75, 0, 360, 20)[:-1] * np.array([1, 1.15, 1]), 0.03, 5, loop=True))
        draft.add("gem", gem, lathe([(0.0, -0.5), (0.24, -0.1), (0.16, 0.1), (0.0, 0.12)], 6).at(y=-1.02))
        draft.having_one_colored("gem", gem)
    elif kind == "gem":
        draft.nouns = list(draft.pick((("gem",), ("diamond", "gem"), ("jewel", "gem"))))
        draft.subclass = "gem"
        sides = draft.pick((6, 8, 10))
        draft.add("gem", gem, lathe([(0.0, 0.0), (0.7, 0.62), (0.46, 0.92), (0.0, 0.92)], sides))
    else:
        number = draft.pick((1, 3, 6))
        gold = draft.tint(GOLD)
        spots = [(0.0, 0.0), (0.62, 0.0), (0.31, 0.24), (1.24, 0.0), (0.93, 0.24), (0.62, 0.48)]
        for x, y in spots[:number]:
            draft.add("bar", gold, frustum((0.56, -0.6, 0.6), (0.4, -0.5, 0.5), y, y + 0.24).at(x))
        draft.nouns = [kind if number == 1 else "stack of gold bars"]


def _crown(draft: Draft, metal: RGB, gem: RGB) -> None:
    points = draft.pick((5, 6, 8))
    draft.add("crown", metal, lathe([(0.7, 0.0), (0.76, 0.0), (0.8, 0.36), (0.74, 0.36)], 20, loop=True))
    draft.add("crown", metal, torus(0.74, 0.12, 20, 5).at(y=0.03))
    for i in range(points):
        turn = 360 * i / points
        spike = extrude([(-0.3, 0.0), (0.3, 0.0), (0.0, 0.55)], 0.07).at(0, 0.3, 0.76).turned("y", turn)
        draft.add("crown", metal, spike)
        draft.add("gem", gem, icosphere(0.14, 0.14, 0.14, 1).at(0, 0.88, 0.76).turned("y", turn))
        draft.add("gem", gem, icosphere(0.16, 0.16, 0.1, 0).at(0, 0.2, 0.79).turned("y", turn))
    if draft.chance(0.4):
        cloth = draft.other(CLOTH, metal)
        draft.add("cushion", cloth, ball(1.4, 0.7, 1.4, 12, 6).at(y=0.25))
    draft.having(points, "point")
    draft.having_colored("gems", gem)
