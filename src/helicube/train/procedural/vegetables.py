"""Vegetables and corn."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.decor import leaf_blade
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.primitives import ball, blob, cone, cylinder, icosphere, link
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["corn", "vegetable"]

_STEM: RGB = (110, 76, 48)
_GREEN: tuple[RGB, ...] = ((86, 150, 60), (72, 130, 52), (112, 170, 70), (60, 120, 56))


def vegetable(draft: Draft) -> None:
    """Carrots, tomatoes, pumpkins, aubergines, lettuces, onions, potatoes, peppers, broccoli, radishes, cucumbers."""
    makers = {
        "carrot": _carrot, "tomato": _tomato, "pumpkin": _pumpkin, "eggplant": _eggplant, "lettuce": _lettuce,
        "onion": _onion, "potato": _potato, "bell pepper": _pepper, "broccoli": _broccoli, "radish": _carrot,
        "cucumber": _cucumber, "chili pepper": _chili,
    }  # fmt: skip
    kind = draft.pick(tuple(makers))
    sub = kind if kind in {"carrot", "tomato", "pumpkin", "lettuce"} else "vegetable"
    draft.call(kind, "vegetable", subclass=sub)
    draft.wobble = 0.07
    makers[kind](draft)


def _tuft(draft: Draft, y: float, number: int, long: float) -> None:
    green = draft.tint(_GREEN)
    for i in range(number):
        blade = lathe([(0.0, 0.0), (0.05, 0.05), (0.08, long * 0.6), (0.0, long)], 5).turned("x", draft.between(8, 32))
        draft.add("leaves", green, blade.turned("y", 360 * i / number).at(y=y))


def _carrot(draft: Draft) -> None:
    carrot = draft.nouns[0] == "carrot"
    color = draft.tint(((236, 134, 44), (226, 116, 36)) if carrot else ((206, 60, 90), (190, 50, 80)))
    long, wide = (draft.proportion(0.9, 1.5, ("short", "long")), 0.22) if carrot else (0.6, 0.34)
    shape = [
        (0.0, 0.0),
        (wide * 0.35, long * 0.3),
        (wide * 0.85, long * 0.75),
        (wide, long * 0.92),
        (wide * 0.6, long),
        (0.0, long),
    ]
    draft.add("root", color, lathe(shape, 8))
    _tuft(draft, long - 0.03, draft.count(4, 6), draft.between(0.35, 0.6))
    draft.features.append("with green leaves" if color != draft.pieces[-1].color else "with leaves")


def _tomato(draft: Draft) -> None:
    red = draft.tint(((204, 50, 40), (220, 66, 46), (226, 120, 40)))
    draft.add("tomato", red, icosphere(1.0, 0.8, 1.0, 2))
    green = draft.tint(_GREEN)
    for i in range(5):
        draft.add("leaf", green, leaf_blade(0.34, 0.14, 0.3).turned("x", 12).turned("y", 72 * i).at(y=0.37))
    draft.add("stem", green, cylinder(0.04, 0.16, 5).at(y=0.44))


def _pumpkin(draft: Draft) -> None:
    orange = draft.tint(((226, 124, 40), (236, 140, 50), (206, 104, 36)))
    ribs = draft.count(7, 9)
    high = draft.between(0.7, 0.95)
    for i in range(ribs):
        draft.add("pumpkin", orange, ball(0.52, high, 0.62, 8, 8).at(z=0.26).turned("y", 360 * i / ribs))
    draft.add("stem", (96, 110, 56), cylinder(0.1, 0.26, 6, top=0.06).turned("z", 12).at(y=high * 0.5))
    if draft.chance(0.3):
        dark: RGB = (54, 36, 26)
        for side in (-1, 1):
            draft.add("eyes", dark, cone(0.1, 0.18, 3).at(side * 0.18, 0.12, 0.54))
        draft.add("mouth", dark, ball(0.44, 0.12, 0.12, 8, 4).at(0, -0.14, 0.54))
        draft.call("jack-o-lantern", "carved pumpkin", "pumpkin", subclass="pumpkin")


def _eggplant(draft: Draft) -> None:
    purple = draft.tint(((84, 44, 100), (96, 50, 116)))
    shape = [(0.0, 0.0), (0.24, 0.06), (0.36, 0.35), (0.28, 0.75), (0.18, 1.05), (0.0, 1.12)]
    draft.add("eggplant", purple, lathe(shape, 10).bent(draft.between(-30, 30)))
    top = draft.pieces[0].solid.vertices
    tip = top[np.argmax(top[:, 1])]
    draft.add(
        "stem",
        draft.tint(_GREEN),
        cone(0.22, 0.2, 6).at(*(tip - np.array([0, 0.02, 0]))),
        cylinder(0.04, 0.3, 5).at(*(tip + np.array([0, 0.1, 0]))),
    )


def _lettuce(draft: Draft) -> None:
    color = draft.tint(((140, 190, 90), (112, 170, 70), (150, 90, 130)))
    draft.call(*(("cabbage", "vegetable") if draft.chance(0.4) else ("lettuce", "vegetable")), subclass="lettuce")
    draft.add("head", color, blob(draft.rng, 0.8, 0.76, 0.8, rough=0.08))
    for ring in range(2):
        for i in range(5):
            leaf = (
                ball(0.72, 0.62, 0.16, 8, 4).turned("x", 28 + 22 * ring).at(0, -0.04 - 0.08 * ring, 0.36 + 0.08 * ring)
            )
            draft.add("leaves", color, leaf.turned("y", 72 * i + 36 * ring))


def _onion(draft: Draft) -> None:
    skin = draft.tint(((206, 150, 90), (150, 70, 100), (232, 224, 204)))
    shape = [(0.0, 0.0), (0.26, 0.06), (0.5, 0.35), (0.42, 0.68), (0.14, 0.88), (0.07, 1.05), (0.0, 1.12)]
    draft.add("onion", skin, lathe(shape, 12))
    for i in range(5):
        draft.add("root", (222, 206, 170), cylinder(0.015, 0.14, 4).at(0, -0.04, 0.04).turned("y", 72 * i))


def _potato(draft: Draft) -> None:
    skin = draft.tint(((176, 136, 88), (196, 156, 100), (150, 110, 72)))
    for i in range(draft.pick((1, 1, 3))):
        at = ((0, 0, 0), (0.62, -0.06, 0.42), (-0.5, -0.04, 0.5))[i]
        draft.add("potato", skin, blob(draft.rng, 1.0, 0.66, 0.7, rough=0.08).turned("y", 50 * i).at(*at))
    if len(draft.pieces) > 1:
        draft.call("three potatoes", subclass="vegetable")
        draft.nouns = ["pile of three potatoes", "pile of potatoes"]


def _pepper(draft: Draft) -> None:
    color = draft.tint(((204, 44, 40), (240, 200, 60), (86, 150, 60), (236, 134, 44)))
    for i in range(4):
        lobe = lathe([(0.0, 0.0), (0.16, 0.05), (0.3, 0.5), (0.28, 0.85), (0.1, 1.0), (0.0, 0.98)], 8)
        draft.add("pepper", color, lobe.at(z=0.2).turned("y", 90 * i))
    draft.add("stem", (72, 130, 52), cylinder(0.06, 0.26, 6, top=0.09).at(y=1.02), cylinder(0.2, 0.06, 8).at(y=0.96))


def _broccoli(draft: Draft) -> None:
    green, stalk = draft.tint(((60, 120, 56), (72, 130, 52))), draft.tint(((140, 180, 100), (150, 190, 110)))
    draft.add("stem", stalk, cylinder(0.18, 0.6, 8, top=0.22).at(y=0.3))
    for i in range(8):
        a, ring = 2 * np.pi * i / 7, 0.0 if i == 7 else 0.38
        at = (ring * np.sin(a), 0.78 if i < 7 else 0.98, ring * np.cos(a))
        draft.add("head", green, blob(draft.rng, 0.5, 0.46, 0.5, rough=0.18).at(*at))
        if i < 7:
            draft.add("stem", stalk, link((0, 0.45, 0), (at[0] * 0.9, 0.72, at[2] * 0.9), 0.07, 5))


def _cucumber(draft: Draft) -> None:
    green = draft.tint(((60, 120, 56), (72, 140, 60)))
    x = np.linspace(-0.8, 0.8, 7)
    path = np.stack([x, 0.12 * x**2, 0 * x], axis=1)
    draft.add("cucumber", green, tube(path, [0.08, 0.17, 0.2, 0.21, 0.2, 0.17, 0.08], 8))
    draft.add("stem", _STEM, link(path[-1], path[-1] + np.array([0.12, 0.05, 0]), 0.04, 5))


def _chili(draft: Draft) -> None:
    red = draft.tint(((204, 40, 40), (86, 150, 60), (236, 134, 44)))
    t = np.linspace(0, 1, 7)
    path = np.stack([0.25 * np.sin(2.2 * t), 1.3 * (1 - t), 0 * t], axis=1)
    draft.add("pepper", red, tube(path, [0.14, 0.19, 0.18, 0.15, 0.11, 0.07, 0.01], 7))
    draft.add(
        "stem",
        (72, 130, 52),
        cylinder(0.16, 0.1, 7, top=0.1).at(y=1.34),
        tube([(0, 1.36, 0), (0.02, 1.5, 0), (0.1, 1.6, 0)], 0.04, 5),
    )


def corn(draft: Draft) -> None:
    """Corn on the cob with or without its husk, and corn plants."""
    yellow, green = draft.tint(((240, 204, 70), (236, 190, 60))), draft.tint(_GREEN)
    draft.call("corn", subclass="corn")
    if draft.chance(0.4):
        draft.call("corn plant", "corn", subclass="corn")
        high = draft.proportion(1.4, 2.2, ("short", "tall"))
        draft.add("stem", green, cylinder(0.05, high, 6, top=0.03).at(y=high / 2))
        for i in range(draft.count(6, 9)):
            blade = leaf_blade(draft.between(0.6, 0.9), 0.16, 0.9).turned("y", 137 * i).at(y=high * (0.1 + 0.1 * i))
            draft.add("leaves", green, blade)
        for i in range(draft.count(1, 3)):
            ear = lathe([(0.0, 0.0), (0.09, 0.06), (0.11, 0.3), (0.06, 0.5), (0.0, 0.54)], 8).turned("x", 24)
            draft.add("cob", yellow, ear.at(0, 0, 0.04).turned("y", 120 * i).at(y=high * (0.42 + 0.14 * i)))
        return
    long = draft.proportion(1.0, 1.5, ("short", "long"))
    draft.call("cob of corn", "corn", subclass="corn")
    draft.add(
        "cob",
        yellow,
        lathe([(0.0, 0.0), (0.22, 0.04), (0.26, long * 0.35), (0.2, long * 0.8), (0.08, long), (0.0, long)], 10),
    )
    rows = 6
    for k in range(rows):
        y = long * (0.12 + 0.12 * k)
        radius = float(np.interp(y, (0.0, long * 0.35, long * 0.8), (0.23, 0.265, 0.205)))
        draft.add("cob", yellow, cylinder(radius * 1.06, long * 0.085, 10, phase=0.5 * (k % 2)).at(y=y))
    if draft.chance(0.75):
        for i in range(4):
            husk = (
                ball(0.34, long * 0.8, 0.1, 6, 6).at(0, long * 0.3, 0).turned("x", draft.between(6, 20)).at(0, 0, 0.2)
            )
            draft.add("husk", green, husk.turned("y", 90 * i + 45))
        draft.features.append("with a husk")
    draft.add("stem", green, cylinder(0.07, 0.3, 6).at(y=-0.12))
