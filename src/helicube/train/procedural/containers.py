"""Barrels, crates, boxes and treasure chests."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import DARK_METAL, GOLD, METAL, PAINT, RGB, WOOD
from helicube.train.procedural.primitives import arc, box, cylinder, icosphere
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe

__all__ = ["barrel", "carton", "crate", "treasure_chest"]


def barrel(draft: Draft) -> None:
    """Bulging wooden barrels with hoops, and steel drums."""
    sides = draft.pick((10, 12, 14, 16))
    if draft.chance(0.25):
        color = draft.tint((*PAINT, *METAL))
        draft.call("oil barrel", "barrel", subclass="barrel")
        draft.material = "metal"
        high = draft.between(1.3, 1.5)
        draft.add("barrel", color, cylinder(0.5, high, sides).at(y=high / 2))
        band = color if draft.chance(0.5) else draft.other((*DARK_METAL, *METAL), color)
        for y in (0.03, high / 3, high * 2 / 3, high - 0.03):
            draft.add("ring", band, cylinder(0.525, 0.07, sides).at(y=y))
        return
    color, hoop = draft.tint(WOOD), draft.tint((*METAL, *DARK_METAL))
    draft.call("barrel")
    draft.material = "wooden"
    high = draft.proportion(1.0, 1.5, ("short", "tall"))
    bulge = draft.between(1.12, 1.3)
    radius = 0.42

    def width(t: float) -> float:
        return radius * (1 + (bulge - 1) * float(np.sin(np.pi * t)))

    levels = [(width(t), t * high) for t in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    rim = [(radius * 0.9, high), (radius * 0.9, high - 0.05), (0.0, high - 0.05)]
    draft.add("barrel", color, lathe([(0.0, 0.0), *levels, *rim], sides))
    hoops = draft.pick((2, 3, 4))
    for i in range(hoops):
        t = 0.1 + 0.8 * i / (hoops - 1)
        lower, upper = width(t - 0.04) * 1.03, width(t + 0.04) * 1.03
        draft.add("hoop", hoop, cylinder(lower, 0.08 * high, sides, top=upper).at(y=t * high))
    draft.having(hoops, "hoop")
    if draft.chance(0.12):
        draft.pieces[:] = [type(p)(p.part, p.solid.turned("x", 90), p.color) for p in draft.pieces]
        draft.features.append("lying on its side")


def crate(draft: Draft) -> None:
    """Wooden crates with a frame and boards or a diagonal."""
    color = draft.tint(WOOD)
    frame = color if draft.chance(0.35) else draft.other(WOOD, color)
    draft.call("crate")
    draft.material = "wooden"
    x, y, z = 1.0, draft.proportion(0.6, 1.2, ("low", "tall")), draft.pick((1.0, 1.0, 0.7))
    bar = draft.between(0.08, 0.14)
    draft.add("body", color, box(x - bar * 0.6, y - bar * 0.6, z - bar * 0.6))
    for i in (-1, 1):
        for j in (-1, 1):
            draft.add("frame", frame, box(x, bar, bar).at(0, i * (y - bar) / 2, j * (z - bar) / 2))
            draft.add("frame", frame, box(bar, y, bar).at(i * (x - bar) / 2, 0, j * (z - bar) / 2))
            draft.add("frame", frame, box(bar, bar, z).at(i * (x - bar) / 2, j * (y - bar) / 2, 0))
    style = draft.pick(("plain", "diagonal", "boards"))
    if style == "diagonal":
        for face, (wide, deep) in enumerate(((x, z), (z, x), (x, z), (z, x))):
            tilt = float(np.degrees(np.arctan2(y - bar, wide - bar)))
            plank = box(float(np.hypot(wide - bar, y - bar)), bar, bar * 0.6).turned("z", tilt)
            draft.add("frame", frame, plank.at(z=deep / 2 - bar * 0.4).turned("y", 90 * face))
    elif style == "boards":
        for i in range(1, 4):
            draft.add(
                "body", color, box(x - bar * 0.3, (y - 2 * bar) / 3.6, z - bar * 0.3).at(y=(i - 2) * (y - 2 * bar) / 3)
            )


def carton(draft: Draft) -> None:
    """Cardboard boxes with tape, open boxes with flaps, gifts with a ribbon."""
    gift = draft.chance(0.3)
    color = draft.tint(PAINT) if gift else draft.tint(((190, 146, 96), (172, 128, 82), (206, 166, 116)))
    x, y, z = draft.between(0.8, 1.2), draft.proportion(0.45, 1.1, ("flat", "tall")), draft.between(0.7, 1.0)
    draft.call(*(("gift box", "box") if gift else ("cardboard box", "box")), subclass="box")
    if gift:
        ribbon = draft.other(((204, 48, 44), (240, 200, 60), (238, 238, 236), (64, 160, 76), (236, 140, 176)), color)
        draft.add("box", color, box(x, y, z).at(y=y / 2))
        draft.add("lid", color, box(x * 1.05, y * 0.2, z * 1.05).at(y=y * 0.92))
        draft.add("ribbon", ribbon, box(0.13, y * 1.03, z * 1.06).at(y=y / 2 + 0.01))
        draft.add("ribbon", ribbon, box(x * 1.06, y * 1.03, 0.13).at(y=y / 2 + 0.01))
        for side in (-1, 1):
            bow = icosphere(0.3, 0.16, 0.14, 1).turned("z", side * 25).at(side * 0.15, y * 1.03 + 0.08, 0)
            draft.add("bow", ribbon, bow)
        draft.features.append("with a ribbon")
        return
    if draft.chance(0.3):
        _open_box(draft, color, (x, y, z))
        return
    draft.add("box", color, box(x, y, z).at(y=y / 2))
    tape = draft.tint(((222, 200, 150), (226, 214, 180)))
    draft.add("tape", tape, box(x * 1.006, 0.02, 0.14).at(y=y))
    for side in (-1, 1):
        draft.add("tape", tape, box(0.02, y * 0.3, 0.14).at(side * x / 2, y * 0.85 + 0.01, 0))


def _open_box(draft: Draft, color: RGB, size: tuple[float, float, float]) -> None:
    x, y, z = size
    wall = 0.04
    draft.call("open cardboard box", "open box", subclass="box")
    draft.add("box", color, box(x, wall, z).at(y=wall / 2))
    for side in (-1, 1):
        draft.add("box", color, box(x, y, wall).at(0, y / 2, side * (z - wall) / 2))
        draft.add("box", color, box(wall, y, z).at(side * (x - wall) / 2, y / 2, 0))
        tilt = draft.between(20, 60)
        flap = box(0.3, wall * 0.7, z).at(0.15).turned("z", -tilt).at(x / 2 - 0.01, y - 0.01, 0)
        draft.add("flap", color, flap if side > 0 else flap.mirrored("x"))
        fold = box(x, wall * 0.7, 0.3).at(0, 0, 0.15).turned("x", tilt).at(0, y - 0.01, z / 2 - 0.01)
        draft.add("flap", color, fold if side > 0 else fold.mirrored("z"))
    draft.having(4, "flap")


def treasure_chest(draft: Draft) -> None:
    """Chests with a vaulted lid, closed or open and full of coins; the lock at +Z."""
    color = draft.tint(WOOD)
    metal = draft.tint((*GOLD, *METAL, *DARK_METAL))
    draft.call("treasure chest")
    draft.material = "wooden"
    wide, high, deep = draft.between(1.0, 1.4), draft.between(0.45, 0.6), draft.between(0.65, 0.8)
    opened = draft.chance(0.4)
    bands = draft.count(2, 3)
    at = [wide * 0.84 * (i / (bands - 1) - 0.5) for i in range(bands)]
    if opened:
        wall = 0.07
        draft.add("body", color, box(wide, 0.08, deep).at(y=0.04))
        for side in (-1, 1):
            draft.add("body", color, box(wide, high, wall).at(0, high / 2, side * (deep - wall) / 2))
            draft.add("body", color, box(wall, high, deep).at(side * (wide - wall) / 2, high / 2, 0))
    else:
        draft.add("body", color, box(wide, high, deep).at(y=high / 2))
    for x in at:
        for side in (-1, 1):
            draft.add("band", metal, box(0.11, high * 1.01, 0.03).at(x, high / 2, side * (deep / 2 + 0.005)))
    tilt = -draft.between(50, 85) if opened else 0.0
    hinge = (0.0, high, -deep / 2)
    draft.add("lid", color, _vault(deep, wide, 1.0).turned("x", tilt).at(*hinge))
    draft.add("lid", metal, *[_vault(deep, 0.11, 1.05).at(x, -0.003).turned("x", tilt).at(*hinge) for x in at])
    draft.add("lock", metal, box(0.2, 0.22, 0.06).at(0, high * 0.92, deep / 2 + 0.02))
    if opened:
        draft.adjectives.append("open")
        if draft.chance(0.7):
            _treasure(draft, wide, high, deep)
    else:
        draft.adjectives.append("closed")


def _vault(deep: float, wide: float, scale: float) -> Solid:
    """A half round lid whose back lower edge lies on the x axis; it reaches to z = `deep`."""
    outline = arc(deep / 2 * scale, 0, 180, 8)[:, :2] * np.array([1.0, 0.75])
    return extrude(outline, wide).turned("y", 90).at(z=deep / 2)


def _treasure(draft: Draft, wide: float, high: float, deep: float) -> None:
    gold = draft.tint(GOLD)
    draft.add("gold", gold, icosphere(wide * 0.84, 0.4, deep * 0.82, 2).at(y=high * 0.82))
    for _ in range(10):
        coin = cylinder(0.08, 0.03, 8).turned("x", draft.between(-50, 50)).turned("z", draft.between(-50, 50))
        x, z = draft.between(-0.35, 0.35) * wide, draft.between(-0.3, 0.3) * deep
        draft.add("gold", gold, coin.at(x, high * 0.82 + 0.2 * (1 - (2 * x / wide) ** 2), z))
    draft.features.append("full of gold")
