"""Tractors, buses, tanks, bicycles, carts, wheels; they drive towards +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import (
    BLACK,
    DARK_METAL,
    GLASS,
    LIGHT,
    METAL,
    PAINT,
    RGB,
    TIRE,
    WHITE,
    WOOD,
)
from helicube.train.procedural.primitives import bevel_box, box, cylinder, frustum, icosphere, link, torus
from helicube.train.procedural.sweep import extrude
from helicube.train.procedural.wheels import add_axle, spoked_wheel

__all__ = ["tractor", "vehicle", "wheel"]

_RIM: tuple[RGB, ...] = (METAL[2], METAL[3], (204, 48, 44), (240, 200, 60))
_OLIVE: tuple[RGB, ...] = ((92, 96, 58), (78, 84, 62), (132, 120, 84), (104, 100, 72), *DARK_METAL)


def wheel(draft: Draft) -> None:
    """Car wheels with spokes, tractor wheels with treads, wooden cart wheels, about the x axis."""
    kind = draft.pick(("car wheel", "car wheel", "tractor wheel", "wooden wheel"))
    draft.call(kind, "wheel", subclass="wheel")
    if kind == "wooden wheel":
        wood = draft.tint(WOOD)
        draft.material = "wooden"
        spokes = draft.pick((6, 8, 10))
        draft.add("wheel", wood, *spoked_wheel(1.0, draft.between(0.16, 0.22), spokes))
        draft.having(spokes, "spoke")
        return
    rim = draft.tint(_RIM)
    width = draft.between(0.5, 0.8)
    draft.add("tire", TIRE, torus(0.78, 0.44, 20, 6).scaled(1, width / 0.44, 1).turned("z", 90))
    draft.add("rim", rim, cylinder(0.6, width * 0.62, 14).turned("z", 90))
    spokes = draft.pick((5, 6))
    dark = draft.other(DARK_METAL, rim)
    for side in (-1, 1):
        draft.add("rim", dark, cylinder(0.5, 0.04, 14).turned("z", 90).at(side * width * 0.31))
        draft.add("hub", rim, cylinder(0.15, 0.12, 8).turned("z", 90).at(side * width * 0.33))
        for i in range(spokes):
            bar = box(0.08, 0.5, 0.13).at(side * width * 0.33, 0.28).turned("x", 360 * i / spokes)
            draft.add("spoke", rim, bar)
    if kind == "tractor wheel":
        for i in range(14):
            lug = box(width * 0.95, 0.12, 0.14).at(0, 1.0, 0).turned("x", 360 * i / 14)
            draft.add("tread", TIRE, lug)


def tractor(draft: Draft) -> None:
    """Farm tractors with big back wheels, a bonnet, an exhaust and perhaps a cab."""
    draft.call("tractor")
    paint = draft.tint(((48, 128, 64), (204, 48, 44), (54, 104, 200), (240, 200, 60), (236, 134, 44), (132, 134, 138)))
    rim = draft.other(((240, 200, 60), WHITE, (204, 48, 44), METAL[2]), paint)
    draft.add("body", paint, bevel_box(0.7, 0.62, 1.5, 0.06).at(0, 0.95, 0.75))
    draft.add("body", DARK_METAL[0], box(0.5, 0.3, 2.3).at(0, 0.62, 0.2))
    draft.add("grill", DARK_METAL[2], box(0.5, 0.42, 0.06).at(0, 0.95, 1.5))
    for side in (-1, 1):
        draft.add("light", LIGHT[1], box(0.13, 0.12, 0.06).at(side * 0.25, 1.16, 1.5))
        draft.add("fender", paint, box(0.42, 0.1, 0.9).at(side * 0.68, 1.42, -0.5))
        draft.add("fender", paint, box(0.42, 0.5, 0.08).turned("x", 20).at(side * 0.68, 1.2, -0.98))
    draft.add("exhaust", DARK_METAL[1], cylinder(0.06, 0.8, 8).at(0.22, 1.55, 0.9))
    if draft.chance(0.65):
        draft.add("window", draft.tint(GLASS), frustum((1.0, -0.95, 0.2), (0.9, -0.85, 0.05), 1.1, 2.0))
        draft.add("cab", paint, box(1.08, 0.12, 1.15).at(0, 2.05, -0.4), box(1.02, 0.3, 1.16).at(0, 1.12, -0.38))
        for sx in (-1, 1):
            for z, lean in ((0.12, -9), (-0.9, 6)):
                draft.add("cab", paint, box(0.09, 0.95, 0.09).turned("x", lean).at(sx * 0.48, 1.55, z))
        draft.features.append("with a cab")
    else:
        draft.add("seat", BLACK, box(0.5, 0.12, 0.45).at(0, 1.25, -0.5), box(0.5, 0.45, 0.1).at(0, 1.48, -0.72))
        draft.add("steering wheel", BLACK, torus(0.2, 0.05, 12, 5).turned("x", 40).at(0, 1.52, -0.05))
        draft.add("steering wheel", BLACK, link((0, 1.2, 0.1), (0, 1.52, -0.05), 0.03, 5))
    add_axle(draft, (TIRE, rim), (0.42, 0.3), (1.1, 1.15), "front")
    add_axle(draft, (TIRE, rim), (0.78, 0.42), (1.36, -0.5), "back")
    draft.having(4, "wheel")
    if draft.chance(0.3):
        steel = draft.tint(METAL)
        draft.add("shovel", steel, frustum((1.5, -0.2, 0.3), (1.5, -0.2, -0.05), 0.1, 0.65).at(z=2.1))
        for side in (-1, 1):
            draft.add("shovel", paint, link((side * 0.48, 1.1, 0.7), (side * 0.48, 0.4, 1.95), 0.06, 6))
        draft.features.append("with a shovel")


def vehicle(draft: Draft) -> None:
    """Buses, tanks, motorcycles, bicycles and carts."""
    kind = draft.pick(("bus", "tank", "tank", "motorcycle", "bicycle", "cart"))
    draft.call(kind, subclass=kind)
    {"bus": _bus, "tank": _tank, "motorcycle": _motorcycle, "bicycle": _bicycle, "cart": _cart}[kind](draft)


def _bus(draft: Draft) -> None:
    paint = draft.tint(PAINT) if draft.chance(0.6) else (244, 190, 50)
    if paint == (244, 190, 50):
        draft.call("school bus", "bus", subclass="bus")
    decks = 2 if draft.chance(0.25) and draft.nouns[0] == "bus" else 1
    long = draft.proportion(4.2, 6.0, ("short", "long"))
    wide, floor, each = 1.5, 0.35, 1.15
    top = floor + each * decks + 0.25
    draft.add("body", paint, bevel_box(wide, top - floor, long, 0.08).at(0, (top + floor) / 2, 0))
    pane = draft.tint(GLASS)
    number = int(long / 0.75)
    for deck in range(decks):
        for i in range(number):
            window = box(wide * 1.02, 0.44, 0.52).at(0, floor + 0.85 + each * deck, (i - (number - 1) / 2) * 0.68 - 0.2)
            draft.add("window", pane, window)
        draft.add("window", pane, box(wide * 0.84, 0.56, 0.06).at(0, floor + 0.85 + each * deck, long / 2))
    draft.add("bumper", DARK_METAL[1], box(wide * 0.98, 0.16, 0.1).at(0, floor + 0.1, long / 2))
    draft.add("door", DARK_METAL[0], box(0.05, 0.9, 0.6).at(-wide / 2, floor + 0.5, long / 2 - 0.55))
    for side in (-1, 1):
        draft.add("light", LIGHT[1], box(0.2, 0.16, 0.08).at(side * 0.52, floor + 0.3, long / 2))
    for z, name in ((long * 0.3, "front"), (-long * 0.3, "back")):
        add_axle(draft, (TIRE, METAL[2]), (0.36, 0.26), (wide - 0.16, z), name)
    if decks == 2:
        draft.call("double-decker bus", "bus", subclass="bus")
    draft.having(4, "wheel")


def _tank(draft: Draft) -> None:
    paint = draft.tint((*_OLIVE, (48, 96, 56)))
    dark = draft.other(DARK_METAL, paint)
    draft.material = "metal"
    long, wide = draft.between(2.4, 2.9), 1.2
    draft.add(
        "body", paint, frustum((wide, -long / 2, long / 2 - 0.3), (wide, -long / 2 + 0.1, long / 2 - 0.1), 0.3, 0.6)
    )
    draft.add(
        "body",
        paint,
        frustum(
            (wide * 1.5, -long / 2 + 0.1, long / 2 - 0.1), (wide * 1.2, -long / 2 + 0.3, long / 2 - 0.7), 0.58, 0.85
        ),
    )
    for side, word in ((1, "left"), (-1, "right")):
        a, r = long / 2 - 0.3, 0.3
        turn = np.radians(np.linspace(-90, 90, 6))
        right = np.stack([a + r * np.cos(turn), r + r * np.sin(turn)], axis=1)
        outline = np.concatenate([right, np.stack([-right[::-1, 0], right[::-1, 1]], axis=1)])
        draft.add(f"track {word}", dark, extrude(outline, 0.4).turned("y", -90).at(side * wide * 0.62))
        for i in range(5):
            roller = cylinder(0.2, 0.5, 10).turned("z", 90).at(side * wide * 0.63, 0.28, (i - 2) * long * 0.19)
            draft.add(f"track {word}", paint, roller)
    shape = draft.pick(("round", "box"))
    if shape == "round":
        draft.add("turret", paint, cylinder(0.56, 0.42, 10, top=0.42).at(0, 1.04, -0.1))
    else:
        draft.add("turret", paint, frustum((1.1, -0.75, 0.5), (0.8, -0.6, 0.3), 0.83, 1.26))
    gun = draft.between(1.3, 1.8)
    draft.add("gun", paint, cylinder(0.075, gun, 8).turned("x", 90).at(0, 1.06, 0.3 + gun / 2))
    draft.add("gun", dark, cylinder(0.11, 0.2, 8).turned("x", 90).at(0, 1.06, 0.3 + gun))
    draft.add("hatch", dark, cylinder(0.2, 0.1, 10).at(-0.1, 1.29, -0.2))
    draft.features.append("with a turret")


def _motorcycle(draft: Draft) -> None:
    paint = draft.tint(PAINT)
    for z, name in ((0.75, "front"), (-0.75, "back")):
        draft.add(f"wheel {name}", TIRE, torus(0.34, 0.18, 16, 6).turned("z", 90).at(0, 0.43, z))
        draft.add(f"wheel {name}", METAL[2], cylinder(0.27, 0.08, 12).turned("z", 90).at(0, 0.43, z))
    draft.add("body", paint, bevel_box(0.34, 0.3, 0.62, 0.07).at(0, 0.95, 0.12))
    draft.add("seat", BLACK, bevel_box(0.3, 0.14, 0.75, 0.05).turned("x", 6).at(0, 0.92, -0.45))
    draft.add("engine", METAL[0], box(0.36, 0.36, 0.5).at(0, 0.55, 0.05))
    draft.add(
        "frame",
        DARK_METAL[0],
        link((0, 0.43, -0.75), (0, 0.65, -0.1), 0.06, 6),
        link((0, 0.8, -0.6), (0, 0.65, 0.2), 0.06, 6),
    )
    for side in (-1, 1):
        draft.add("fork", METAL[2], link((side * 0.13, 0.43, 0.78), (side * 0.13, 1.2, 0.42), 0.035, 6))
        draft.add("handlebar", BLACK, link((side * 0.1, 1.2, 0.42), (side * 0.42, 1.24, 0.26), 0.035, 6))
        draft.add("exhaust", METAL[3], link((side * 0.2, 0.38, 0.1), (side * 0.22, 0.42, -0.95), 0.06, 8))
    draft.add("light", LIGHT[1], cylinder(0.13, 0.12, 10).turned("x", 90).at(0, 1.1, 0.58))
    draft.add(
        "fender",
        paint,
        box(0.2, 0.06, 0.45).turned("x", -12).at(0, 0.9, 0.78),
        box(0.2, 0.06, 0.4).turned("x", 15).at(0, 0.9, -0.85),
    )
    draft.having(2, "wheel")


def _bicycle(draft: Draft) -> None:
    paint = draft.tint(PAINT)
    for z, name in ((0.72, "front"), (-0.72, "back")):
        draft.add(f"wheel {name}", TIRE, torus(0.42, 0.1, 18, 5).turned("z", 90).at(0, 0.47, z))
        for i in range(4):
            draft.add(f"wheel {name}", METAL[2], box(0.03, 0.8, 0.03).turned("x", 45 * i).at(0, 0.47, z))
    joints = [(0, 0.47, -0.72), (0, 0.45, -0.1), (0, 1.0, -0.3), (0, 0.98, 0.5)]
    for a, b in ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)):
        draft.add("frame", paint, link(joints[a], joints[b], 0.045, 6))
    draft.add("fork", paint, link((0, 0.47, 0.72), (0, 1.18, 0.45), 0.045, 6))
    draft.add("handlebar", METAL[1], link((-0.3, 1.2, 0.42), (0.3, 1.2, 0.42), 0.035, 6))
    draft.add("seat", BLACK, bevel_box(0.2, 0.1, 0.36, 0.04).at(0, 1.1, -0.33))
    draft.add("pedal", DARK_METAL[0], cylinder(0.13, 0.06, 10).turned("z", 90).at(0.06, 0.45, -0.1))
    for side in (-1, 1):
        draft.add("pedal", DARK_METAL[0], box(0.16, 0.04, 0.1).at(side * 0.16, 0.45 - side * 0.18, -0.1))
    draft.having(2, "wheel")


def _cart(draft: Draft) -> None:
    wood = draft.tint(WOOD)
    draft.material = "wooden"
    wheels = draft.pick((2, 4))
    draft.call("wooden cart", "cart", subclass="cart")
    wide, long = 0.9, draft.between(1.3, 1.8)
    radius = 0.45 if wheels == 2 else 0.34
    y = radius + 0.12
    draft.add("body", wood, box(wide, 0.08, long).at(0, y, 0))
    for side in (-1, 1):
        draft.add("body", wood, box(0.07, 0.34, long).at(side * (wide / 2 - 0.03), y + 0.18, 0))
        draft.add("body", wood, box(wide, 0.34, 0.07).at(0, y + 0.18, side * (long / 2 - 0.03)))
        draft.add("handle", wood, box(0.07, 0.07, 0.9).at(side * wide * 0.32, y - 0.02, long / 2 + 0.4))
    at = (0.0,) if wheels == 2 else (-long * 0.32, long * 0.32)
    for z in at:
        draft.add("axle", wood, cylinder(0.05, wide * 1.15, 6).turned("z", 90).at(0, radius, z))
        for side in (-1, 1):
            solids = [solid.at(side * (wide / 2 + 0.09), radius, z) for solid in spoked_wheel(radius, 0.1, 6)]
            draft.add("wheel", draft.pieces[0].color, *solids)
    draft.having(wheels, "wheel")
    if draft.chance(0.5):
        hay = draft.tint(((226, 190, 90), (120, 92, 66), (204, 170, 80)))
        draft.add("load", hay, icosphere(wide * 0.9, 0.7, long * 0.9, 1).at(0, y + 0.3, 0))
        draft.features.append("with a load")
