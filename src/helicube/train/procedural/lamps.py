"""Lamps, lanterns, candles, torches and campfires."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import (
    BARK,
    BRASS,
    CLOTH,
    DARK_METAL,
    GOLD,
    LIGHT,
    METAL,
    PAINT,
    RGB,
    STONE,
    WHITE,
    WOOD,
)
from helicube.train.procedural.primitives import arc, ball, box, cone, cylinder, icosphere, link, rock, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["campfire", "candle", "flame", "lamp", "torch"]

_FIRE: tuple[RGB, ...] = ((236, 134, 44), (248, 190, 60), (226, 90, 40))


def lamp(draft: Draft) -> None:
    """Table, floor, desk and ceiling lamps, and lanterns."""
    kind = draft.pick(("table lamp", "table lamp", "floor lamp", "desk lamp", "lantern", "ceiling lamp"))
    sub = {"lantern": "lantern", "ceiling lamp": "ceiling light"}.get(kind, "lamp")
    draft.call(kind, "lamp", subclass=sub)
    if kind == "lantern":
        _lantern(draft)
    elif kind == "desk lamp":
        _desk_lamp(draft)
    elif kind == "ceiling lamp":
        _ceiling_lamp(draft)
    else:
        _shade_lamp(draft, tall=kind == "floor lamp")


def _shade_lamp(draft: Draft, *, tall: bool) -> None:
    shade = draft.tint((*LIGHT, *CLOTH, *PAINT))
    stand = draft.other((*METAL, *DARK_METAL, *WOOD, *PAINT, BRASS), shade)
    high = draft.between(1.2, 1.6) if tall else draft.proportion(0.35, 0.8, ("short", "tall"))
    radius = draft.between(0.24, 0.32)
    size = draft.between(0.26, 0.42)
    draft.add("base", stand, cylinder(radius * 0.7, 0.06, 14, top=radius * 0.6).at(y=0.03))
    if tall and draft.chance(0.3):
        for i in range(3):
            a = 2 * np.pi * i / 3
            draft.add("leg", stand, link((0.3 * np.sin(a), 0, 0.3 * np.cos(a)), (0, high, 0), 0.025))
        draft.pieces.pop(0)
        draft.having(3, "leg")
    elif tall or draft.chance(0.4):
        draft.add("stand", stand, cylinder(0.03, high, 8).at(y=high / 2))
    else:
        belly = draft.between(0.1, 0.18)
        shape = ((0.08, 0.05), (belly, high * 0.3), (belly * 0.8, high * 0.55), (0.04, high * 0.8), (0.04, high))
        draft.add("stand", stand, lathe(shape, 10))
    form = draft.pick(("cone", "cone", "drum", "square", "globe"))
    y = high + size * 0.3
    if form == "globe":
        draft.add("shade", shade, icosphere(size * 1.3, size * 1.3, size * 1.3, 2).at(y=y + size * 0.2))
    elif form == "square":
        draft.add("shade", shade, cylinder(radius * 1.3, size, 4, top=radius * 0.8).at(y=y))
    else:
        top = radius * (0.95 if form == "drum" else draft.between(0.4, 0.7))
        draft.add("shade", shade, cylinder(radius, size, 14, top=top).at(y=y))
    word = "globe" if form == "globe" else "shade"
    draft.features.append(f"with a {word}")


def _desk_lamp(draft: Draft) -> None:
    color = draft.tint((*PAINT, *METAL))
    joint = draft.other((*METAL, *DARK_METAL), color)
    draft.add("base", color, cylinder(0.22, 0.06, 14, top=0.19).at(y=0.03))
    elbow = np.array([0.0, draft.between(0.35, 0.5), -0.22])
    top = elbow + np.array([0, draft.between(0.25, 0.4), 0.35])
    draft.add("arm", joint, link((0, 0.04, 0), elbow, 0.025), link(elbow, top, 0.025))
    draft.add("arm", color, icosphere(0.09, 0.09, 0.09, 1).at(*elbow))
    shade = cylinder(0.17, 0.24, 12, top=0.06).at(y=-0.08).turned("x", -35).at(*(top + np.array([0, 0.0, 0.05])))
    bulb = icosphere(0.16, 0.16, 0.16, 1).at(y=-0.2).turned("x", -35).at(*(top + np.array([0, 0.0, 0.05])))
    draft.add("shade", color, shade)
    draft.add("bulb", LIGHT[1], bulb)


def _lantern(draft: Draft) -> None:
    frame = draft.tint((*DARK_METAL, BRASS, *METAL, *PAINT))
    sides = draft.pick((4, 6, 8))
    high = draft.between(0.5, 0.75)
    draft.add("base", frame, cylinder(0.32, 0.1, sides, top=0.28).at(y=0.05))
    draft.add("glass", draft.tint(LIGHT), cylinder(0.22, high, sides).at(y=0.1 + high / 2))
    for i in range(sides):
        post = cylinder(0.028, high, 4).at(0, 0.1 + high / 2, 0.24).turned("y", 360 * (i + 0.5) / sides)
        draft.add("frame", frame, post)
    draft.add("roof", frame, cylinder(0.34, 0.2, sides, top=0.08).at(y=0.2 + high))
    ring = torus(0.1, 0.04, 10, 5).turned("x", 90).at(y=high + 0.38)
    draft.add("handle", frame, ring)


def _ceiling_lamp(draft: Draft) -> None:
    shade = draft.tint((*PAINT, *METAL, *LIGHT))
    cord = draft.other((*DARK_METAL, BRASS), shade)
    long = draft.between(0.4, 0.9)
    draft.add("base", cord, cylinder(0.16, 0.06, 12).at(y=long + 0.3))
    draft.add("cord", cord, cylinder(0.025, long, 6).at(y=long / 2 + 0.27))
    if draft.chance(0.6):
        profile = [(0.0, 0.2), (0.36, 0.0), (0.39, 0.0), (0.28, 0.18), (0.07, 0.3), (0.0, 0.3)]
        draft.add("shade", shade, lathe(profile, 14))
        draft.add("bulb", LIGHT[1], icosphere(0.18, 0.18, 0.18, 1).at(y=0.08))
    else:
        draft.add("shade", shade, icosphere(0.55, 0.55, 0.55, 2).at(y=0.08))
        draft.adjectives.append("round")


def flame(size: float) -> tuple[Solid, Solid]:
    """An outer and an inner tongue of fire, standing on y = 0."""
    shape = ((0.0, 0.0), (0.28, 0.18), (0.3, 0.38), (0.16, 0.7), (0.0, 1.0))
    outer = lathe([(r * size, y * size) for r, y in shape], 7)
    return outer, outer.scaled(1.06, 0.55, 1.06).at(y=-0.01 * size)


def candle(draft: Draft) -> None:
    """Single candles, candles in holders, candelabra."""
    wax = draft.tint((WHITE, (232, 222, 196), (200, 52, 48), (236, 214, 150), *CLOTH[:4]))
    draft.call("candle")
    high, radius = draft.proportion(0.4, 1.1, ("short", "tall")), draft.between(0.1, 0.2)
    holder = draft.pick(("none", "dish", "stick", "candelabra"))
    metal = draft.other((*GOLD, *METAL, *DARK_METAL), wax)
    spots = [(0.0, 0.0)]
    if holder == "dish":
        _dish(draft, metal)
    elif holder != "none":
        stem = draft.between(0.6, 1.0)
        _stick(draft, metal, stem)
        if holder == "candelabra":
            radius, high = 0.075, draft.between(0.3, 0.45)
            spots += [(-0.5, 0.0), (0.5, 0.0)]
            _arms(draft, metal)
    lit = draft.chance(0.75)
    for x, z in spots:
        draft.add("candle", wax, cylinder(radius, high, 10).at(x, high / 2, z))
        draft.add("wick", DARK_METAL[2], cylinder(0.02, 0.12, 5).at(x, high + 0.05, z))
        if lit:
            outer, inner = flame(0.34)
            draft.add("flame", _FIRE[1], outer.at(x, high + 0.05, z))
            draft.add("flame", _FIRE[0], inner.at(x, high + 0.05, z))
    if lit:
        draft.adjectives.append("lit")


def _dish(draft: Draft, metal: RGB) -> None:
    profile = [(0.0, -0.06), (0.3, -0.06), (0.42, 0.04), (0.4, 0.07), (0.28, 0.0), (0.0, 0.0)]
    draft.add("holder", metal, lathe(profile, 14))
    loop = torus(0.11, 0.05, 10, 5).turned("x", 90).at(0.48, 0.02)
    draft.add("holder", metal, loop)
    draft.features.append("in a holder")


def _stick(draft: Draft, metal: RGB, stem: float) -> None:
    base = [(0.0, -stem), (0.32, -stem), (0.28, -stem + 0.07), (0.06, -stem + 0.14)]
    draft.add("holder", metal, lathe([*base, (0.05, -0.1), (0.16, 0.0), (0.0, 0.0)], 10))


def _arms(draft: Draft, metal: RGB) -> None:
    """Two arms of a candelabra beside its stick."""
    draft.call("candelabra", "candle", subclass="candle")
    draft.having(3, "candle")
    for side in (1, -1):
        path = (arc(0.25, 180, 360, 6) + np.array([0.25, 0, 0])) * np.array([side, 1, 1])
        draft.add("holder", metal, tube(path + np.array([0, -0.05, 0]), 0.04, 6))
        draft.add("holder", metal, cylinder(0.06, 0.1, 8, top=0.12).at(side * 0.5, -0.03))


def torch(draft: Draft) -> None:
    """Hand torches and torches on a wall bracket."""
    wood, metal = draft.tint(WOOD), draft.tint((*DARK_METAL, *METAL))
    draft.call("torch")
    draft.material = "wooden"
    long = draft.proportion(0.8, 1.5, ("short", "long"))
    thick = draft.between(0.07, 0.1)
    stick = [cylinder(thick * 0.7, long, 7, top=thick).at(y=long / 2)]
    head = [cylinder(thick * 1.3, 0.2, 8, top=thick * 1.9).at(y=long + 0.05)]
    outer, inner = flame(draft.between(0.5, 0.7))
    tilt = draft.between(15, 30) if draft.chance(0.35) else 0.0
    lit = draft.chance(0.85)
    for part, color, solids in (("handle", wood, stick), ("head", metal, head)):
        draft.add(part, color, *[solid.turned("x", tilt) for solid in solids])
    if lit:
        top = float(np.cos(np.radians(tilt))) * (long + 0.12), float(np.sin(np.radians(tilt))) * (long + 0.12)
        draft.add("flame", _FIRE[0], outer.at(0, top[0] - 0.05, top[1]))
        draft.add("flame", _FIRE[1], inner.at(0, top[0] - 0.05, top[1]))
        draft.adjectives.append("burning")
    if tilt:
        draft.call("wall torch", "torch", subclass="torch")
        draft.add("bracket", metal, box(0.3, 0.5, 0.06).at(0, long * 0.35, -0.08))
        draft.add("bracket", metal, box(0.1, 0.1, 0.3).at(0, long * 0.45, 0.04))


def campfire(draft: Draft) -> None:
    """Logs in a ring of stones, burning or cold; some with a pot over them."""
    draft.call("campfire")
    bark, grey = draft.tint(BARK), draft.tint(STONE)
    number = draft.count(3, 6)
    for i in range(number):
        log = link((0, 0.06, 0.42), (0, 0.42, 0.0), 0.07, 7, top=0.055).turned("y", 360 * i / number)
        draft.add("log", bark, log)
    if draft.chance(0.75):
        stones = draft.count(7, 11)
        for i in range(stones):
            size = draft.between(0.2, 0.28)
            shape = rock(draft.rng, size, size * 0.8, size, cuts=3).at(z=0.62).turned("y", 360 * i / stones)
            draft.add("stone", grey, shape)
        draft.features.append("with stones around it")
    if draft.chance(0.85):
        outer, inner = flame(draft.between(0.6, 0.9))
        draft.add("flame", _FIRE[0], outer)
        draft.add("flame", _FIRE[1], inner)
        for i in range(draft.count(2, 4)):
            tongue, _ = flame(draft.between(0.35, 0.55))
            draft.add("flame", _FIRE[i % 3], tongue.at(z=0.16).turned("y", 100 * i + 30))
        draft.adjectives.append("burning")
    if draft.chance(0.2):
        for i in range(3):
            leg = link((0, 0, 0.75), (0, 1.35, 0), 0.035, 6).turned("y", 120 * i + 60)
            draft.add("tripod", bark, leg)
        draft.add("pot", DARK_METAL[0], ball(0.44, 0.36, 0.44, 10, 6).at(y=0.85))
        draft.add("pot", DARK_METAL[0], cylinder(0.012, 0.4, 4).at(y=1.15), cone(0.05, 0.06, 6).at(y=1.0))
        draft.features.append("with a pot over it")
