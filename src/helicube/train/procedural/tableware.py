"""Cups, bowls, plates, bottles, pots, potions and cans."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft, drawn_from
from helicube.train.procedural.palette import BLACK, DARK_METAL, LEAF, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import arc, cylinder, icosphere, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["bottle", "bowl", "can", "cup", "plate", "pot", "potion"]

_CERAMIC: tuple[RGB, ...] = (WHITE, (226, 222, 210), *PAINT)
_DRINK: tuple[RGB, ...] = ((84, 54, 36), (206, 150, 70), (170, 60, 50), (226, 214, 190))


def _vessel(outer: list[tuple[float, float]], wall: float, floor: float) -> list[tuple[float, float]]:
    """Close an outer profile (bottom to rim) by an inner one at a distance of `wall`, down to y = `floor`."""
    inner = [(r - wall, max(y, floor)) for r, y in outer[::-1] if y > floor * 1.2]
    return [(0.0, outer[0][1]), *outer, *inner, (inner[-1][0] * 0.98, floor), (0.0, floor)]


def _handle(color_radius: float, height: float, thick: float) -> Solid:
    """A C-shaped handle at x = `color_radius`, centred at y = 0."""
    path = arc(height / 2, -100, 100, 7) * np.array([0.75, 1.0, 1.0])
    return tube(path + np.array([color_radius, 0, 0]), thick, 6)


def cup(draft: Draft) -> None:
    """Mugs, tea cups with saucers, tumblers and goblets."""
    kind = draft.pick(("mug", "mug", "tea cup", "cup", "wine glass"))
    if kind == "wine glass":
        _goblet(draft)
        return
    draft.call(kind, *(() if kind == "cup" else ("cup",)), subclass={"tea cup": "cup"}.get(kind, kind))
    color = draft.tint(_CERAMIC)
    high = draft.proportion(0.7, 1.2, ("short", "tall")) if kind != "tea cup" else draft.between(0.5, 0.65)
    radius = draft.between(0.38, 0.46)
    foot = radius * (draft.between(0.85, 1.0) if kind == "mug" else draft.between(0.5, 0.75))
    profile = [(foot, 0.0), (foot + (radius - foot) * 0.7, high * 0.45), (radius, high)]
    draft.add("cup", color, lathe(_vessel(profile, 0.06, 0.08), 14))
    if kind != "cup":
        draft.add("handle", color, _handle(radius * 0.93, high * 0.6, 0.055).at(y=high * 0.52))
        draft.having(1, "handle")
    if draft.chance(0.4):
        drink = draft.tint(_DRINK)
        level = high * 0.82
        draft.add("drink", drink, cylinder(foot + (radius - foot) * 0.8 - 0.045, 0.06, 14).at(y=level))
    if kind == "tea cup" and draft.chance(0.7):
        saucer = [(0.0, -0.06), (0.4, -0.06), (0.72, 0.05), (0.7, 0.08), (0.38, 0.0), (0.0, 0.0)]
        draft.add("saucer", color, lathe(saucer, 16))
        draft.features.append("on a saucer")


def _goblet(draft: Draft) -> None:
    draft.call("wine glass", "glass", subclass="wine glass")
    color = draft.tint(((226, 232, 236), (206, 208, 210), (214, 176, 78), (176, 180, 184)))
    high, bowl = draft.between(1.1, 1.5), draft.between(0.32, 0.4)
    stem = high * 0.45
    profile = [(0.0, 0.0), (0.32, 0.0), (0.3, 0.05), (0.06, 0.1), (0.05, stem), (bowl * 0.75, stem + 0.14)]
    profile += [(bowl, high * 0.72), (bowl * 0.85, high), (bowl * 0.76, high), (bowl * 0.9, high * 0.72)]
    draft.add("glass", color, lathe([*profile, (bowl * 0.6, stem + 0.2), (0.0, stem + 0.16)], 14))
    if draft.chance(0.5):
        wine = draft.tint(((120, 30, 44), (226, 190, 90)))
        draft.add("drink", wine, cylinder(bowl * 0.76, 0.1, 14, top=bowl * 0.88).at(y=high * 0.66))


def bowl(draft: Draft) -> None:
    """Round bowls, empty or filled."""
    draft.call("bowl")
    color = draft.tint((*_CERAMIC, *WOOD, *METAL))
    draft.material = "wooden" if drawn_from(color, WOOD) else ""
    high = draft.proportion(0.3, 0.7, ("shallow", "deep"))
    foot = draft.between(0.2, 0.34)
    outer = [(foot, 0.0), (0.42, high * 0.35), (0.55, high)]
    draft.add("bowl", color, lathe(_vessel(outer, 0.05, 0.06), 16))
    choice = draft.rng.random()
    if choice < 0.2:
        fill = draft.other(((206, 120, 50), (176, 60, 44), (120, 150, 70), (226, 206, 150)), color)
        draft.add("soup", fill, cylinder(0.47, 0.05, 16, top=0.49).at(y=high * 0.8))
        draft.features.append("of soup")
    elif choice < 0.35:
        for i in range(5):
            fruit = draft.tint(((200, 52, 44), (240, 200, 60), (110, 170, 70), (226, 130, 50)))
            at = (0.22 * float(np.sin(1.26 * i)), high * 0.9, 0.22 * float(np.cos(1.26 * i)))
            draft.add("fruit", fruit, icosphere(0.3, 0.3, 0.3, 1).at(*at))
        draft.features.append("of fruit")


def plate(draft: Draft) -> None:
    """Flat round plates with a raised rim."""
    draft.call("plate")
    color = draft.tint((WHITE, *_CERAMIC, *METAL))
    rim = draft.between(0.06, 0.14)
    inner = draft.between(0.5, 0.68)
    thick = draft.between(0.03, 0.05)
    sides = draft.pick((14, 18, 20))
    profile = [(0.0, 0.0), (inner, 0.0), (1.0, rim), (0.97, rim + thick), (inner * 0.95, thick), (0.0, thick)]
    draft.add("plate", color, lathe(profile, sides))
    if draft.chance(0.25):
        accent = draft.other(PAINT, color)
        draft.add("rim", accent, torus(0.985, 0.05, sides, 5).at(y=rim + thick * 0.5))
        draft.having_one_colored("rim", accent)
    if draft.chance(0.2):
        draft.adjectives.append("oval")
        draft.pieces[:] = [type(p)(p.part, p.solid.scaled(1.35, 1, 1), p.color) for p in draft.pieces]
    else:
        draft.adjectives.append("round")


def bottle(draft: Draft) -> None:
    """Wine, beer and water bottles with a cap or cork."""
    draft.call("bottle")
    color = draft.tint(
        ((64, 120, 76), (52, 92, 58), (110, 66, 38), (120, 180, 220), (206, 224, 230), (40, 44, 50), *PAINT)
    )
    high = draft.proportion(1.1, 1.8, ("short", "tall"))
    radius = draft.between(0.22, 0.32)
    neck = radius * draft.between(0.28, 0.42)
    shoulder = high * draft.between(0.5, 0.68)
    slope = draft.between(0.06, 0.22)
    profile = [
        (0.0, 0.0),
        (radius * 0.92, 0.0),
        (radius, 0.05),
        (radius, shoulder),
        (radius * 0.8, shoulder + slope * 0.5),
    ]
    profile += [(neck, shoulder + slope), (neck, high), (0.0, high)]
    draft.add("bottle", color, lathe(profile, 12))
    cap = draft.other(((150, 110, 70), (204, 48, 44), (240, 200, 60), WHITE, BLACK, *METAL), color)
    draft.add("cap", cap, cylinder(neck * 1.18, 0.1, 10).at(y=high + 0.02))
    if draft.chance(0.55):
        label = draft.other(((240, 238, 226), (226, 206, 150), *PAINT), color)
        size = shoulder * draft.between(0.35, 0.55)
        draft.add("label", label, cylinder(radius * 1.025, size, 12, phase=0.0).at(y=shoulder * 0.52))
        draft.features.append("with a label")


def pot(draft: Draft) -> None:
    """Cooking pots with two handles and a lid, and frying pans."""
    color = draft.tint((*METAL, *DARK_METAL, (190, 50, 44), (50, 90, 160)))
    grip = draft.other((BLACK, *WOOD), color)
    draft.material = "metal"
    if draft.chance(0.3):
        draft.call("frying pan", "pan", subclass="frying pan")
        deep = draft.between(0.14, 0.24)
        draft.add("pan", color, lathe(_vessel([(0.5, 0.0), (0.6, deep)], 0.05, 0.05), 16))
        long = draft.between(0.6, 0.9)
        bar = cylinder(0.05, long, 8).turned("x", 90).at(0, deep * 0.85, 0.56 + long / 2)
        draft.add("handle", grip, bar)
        return
    draft.call("pot")
    high, radius = draft.proportion(0.5, 1.0, ("low", "tall")), draft.between(0.45, 0.55)
    draft.add("pot", color, lathe(_vessel([(radius * 0.94, 0.0), (radius, 0.08), (radius, high)], 0.045, 0.06), 16))
    for side in (0, 180):
        loop = arc(0.13, -90, 90, 5)[:, [0, 2, 1]] * np.array([0.9, 1, 1])
        draft.add("handle", grip, tube(loop + np.array([radius * 0.97, high * 0.8, 0]), 0.035, 6).turned("y", side))
    if draft.chance(0.6):
        lid = [(0.0, 0.0), (radius * 1.04, 0.0), (radius * 1.04, 0.05), (radius * 0.5, 0.13), (0.0, 0.15)]
        draft.add("lid", color, lathe(lid, 16).at(y=high - 0.01))
        draft.add("knob", grip, cylinder(0.07, 0.12, 8, top=0.09).at(y=high + 0.19))
        draft.features.append("with a lid")


def potion(draft: Draft) -> None:
    """Stoppered flasks: round, conical, square-shouldered."""
    draft.call("potion bottle", "potion", subclass="potion")
    color = draft.tint(
        ((204, 48, 60), (66, 120, 210), (80, 170, 84), (150, 84, 190), (240, 190, 60), (226, 110, 170), (60, 176, 176))
    )
    glass = draft.tint(((226, 232, 236), (190, 214, 224)))
    style = draft.pick(("round", "cone", "tall", "diamond"))
    shape = {
        "round": ((0.0, 0.0), (0.25, 0.0), (0.48, 0.22), (0.52, 0.45), (0.4, 0.72), (0.15, 0.86)),
        "cone": ((0.0, 0.0), (0.5, 0.0), (0.54, 0.08), (0.15, 0.8)),
        "tall": ((0.0, 0.0), (0.26, 0.0), (0.3, 0.1), (0.3, 0.8), (0.14, 0.95)),
        "diamond": ((0.0, 0.0), (0.12, 0.0), (0.46, 0.42), (0.14, 0.85)),
    }[style]
    sides = draft.pick((6, 8, 12))
    top = shape[-1][1]
    draft.add("liquid", color, lathe([*shape, (0.0, top + 0.01)], sides))
    draft.add("neck", glass, cylinder(shape[-1][0] * 1.05, 0.22, sides).at(y=top + 0.1))
    draft.add("neck", glass, torus(shape[-1][0] * 1.1, 0.07, sides, 5).at(y=top + 0.2))
    draft.add(
        "cork", draft.tint(((150, 106, 66), (196, 150, 100))), cylinder(shape[-1][0] * 0.85, 0.2, 8).at(y=top + 0.3)
    )
    if style == "round":
        draft.adjectives.append("round")
    draft.features.append("with a cork")


def can(draft: Draft) -> None:
    """Drink and food cans."""
    soda = draft.chance(0.7)
    draft.call("soda can" if soda else "tin can", "can", subclass="soda can")
    color = draft.tint((*PAINT, LEAF[0]))
    steel = draft.tint(METAL)
    draft.material = "metal"
    high = draft.proportion(0.8, 1.35, ("short", "tall"))
    draft.add("can", color, cylinder(0.36, high * 0.84, 16).at(y=high / 2))
    for y, end in ((high * 0.04, -1), (high * 0.96, 1)):
        big, small = (0.36, 0.3) if soda else (0.37, 0.37)
        lower, upper = (big, small) if end > 0 else (small, big)
        draft.add("lid", steel, cylinder(lower, high * 0.08, 16, top=upper).at(y=y))
    if soda:
        draft.add("tab", steel, cylinder(0.08, 0.02, 8).scaled(1, 1, 1.5).at(0, high + 0.008, 0.08))
    if draft.chance(0.5):
        band = draft.other((WHITE, *PAINT), color)
        draft.add("label", band, cylinder(0.366, high * draft.between(0.15, 0.35), 16).at(y=high / 2))
        draft.features.append("with a stripe")
