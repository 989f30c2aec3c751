"""Fruit."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.decor import leaf_blade
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.primitives import arc, ball, blob, cone, cylinder, icosphere, link
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, tube

__all__ = ["fruit"]

_STEM: RGB = (110, 76, 48)
_GREEN: tuple[RGB, ...] = ((86, 150, 60), (72, 130, 52), (112, 170, 70), (60, 120, 56))


def fruit(draft: Draft) -> None:
    """Apples, pears, bananas, oranges, lemons, grapes, strawberries, cherries, pineapples, watermelons, coconuts."""
    makers = {
        "apple": _apple, "pear": _pear, "banana": _banana, "orange": _citrus, "lemon": _citrus, "grapes": _grapes,
        "strawberry": _strawberry, "cherry": _cherry, "pineapple": _pineapple, "watermelon": _watermelon,
        "coconut": _coconut, "avocado": _avocado, "peach": _apple,
    }  # fmt: skip
    kind = draft.pick(tuple(makers))
    draft.call(kind, "fruit", subclass=kind)
    draft.wobble = 0.07
    makers[kind](draft)


def _stalk(draft: Draft, y: float, *, leaf: bool) -> None:
    draft.add("stem", _STEM, tube([(0, y - 0.06, 0), (0.02, y + 0.1, 0), (0.07, y + 0.2, 0.02)], 0.03, 5))
    if leaf:
        blade = leaf_blade(0.32, 0.17, 0.4).turned("y", draft.between(0, 360)).at(0.03, y + 0.06, 0)
        draft.add("leaf", draft.tint(_GREEN), blade)
        draft.features.append("with a leaf")


def _apple(draft: Draft) -> None:
    peach = draft.nouns[0] == "peach"
    color = (
        draft.tint(((236, 150, 110), (240, 170, 120)))
        if peach
        else draft.tint(((204, 44, 40), (172, 36, 40), (112, 170, 60), (226, 196, 70)))
    )
    shape = ((0.0, 0.06), (0.18, 0.0), (0.42, 0.18), (0.52, 0.5), (0.46, 0.78), (0.24, 0.93), (0.0, 0.82))
    draft.add("apple" if not peach else "peach", color, lathe(shape, 12))
    _stalk(draft, 0.84, leaf=draft.chance(0.6))


def _pear(draft: Draft) -> None:
    color = draft.tint(((176, 196, 76), (206, 196, 80), (112, 170, 70)))
    shape = ((0.0, 0.02), (0.2, 0.0), (0.42, 0.18), (0.45, 0.42), (0.28, 0.78), (0.18, 1.02), (0.0, 1.12))
    draft.add("pear", color, lathe(shape, 12))
    _stalk(draft, 1.1, leaf=draft.chance(0.6))


def _banana(draft: Draft) -> None:
    yellow = draft.tint(((240, 204, 60), (226, 190, 56), (180, 196, 70)))
    number = draft.pick((1, 1, 3))
    for i in range(number):
        path = arc(0.8, 200, 320, 8) + np.array([0, 0.85, 0])
        body = tube(path, [0.05, 0.13, 0.16, 0.17, 0.17, 0.16, 0.14, 0.1, 0.05], 6)
        tips = [
            tube(path[:2] - (path[1] - path[0]) * 0.75, 0.05, 6),
            tube(path[-2:] + (path[-1] - path[-2]) * 0.55, 0.04, 5),
        ]
        turn = (i - (number - 1) / 2) * 24
        draft.add("banana", yellow, body.turned("x", turn * 0.6).at(z=0.2 * (i - (number - 1) / 2)))
        draft.add(
            "tip", (84, 60, 40), *[tip.turned("x", turn * 0.6).at(z=0.2 * (i - (number - 1) / 2)) for tip in tips]
        )
    if number > 1:
        draft.call("bunch of bananas", "bananas", subclass="banana")
        draft.nouns = ["bunch of bananas"]


def _citrus(draft: Draft) -> None:
    orange = draft.nouns[0] == "orange"
    color = draft.tint(((236, 140, 40), (230, 126, 34)) if orange else ((240, 208, 64), (236, 200, 60)))
    if orange:
        draft.add("orange", color, icosphere(1.0, 0.94, 1.0, 2))
        _stalk(draft, 0.48, leaf=True)
        return
    draft.add(
        "lemon",
        color,
        lathe(
            [(0.0, -0.72), (0.1, -0.64), (0.38, -0.36), (0.48, 0.0), (0.38, 0.36), (0.1, 0.64), (0.0, 0.72)], 10
        ).turned("z", 90),
    )
    blade = leaf_blade(0.34, 0.18, 0.3).at(-0.6, 0.05, 0)
    draft.add("leaf", draft.tint(_GREEN), blade)


def _grapes(draft: Draft) -> None:
    color = draft.tint(((118, 70, 140), (96, 50, 110), (140, 180, 80)))
    y = 0.0
    for count, radius in ((5, 0.2), (6, 0.26), (5, 0.2), (3, 0.12), (1, 0.0)):
        for i in range(count):
            a = 2 * np.pi * i / count + y
            draft.add("grape", color, icosphere(0.26, 0.26, 0.26, 1).at(radius * np.sin(a), -y, radius * np.cos(a)))
        y += 0.19
    draft.add("stem", _STEM, cylinder(0.03, 0.3, 5).at(y=0.18))
    draft.add("leaf", draft.tint(_GREEN), leaf_blade(0.36, 0.3, 0.4).at(y=0.14))


def _strawberry(draft: Draft) -> None:
    red = draft.tint(((204, 44, 48), (220, 56, 60)))
    shape = ((0.0, 0.0), (0.16, 0.06), (0.4, 0.5), (0.42, 0.72), (0.26, 0.9), (0.0, 0.92))
    draft.add("strawberry", red, lathe(shape, 10))
    for i in range(14):
        t, a = 0.2 + 0.55 * (i % 4) / 3, 2.4 * i
        radius = float(np.interp(t, (0.06, 0.5, 0.72, 0.9), (0.16, 0.4, 0.42, 0.28)))
        seed = icosphere(0.05, 0.08, 0.05, 0).at(radius * np.sin(a), t, radius * np.cos(a))
        draft.add("seed", (240, 206, 90), seed)
    green = draft.tint(_GREEN)
    for i in range(5):
        draft.add("leaf", green, leaf_blade(0.34, 0.16, 0.5).turned("y", 72 * i).at(y=0.88))
    draft.add("stem", green, cylinder(0.03, 0.2, 5).at(y=1.0))


def _cherry(draft: Draft) -> None:
    red = draft.tint(((190, 36, 44), (140, 26, 40)))
    draft.call("pair of cherries", "cherries", subclass="cherry")
    draft.nouns = ["pair of cherries"]
    for side in (-1, 1):
        draft.add("cherry", red, icosphere(0.56, 0.54, 0.56, 2).at(side * 0.34, 0, 0))
        draft.add(
            "stem", draft.pick(_GREEN), tube([(side * 0.34, 0.2, 0), (side * 0.26, 0.6, 0), (0, 1.0, 0)], 0.03, 5)
        )
    draft.add("leaf", draft.tint(_GREEN), leaf_blade(0.5, 0.26, 0.3).turned("y", 90).at(0, 0.96, 0))


def _pineapple(draft: Draft) -> None:
    skin = draft.tint(((214, 160, 60), (200, 140, 56), (226, 176, 66)))
    green = draft.tint(_GREEN)
    draft.add(
        "pineapple", skin, lathe([(0.0, 0.0), (0.28, 0.02), (0.42, 0.3), (0.42, 0.7), (0.28, 1.0), (0.0, 1.02)], 10)
    )
    for row in range(4):
        for i in range(7):
            y = 0.2 + 0.22 * row
            bump = cone(0.09, 0.1, 4).turned("x", 90).at(0, y, 0.42 if 0 < row < 3 else 0.37)
            draft.add("pineapple", skin, bump.turned("y", 51.4 * i + 25.7 * (row % 2)))
    for ring, (count, long, lean) in enumerate(((7, 0.5, 45), (5, 0.6, 20), (3, 0.6, 5))):
        for i in range(count):
            blade = lathe([(0.0, 0.0), (0.09, 0.04), (0.07, long * 0.5), (0.0, long)], 4).scaled(1, 1, 0.5)
            draft.add("leaves", green, blade.turned("x", lean).turned("y", 360 * i / count + 20 * ring).at(y=0.98))


def _watermelon(draft: Draft) -> None:
    rind, flesh = draft.tint(((60, 130, 70), (48, 110, 60))), draft.tint(((214, 60, 64), (226, 84, 84)))
    if draft.chance(0.5):
        draft.add("watermelon", rind, icosphere(1.0, 0.95, 1.25, 2))
        draft.add("stem", _STEM, link((0, 0, 0.6), (0.04, 0.06, 0.74), 0.03, 5))
        return
    draft.call("slice of watermelon", "watermelon slice", subclass="watermelon")
    draft.nouns = ["slice of watermelon", "watermelon slice"]
    for radius, thick, color in ((1.0, 0.3, rind), (0.92, 0.34, (226, 232, 206)), (0.84, 0.38, flesh)):
        outline = arc(radius, 180, 360, 12)[:, :2]
        draft.add("rind" if color == rind else "flesh", color, extrude(outline, thick))
    for i in range(6):
        a = np.radians(200 + 28 * i)
        for side in (-1, 1):
            seed = ball(0.06, 0.1, 0.05, 6, 4).at(0.55 * np.cos(a), 0.55 * np.sin(a), side * 0.19)
            draft.add("seed", (44, 36, 34), seed)


def _coconut(draft: Draft) -> None:
    shell = draft.tint(((104, 70, 46), (118, 80, 52)))
    if draft.chance(0.5):
        draft.add("coconut", shell, blob(draft.rng, 1.0, 1.0, 1.0, rough=0.03, level=2))
        for i in range(3):
            draft.add(
                "eye",
                (60, 40, 30),
                icosphere(0.14, 0.06, 0.14, 0).at(0.12 * np.sin(2.1 * i), 0.48, 0.12 * np.cos(2.1 * i)),
            )
        return
    draft.adjectives.append("half")
    bowl = [(0.0, 0.0), (0.3, 0.08), (0.48, 0.3), (0.52, 0.55), (0.44, 0.55), (0.4, 0.36), (0.25, 0.2), (0.0, 0.16)]
    draft.add("shell", shell, lathe(bowl, 12))
    draft.add(
        "flesh",
        (238, 236, 230),
        lathe([(0.0, 0.15), (0.3, 0.24), (0.44, 0.5), (0.36, 0.52), (0.2, 0.34), (0.0, 0.3)], 12),
    )


def _avocado(draft: Draft) -> None:
    skin, flesh = draft.tint(((60, 84, 44), (70, 100, 50))), draft.tint(((196, 206, 110), (180, 200, 100)))
    shape = [(0.0, -0.05), (0.3, 0.0), (0.44, 0.3), (0.34, 0.72), (0.18, 1.0), (0.0, 1.06)]
    whole = lathe(shape, 12)
    draft.adjectives.append("half")
    half = Solid(whole.vertices * np.array([1, 1, 1]), whole.faces)
    points = half.vertices.copy()
    points[:, 2] = np.where(points[:, 2] > 0, points[:, 2] * 0.08, points[:, 2])
    draft.add("skin", skin, Solid(points, half.faces))
    draft.add("flesh", flesh, whole.scaled(0.88, 0.92, 0.14).at(0, 0.04, 0.02))
    draft.add("stone", (134, 84, 48), icosphere(0.36, 0.4, 0.3, 1).at(0, 0.32, 0.06))
