"""Sinks, toilets, baths and trash cans."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import DARK_METAL, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import arc, bevel_box, box, cylinder, frustum, torus
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["bathtub", "sink", "toilet", "trash_can"]

_PORCELAIN: tuple[RGB, ...] = (WHITE, WHITE, (226, 228, 230), (206, 210, 214), (214, 196, 152), (148, 198, 236))


def _tap(draft: Draft, at: tuple[float, float, float], size: float) -> None:
    """A swan-necked tap with two handles that bends towards +z."""
    x, y, z = at
    metal = draft.tint(METAL)
    bend = arc(size * 0.35, 180, 20, 5)[:, [2, 1, 0]] + np.array([0.0, size * 0.6, size * 0.35])
    path = np.concatenate([np.zeros((1, 3)), bend]) + np.array([x, y, z])
    draft.add("tap", metal, tube(path, size * 0.09, 6))
    for side in (-1, 1):
        draft.add("tap", metal, cylinder(size * 0.11, size * 0.22, 8).at(x + side * size * 0.45, y + size * 0.1, z))


def sink(draft: Draft) -> None:
    """Wash basins on a pedestal, and kitchen sinks in a cupboard."""
    basin = draft.tint((*_PORCELAIN, *METAL[2:4]))
    (_washbasin if draft.chance(0.55) else _kitchen_sink)(draft, basin)


def _washbasin(draft: Draft, basin: RGB) -> None:
    draft.call("bathroom sink", "sink", subclass="sink")
    high = draft.between(0.75, 0.9)
    square = draft.chance(0.4)
    if square:
        sides, phase, wide = 4, 0.5, 0.5
    else:
        sides, phase, wide = 14, 0.0, 0.36
    bowl = [
        (wide * 0.4, 0.0),
        (wide * 0.95, 0.16),
        (wide, 0.22),
        (wide * 0.84, 0.22),
        (wide * 0.5, 0.06),
        (0.0, 0.05),
    ]
    shell = lathe([(0.0, 0.0), *bowl], sides, phase=phase).scaled(1.15, 1, 1)
    draft.add("basin", basin, shell.at(0, high, 0))
    draft.add("pedestal", basin, cylinder(0.15, high + 0.02, 10, top=0.12).at(0, high / 2, -0.02))
    draft.add("back", basin, box(0.5, 0.24, 0.16).at(0, high + 0.13, -0.36))
    _tap(draft, (0.0, high + 0.25, -0.34), 0.22)


def _kitchen_sink(draft: Draft, basin: RGB) -> None:
    wood = draft.tint((*WOOD, WHITE, *METAL))
    draft.call("kitchen sink", "sink", subclass="sink")
    wide, high, deep = draft.between(0.9, 1.3), 0.85, 0.62
    draft.add("body", wood, box(wide, high, deep).at(y=high / 2))
    for side, word in ((1, "left"), (-1, "right")):
        door = box(wide * 0.46, high * 0.84, 0.03).at(side * wide * 0.245, high * 0.48, deep / 2 + 0.01)
        draft.add(f"door {word}", wood, door)
        draft.add("handle", METAL[1], box(0.03, 0.16, 0.04).at(side * wide * 0.06, high * 0.6, deep / 2 + 0.035))
    rim, inner = 0.09, 0.14
    top = high + 0.05
    for sx in (-1, 1):
        draft.add("basin", basin, box(wide * 0.25, 0.1, deep * 1.03).at(sx * wide * 0.39, top, 0))
        draft.add("basin", basin, box(wide, 0.1, rim).at(0, top, sx * (deep / 2 - rim / 2 + 0.01)))
    draft.add("basin", basin, box(wide * 0.6, 0.04, deep * 0.9).at(0, top - inner * 0.2, 0))
    draft.add("basin", basin, box(wide, 0.1, 0.12).at(0, top, -deep / 2 + 0.1))
    _tap(draft, (0.0, top + 0.03, -deep / 2 + 0.1), 0.3)
    draft.having(2, "door")


def toilet(draft: Draft) -> None:
    """Toilets with a cistern, the lid down or up."""
    draft.call("toilet")
    color = draft.tint(_PORCELAIN) if draft.chance(0.85) else draft.tint(PAINT)
    seat = color if draft.chance(0.6) else draft.other((*WOOD, WHITE, *DARK_METAL), color)
    high = draft.between(0.38, 0.44)
    bowl = [
        (0.0, 0.0),
        (0.17, 0.0),
        (0.13, 0.12),
        (0.2, high * 0.75),
        (0.24, high),
        (0.17, high),
        (0.1, high * 0.7),
        (0.0, high * 0.6),
    ]
    draft.add("bowl", color, lathe(bowl, 14).scaled(0.95, 1, 1.3).at(0, 0, 0.12))
    draft.add("bowl", color, box(0.3, high * 0.9, 0.34).at(0, high * 0.45, -0.16))
    ring = torus(0.2, 0.09, 14, 4).scaled(0.95, 0.45, 1.3).at(0, high + 0.015, 0.12)
    draft.add("seat", seat, ring)
    opened = draft.chance(0.5)
    lid = cylinder(0.245, 0.03, 14).scaled(0.95, 1, 1.3)
    if opened:
        draft.add("lid", seat, lid.at(0, 0, 0.3).turned("x", -98).at(0, high + 0.03, -0.17))
    else:
        draft.add("lid", seat, lid.at(0, high + 0.05, 0.12))
    draft.adjectives.append("open" if opened else "closed")
    tank = draft.between(0.34, 0.44)
    draft.add("tank", color, bevel_box(0.46, tank, 0.2, 0.02).at(0, high + tank / 2, -0.34))
    draft.add("tank", color, box(0.5, 0.05, 0.24).at(0, high + tank + 0.02, -0.34))
    draft.add("button", draft.tint(METAL), cylinder(0.04, 0.03, 8).at(0, high + tank + 0.055, -0.34))


def bathtub(draft: Draft) -> None:
    """Bathtubs with thick walls and a tap at one end."""
    draft.call("bathtub", subclass="bathtub")
    color = draft.tint(_PORCELAIN)
    long, wide, high, wall = draft.between(1.5, 1.8), draft.between(0.7, 0.8), draft.between(0.45, 0.6), 0.08
    for side in (-1, 1):
        draft.add("tub", color, box(long, high, wall).at(0, high / 2, side * (wide - wall) / 2))
        draft.add("tub", color, box(wall * 1.6, high, wide).at(side * (long - wall * 1.6) / 2, high / 2, 0))
    draft.add("tub", color, box(long, 0.1, wide).at(y=0.05))
    if draft.chance(0.5):
        draft.add("water", (120, 184, 220), box(long - wall * 2, 0.06, wide - wall).at(y=high * 0.75))
        draft.features.append("full of water")
    metal = draft.tint(METAL)
    draft.add("tap", metal, box(0.06, 0.16, 0.06).at(-long / 2 + 0.08, high + 0.08, 0))
    draft.add("tap", metal, box(0.2, 0.05, 0.05).at(-long / 2 + 0.14, high + 0.15, 0))


def trash_can(draft: Draft) -> None:
    """Round cans, pedal bins, wheelie bins and open wire baskets."""
    kind = draft.pick(("can", "wheelie bin", "bin", "basket"))
    color = draft.tint((*METAL, *DARK_METAL, *PAINT[6:8], *PAINT[:6]))
    draft.call("trash can")
    high = draft.proportion(0.8, 1.25, ("short", "tall"))
    if kind == "wheelie bin":
        draft.call("wheelie bin", "trash can", subclass="trash can")
        draft.add("body", color, frustum((0.5, -0.26, 0.22), (0.62, -0.3, 0.34), 0.06, high))
        draft.add("lid", color, frustum((0.68, -0.36, 0.4), (0.6, -0.34, 0.3), high - 0.01, high + 0.1))
        for side in (-1, 1):
            wheel = cylinder(0.11, 0.08, 10).turned("z", 90).at(side * 0.24, 0.11, -0.27)
            draft.add("wheel", DARK_METAL[2], wheel)
        draft.add("handle", color, cylinder(0.035, 0.6, 6).turned("z", 90).at(0, high + 0.02, -0.4))
        draft.having(2, "wheel")
        return
    sides = draft.pick((10, 12, 16))
    if kind == "basket":
        profile = [(0.0, 0.0), (0.3, 0.0), (0.4, high), (0.36, high), (0.27, 0.05), (0.0, 0.05)]
        draft.add("body", color, lathe(profile, sides))
        draft.add("rim", color, torus(0.39, 0.07, sides, 5).at(y=high))
        draft.adjectives.append("open")
        return
    draft.add("body", color, cylinder(0.34, high, sides, top=0.4).at(y=high / 2))
    lid = color if kind == "can" else draft.other((*METAL, *DARK_METAL), color)
    for y in (0.25, 0.5, 0.75) if kind == "can" else ():
        draft.add("ring", color, torus(0.345 + 0.06 * y, 0.05, sides, 4).at(y=y * high))
    draft.add("lid", lid, lathe([(0.0, 0.0), (0.44, 0.0), (0.44, 0.06), (0.3, 0.16), (0.0, 0.2)], sides).at(y=high))
    handle = tube(arc(0.12, 0, 180, 5) * [1, 0.7, 1], 0.025, 5).at(y=high + 0.18)
    draft.add("handle", DARK_METAL[1], handle)
    for side in (-1, 1) if kind == "can" else ():
        draft.add("handle", DARK_METAL[1], box(0.05, 0.1, 0.2).at(side * 0.41, high * 0.7, 0))
    draft.features.append("with a lid")
