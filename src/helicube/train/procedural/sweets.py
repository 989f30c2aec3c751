"""Cakes, other desserts and ice cream."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import PAINT, RGB, WHITE
from helicube.train.procedural.primitives import (
    arc,
    bevel_box,
    blob,
    box,
    capsule,
    cone,
    cylinder,
    icosphere,
    rounded_slab,
    torus,
)
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, tube

__all__ = ["dessert", "ice_cream", "sector"]

_DOUGH: tuple[RGB, ...] = ((214, 160, 96), (196, 140, 84), (226, 176, 110), (176, 120, 70))
_CREAM: tuple[RGB, ...] = (
    (236, 140, 176),
    (240, 226, 196),
    WHITE,
    (110, 70, 46),
    (148, 198, 236),
    (168, 214, 136),
    (240, 214, 120),
    (142, 88, 190),
)
_RED: RGB = (204, 44, 48)


def sector(radius: float, degrees: float, thick: float) -> Solid:
    """A slice of a disk in the x-z plane with its tip at the origin, centred on +z, from y = 0 to `thick`."""
    curve = arc(radius, 90 - degrees / 2, 90 + degrees / 2, 6)[:, :2]
    return extrude(np.concatenate([[(0.0, 0.0)], curve]), thick).turned("x", 90).at(y=thick / 2)


def dessert(draft: Draft) -> None:
    """Cakes, slices of cake, cupcakes, donuts, cookies, pies, candy, pancakes, puddings."""
    makers = {
        "cake": _cake, "slice of cake": _slice, "cupcake": _cupcake, "donut": _donut, "cookie": _cookie, "pie": _pie,
        "lollipop": _lollipop, "pancakes": _pancakes, "muffin": _cupcake, "candy cane": _candy_cane,
    }  # fmt: skip
    kind = draft.pick(tuple(makers))
    sub = {"slice of cake": "cake", "lollipop": "candy", "candy cane": "candy", "muffin": "cupcake"}.get(kind, kind)
    draft.call(kind, "dessert", subclass=sub)
    draft.wobble = 0.06
    makers[kind](draft)


def _cake(draft: Draft) -> None:
    cream = draft.tint(_CREAM)
    dough = draft.other(((214, 160, 96), (110, 70, 46), (236, 210, 160)), cream)
    tiers = draft.count(1, 3)
    y, radius = 0.0, 0.75
    for _ in range(tiers):
        high = draft.between(0.36, 0.5)
        draft.add("cake", dough, cylinder(radius, high, 16).at(y=y + high / 2))
        draft.add("icing", cream, cylinder(radius * 1.03, high * 0.36, 16).at(y=y + high * 0.84))
        drops = 10
        for i in range(drops):
            drop = capsule(0.09, 0.3, 6).at(0, y + high * 0.68, radius * 0.97).turned("y", 360 * i / drops)
            draft.add("icing", cream, drop)
        y, radius = y + high, radius * 0.68
    if tiers > 1:
        draft.having(tiers, "tier")
    top = draft.pick(("cherries", "candles", "strawberry"))
    number = draft.count(3, 6)
    rim = radius / 0.68 * 0.6
    for i in range(number):
        a = 2 * np.pi * i / number
        at = (rim * np.sin(a), y + 0.1, rim * np.cos(a))
        if top == "candles":
            draft.add("candle", draft.pick(PAINT[:6]), cylinder(0.04, 0.34, 6).at(at[0], y + 0.16, at[2]))
            draft.add("flame", (248, 190, 60), icosphere(0.08, 0.14, 0.08, 0).at(at[0], y + 0.38, at[2]))
        else:
            draft.add("cherry", _RED, icosphere(0.2, 0.2, 0.2, 1).at(*at))
    draft.features.append("with candles" if top == "candles" else "with cherries on top")


def _slice(draft: Draft) -> None:
    cream = draft.tint(_CREAM)
    dough = draft.other(((214, 160, 96), (110, 70, 46), (236, 210, 160)), cream)
    for i, (thick, color) in enumerate(((0.24, dough), (0.08, cream), (0.24, dough), (0.1, cream))):
        y = (0.0, 0.24, 0.32, 0.56)[i]
        draft.add(
            "icing" if color == cream else "cake", color, sector(1.0 + 0.02 * (color == cream), 48, thick).at(y=y)
        )
    draft.add("cherry", _RED, icosphere(0.22, 0.22, 0.22, 1).at(0, 0.74, 0.7))


def _cupcake(draft: Draft) -> None:
    muffin = draft.nouns[0] == "muffin"
    paper = draft.tint((*PAINT, (214, 160, 96)))
    cream = draft.other(_CREAM if not muffin else _DOUGH, paper)
    draft.add("cup", paper, cylinder(0.36, 0.5, 12, top=0.5).at(y=0.25))
    if muffin:
        draft.add("top", cream, lathe([(0.5, 0.48), (0.62, 0.58), (0.5, 0.8), (0.25, 0.92), (0.0, 0.95)], 12))
    else:
        for i, (radius, y) in enumerate(((0.46, 0.56), (0.36, 0.72), (0.24, 0.87))):
            draft.add("icing", cream, torus(radius * 0.62, radius * 0.85, 12, 6).turned("y", 20 * i).at(y=y))
        draft.add("icing", cream, cone(0.18, 0.3, 8).at(y=1.02))
        if draft.chance(0.5):
            draft.add("cherry", _RED, icosphere(0.22, 0.22, 0.22, 1).at(y=1.2))
            draft.features.append("with a cherry on top")


def _donut(draft: Draft) -> None:
    dough = draft.tint(_DOUGH)
    glaze = draft.other(_CREAM, dough)
    draft.add("dough", dough, torus(0.6, 0.56, 18, 8))
    draft.add("glaze", glaze, torus(0.6, 0.54, 18, 8).scaled(1.01, 0.66, 1.01).at(y=0.13))
    if draft.chance(0.7):
        for i in range(16):
            a, radius = 2.4 * i, 0.6 + 0.13 * (-1) ** i
            sprinkle = box(0.12, 0.035, 0.035).turned("y", 70 * i).at(radius * np.sin(a), 0.3, radius * np.cos(a))
            draft.add("sprinkles", draft.pick(PAINT[:10]), sprinkle)
        draft.features.append("with sprinkles")
    draft.having_colored("icing", glaze)


def _cookie(draft: Draft) -> None:
    dough = draft.tint(_DOUGH)
    draft.add("cookie", dough, lathe([(0.0, 0.0), (0.85, 0.0), (0.95, 0.08), (0.8, 0.17), (0.0, 0.2)], 14))
    for i in range(9):
        a, radius = 2.4 * i, 0.26 * float(np.sqrt(i + 0.5))
        draft.add(
            "chocolate", (84, 54, 36), icosphere(0.2, 0.14, 0.2, 0).at(radius * np.sin(a), 0.18, radius * np.cos(a))
        )
    draft.features.append("with chocolate chips")


def _pie(draft: Draft) -> None:
    crust, fill = draft.tint(_DOUGH), draft.pick((_RED, (150, 60, 90), (226, 160, 60)))
    draft.add("crust", crust, lathe([(0.0, 0.0), (0.62, 0.0), (0.82, 0.3), (0.0, 0.3)], 16))
    draft.add("filling", fill, cylinder(0.76, 0.08, 16).at(y=0.31))
    draft.add("crust", crust, torus(0.79, 0.14, 16, 6).at(y=0.33))
    for i in range(3):
        x = (i - 1) * 0.42
        long = 2 * float(np.sqrt(0.76**2 - x * x))
        draft.add("crust", crust, box(0.13, 0.05, long).at(x, 0.37, 0), box(long, 0.05, 0.13).at(0, 0.39, x))


def _lollipop(draft: Draft) -> None:
    color = draft.tint(PAINT[:12])
    second = draft.other((WHITE, *PAINT), color)
    draft.add("candy", color, cylinder(0.5, 0.22, 18).turned("x", 90).at(y=1.3))
    t = np.linspace(0.6, 4.2 * np.pi, 40)
    path = np.stack([0.034 * t * np.cos(t), 1.3 + 0.034 * t * np.sin(t), 0 * t], axis=1)
    draft.add("swirl", second, tube(path + np.array([0, 0, 0.1]), 0.045, 5))
    draft.add("stick", WHITE, cylinder(0.05, 1.0, 8).at(y=0.4))
    draft.features.append("on a stick")


def _pancakes(draft: Draft) -> None:
    dough = draft.tint(_DOUGH)
    number = draft.count(3, 6)
    draft.nouns = ["stack of pancakes", "stack of pancakes"]
    for i in range(number):
        at = (draft.between(-0.04, 0.04), 0.1 + 0.15 * i, draft.between(-0.04, 0.04))
        draft.add(
            "pancake", dough, lathe([(0.0, -0.07), (0.62, -0.07), (0.7, 0.0), (0.62, 0.07), (0.0, 0.07)], 14).at(*at)
        )
    top = 0.1 + 0.15 * number - 0.08
    draft.add("syrup", (150, 84, 40), cylinder(0.48, 0.05, 12).at(y=top + 0.01))
    draft.add("butter", (244, 220, 120), bevel_box(0.28, 0.12, 0.28, 0.03).at(y=top + 0.09))


def _candy_cane(draft: Draft) -> None:
    color = draft.pick((_RED, (64, 160, 76), (236, 140, 176)))
    curve = arc(0.28, 0, 200, 8) + np.array([-0.28, 1.1, 0])
    path = np.concatenate(
        [np.stack([0 * np.linspace(0, 1, 9), np.linspace(0, 1.05, 9), 0 * np.linspace(0, 1, 9)], 1), curve]
    )
    for i in range(0, len(path) - 2, 2):
        draft.add("cane", WHITE if i % 4 else color, tube(path[i : i + 3], 0.12, 8))


def ice_cream(draft: Draft) -> None:
    """Cones with one to three scoops, ice lollies, sundaes in a cup."""
    kind = draft.pick(("cone", "cone", "lolly", "cup"))
    draft.call("ice cream")
    flavours = [draft.tint(_CREAM) for _ in range(3)]
    if kind == "lolly":
        draft.call("popsicle", "ice cream", subclass="ice cream")
        color = flavours[0]
        outline = np.concatenate([[(-0.36, 0.0), (0.36, 0.0)], arc(0.36, 0, 180, 8)[:, :2] + np.array([0, 0.75])])
        draft.add("ice", color, extrude(outline, 0.3))
        draft.add("stick", (222, 190, 146), rounded_slab(0.16, 0.08, 0.6, 0.07).turned("x", 90).at(y=-0.25))
        if draft.chance(0.4):
            draft.add("ice", draft.other(_CREAM, color), box(0.74, 0.26, 0.32).at(y=0.14))
        return
    scoops = draft.count(1, 3)
    if kind == "cone":
        waffle = draft.tint(((214, 160, 96), (196, 140, 84)))
        draft.add("cone", waffle, cylinder(0.03, 1.0, 10, top=0.38).at(y=-0.5))
        draft.add("cone", waffle, torus(0.37, 0.08, 10, 5).at(y=-0.02))
        draft.call("ice cream cone", "ice cream", subclass="ice cream")
    else:
        cup = draft.tint((WHITE, *PAINT[:12]))
        draft.add("cup", cup, cylinder(0.32, 0.5, 12, top=0.5).at(y=-0.25))
        draft.call("cup of ice cream", "ice cream", subclass="ice cream")
    spots = (
        ((0, 0.26, 0), (0, 0.74, 0), (0, 1.16, 0))
        if kind == "cone"
        else ((-0.2, 0.14, 0.1), (0.22, 0.14, 0.1), (0.0, 0.2, -0.2))
    )
    for i in range(scoops):
        size = 0.84 - 0.1 * i if kind == "cone" else 0.58
        draft.add("scoop", flavours[i], blob(draft.rng, size, size, size, rough=0.05, level=1).at(*spots[i]))
    draft.having(scoops, "scoop")
    if draft.chance(0.35):
        x, y, z = spots[scoops - 1]
        draft.add("cherry", _RED, icosphere(0.2, 0.2, 0.2, 1).at(x, y + 0.4, z))
        draft.features.append("with a cherry")
