"""Rugs, pillows, potted plants and household items."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.bathroom import bathtub
from helicube.train.procedural.draft import Draft, drawn_from
from helicube.train.procedural.palette import CLOTH, DARK_METAL, GLASS, GOLD, LEAF, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import arc, ball, blob, box, cylinder, icosphere, link, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import lathe, loft, tube

__all__ = ["household_item", "leaf_blade", "pillow", "potted_plant", "rug"]

_CLAY: tuple[RGB, ...] = ((186, 104, 66), (170, 92, 60), (206, 130, 90), WHITE, *METAL[:3], *PAINT[:12])


def rug(draft: Draft) -> None:
    """Rectangular, round and oval rugs with a border, some with fringes."""
    draft.call(*draft.pick((("rug",), ("carpet", "rug"))), subclass="rug")
    color = draft.tint(CLOTH)
    border = draft.other(CLOTH, color)
    shape = draft.pick(("rectangular", "round", "oval", "square"))
    draft.adjectives.append(shape)
    thick = 0.07
    wide = 2.0 if shape in {"rectangular", "oval"} else 1.3
    if shape in {"round", "oval"}:
        plates = [cylinder(0.65 * s, h, 20).scaled(wide / 1.3, 1, 1) for s, h in ((1.0, thick), (0.84, thick * 1.3))]
        draft.add("border", border, plates[0])
        draft.add("rug", color, plates[1].at(y=thick * 0.15))
    else:
        draft.add("border", border, box(wide, thick, 1.3))
        draft.add("rug", color, box(wide - 0.26, thick * 1.3, 1.04).at(y=thick * 0.15))
        if draft.chance(0.4):
            middle = box(wide * 0.4, thick * 1.6, 0.4).at(y=thick * 0.25)
            draft.add("pattern", border, middle)
        if draft.chance(0.4):
            for side in (-1, 1):
                for i in range(9):
                    draft.add(
                        "fringe", border, box(0.12, thick * 0.6, 0.06).at(side * (wide / 2 + 0.05), 0, (i - 4) * 0.145)
                    )
            draft.features.append("with fringes")
    draft.having_one_colored("border", border)


def pillow(draft: Draft) -> None:
    """Square and oblong cushions and bolsters."""
    draft.call(*draft.pick((("pillow",), ("cushion", "pillow"))), subclass="pillow")
    color = draft.tint((*CLOTH, WHITE))
    kind = draft.pick(("square", "long", "round"))
    draft.adjectives.append(kind)
    if kind == "round":
        flat = draft.between(0.3, 0.45)
        draft.add("pillow", color, icosphere(1.0, flat, 1.0, 2))
        button = draft.other(CLOTH, color)
        draft.add("button", button, icosphere(0.16, 0.08, 0.16, 1).at(y=flat / 2))
        return
    wide = 1.0 if kind == "square" else draft.between(1.4, 1.8)
    thick = draft.between(0.42, 0.62)
    t = np.linspace(-1, 1, 6)
    grid_x, grid_z = np.meshgrid(t, t, indexing="ij")
    bulge = np.sqrt(np.clip((1 - grid_x**2) * (1 - grid_z**2), 0, 1))
    pinch_x = grid_x * (1 - 0.1 * (1 - grid_z**2))
    pinch_z = grid_z * (1 - 0.1 * (1 - grid_x**2))
    rings = _cushion_rings(pinch_x * wide / 2, bulge * thick / 2, pinch_z / 2)
    lean = draft.pick((0.0, 90.0))
    solid = rings.turned("x", lean)
    draft.add("pillow", color, solid)


def _cushion_rings(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Solid:
    """A pillow from the grids of its upper half: each ring runs over the top and back under the bottom."""
    edge = 0.035
    rings = []
    for i in range(len(x)):
        upper = np.stack([x[i], y[i] + edge, z[i]], axis=1)
        lower = np.stack([x[i], -y[i] - edge, z[i]], axis=1)[::-1]
        rings.append(np.concatenate([upper, lower]))
    return loft(np.array(rings))


def leaf_blade(length: float, wide: float, droop: float) -> Solid:
    """A flat pointed leaf from the origin along +z, rising and then drooping."""
    t = np.linspace(0, 1, 5)
    z = length * t * (1 - 0.2 * droop * t)
    y = length * (0.9 * t - (0.5 + 0.6 * droop) * t**2)
    half = wide * np.array([0.3, 0.9, 1.0, 0.65, 0.08]) / 2
    rings = np.stack(
        [
            np.stack([half, y - 0.02 * length, z], 1), np.stack([0 * half, y + 0.03 * length, z], 1),
            np.stack([-half, y - 0.02 * length, z], 1), np.stack([0 * half, y - 0.035 * length, z], 1),
        ],
        axis=1,
    )  # fmt: skip
    return loft(rings)


def potted_plant(draft: Draft) -> None:
    """A pot of earth with leaves, a ball of green, a cactus or flowers."""
    draft.call("potted plant")
    clay, green = draft.tint(_CLAY), draft.tint(LEAF)
    sides = draft.pick((4, 8, 12))
    high, radius = draft.between(0.4, 0.6), draft.between(0.26, 0.36)
    foot = radius * draft.between(0.65, 0.85)
    draft.add("pot", clay, cylinder(foot, high, sides, top=radius).at(y=high / 2))
    draft.add("pot", clay, cylinder(radius * 1.1, 0.1, sides).at(y=high))
    draft.add("earth", (84, 58, 42), cylinder(radius * 0.95, 0.06, sides).at(y=high + 0.04))
    kind = draft.pick(("leaves", "leaves", "ball", "tree", "flowers", "cactus"))
    if kind == "ball":
        size = draft.between(0.7, 0.95)
        draft.add("leaves", green, blob(draft.rng, size, size, size, rough=0.1).at(y=high + size * 0.42))
    elif kind == "tree":
        draft.add("stem", (110, 76, 48), cylinder(0.04, 0.6, 6).at(y=high + 0.3))
        draft.add("leaves", green, blob(draft.rng, 0.7, 0.7, 0.7, rough=0.08).at(y=high + 0.8))
    elif kind == "cactus":
        tall = draft.between(0.4, 0.8)
        draft.add(
            "cactus", green, lathe([(0.14, 0.0), (0.17, tall * 0.4), (0.1, tall * 0.85), (0.0, tall)], 8).at(y=high)
        )
        draft.call("potted cactus", "potted plant", subclass="potted plant")
    else:
        _foliage(draft, green, high, flowers=kind == "flowers")


def _foliage(draft: Draft, green: RGB, high: float, *, flowers: bool) -> None:
    """Leaves out of a pot whose rim is at `high`, perhaps with three flowers."""
    number = draft.count(6, 10)
    long = draft.proportion(0.6, 1.1, ("small", "tall"))
    droop = draft.between(0.0, 0.9)
    for i in range(number):
        blade = leaf_blade(
            long * draft.between(0.7, 1.0), long * draft.between(0.16, 0.28), droop * draft.between(0.5, 1.2)
        )
        draft.add("leaves", green, blade.turned("x", -draft.between(5, 35)).turned("y", 360 * i / number).at(y=high))
    if flowers:
        petal = draft.tint(((226, 90, 140), (240, 200, 70), (204, 48, 44), (150, 90, 200), WHITE))
        for i in range(3):
            at = (0.14 * np.sin(2.1 * i), high + long * 0.75, 0.14 * np.cos(2.1 * i))
            draft.add("stem", green, link((0, high, 0), at, 0.02, 5))
            draft.add("flower", petal, icosphere(0.24, 0.2, 0.24, 1).at(*at))
        draft.having_colored("flowers", petal)


def household_item(draft: Draft) -> None:
    """Vases, mirrors, picture frames, umbrellas, bathtubs, bells, clocks."""
    kind = draft.pick(("vase", "mirror", "picture frame", "umbrella", "bathtub", "bell", "clock", "coat rack"))
    draft.call(kind, subclass=kind)
    makers = {
        "vase": _vase, "mirror": _mirror, "picture frame": _mirror, "umbrella": _umbrella, "bathtub": bathtub,
        "bell": _bell, "clock": _clock, "coat rack": _coat_rack,
    }  # fmt: skip
    makers[kind](draft)


def _vase(draft: Draft) -> None:
    color = draft.tint((*_CLAY, *PAINT))
    high = draft.proportion(0.8, 1.5, ("short", "tall"))
    belly, neck = draft.between(0.28, 0.42), draft.between(0.1, 0.2)
    at = draft.between(0.3, 0.55)
    profile = [
        (0.0, 0.0),
        (belly * 0.6, 0.0),
        (belly, high * at),
        (neck, high * 0.82),
        (neck * 1.5, high),
        (neck * 1.2, high),
    ]
    draft.add("vase", color, lathe([*profile, (neck * 0.75, high * 0.82), (0.0, high * 0.8)], draft.pick((8, 10, 14))))
    if draft.chance(0.3):
        for i in range(3):
            tip = (0.2 * np.sin(2.1 * i), high + 0.45, 0.2 * np.cos(2.1 * i))
            draft.add("stem", (72, 130, 52), link((0, high * 0.8, 0), tip, 0.02, 5))
            draft.add("flower", draft.other(PAINT, color), icosphere(0.22, 0.18, 0.22, 1).at(*tip))
        draft.features.append("with three flowers")


def _mirror(draft: Draft) -> None:
    frame = draft.tint((*WOOD, *GOLD, *METAL, BLACKISH, WHITE))
    picture = draft.nouns[0] == "picture frame"
    pane = draft.tint(CLOTH) if picture else draft.tint(GLASS[:3])
    round_ = draft.chance(0.4) and not picture
    if round_:
        draft.adjectives.append(draft.pick(("round", "oval")))
        tall = 1.4 if draft.adjectives[-1] == "oval" else 1.0
        draft.add("frame", frame, torus(0.5, 0.12, 20, 5).turned("x", 90).scaled(1, tall, 1))
        draft.add("glass", pane, cylinder(0.48, 0.06, 20).turned("x", 90).scaled(1, tall, 1))
        return
    wide, high, bar = draft.between(0.8, 1.2), draft.between(0.8, 1.5), draft.between(0.08, 0.14)
    for side in (-1, 1):
        draft.add("frame", frame, box(wide, bar, 0.1).at(0, side * (high - bar) / 2, 0))
        draft.add("frame", frame, box(bar, high - bar, 0.1).at(side * (wide - bar) / 2, 0, 0))
    draft.add("picture" if picture else "glass", pane, box(wide - bar, high - bar, 0.06))
    if picture:
        hill, sun = draft.other(LEAF, pane), draft.other(((240, 200, 70), WHITE), pane)
        draft.add("picture", hill, box(wide - 2 * bar, (high - 2 * bar) * 0.4, 0.075).at(0, -(high - 2 * bar) * 0.3, 0))
        draft.add("picture", sun, cylinder(0.11, 0.08, 10).turned("x", 90).at(wide * 0.18, high * 0.2, 0))


BLACKISH: RGB = (40, 40, 42)


def _umbrella(draft: Draft) -> None:
    cloth, stick = draft.tint((*CLOTH, *PAINT)), draft.tint((*WOOD, *METAL, *DARK_METAL))
    sides = draft.pick((8, 10))
    profile = [
        (0.0, 0.42),
        (0.08, 0.4),
        (0.62, 0.22),
        (0.95, -0.05),
        (0.9, -0.05),
        (0.58, 0.17),
        (0.06, 0.34),
        (0.0, 0.35),
    ]
    draft.add("canopy", cloth, lathe([(r, y + 1.0) for r, y in profile[::-1]], sides))
    draft.add("stick", stick, cylinder(0.03, 1.5, 6).at(y=0.75))
    hook = arc(0.12, 180, 360, 6) + np.array([0.12, 0, 0])
    draft.add("handle", stick, tube(hook, 0.045, 6))
    draft.add("tip", stick, cylinder(0.03, 0.16, 6, top=0.0).at(y=1.48))
    draft.adjectives.append("open")


def _bell(draft: Draft) -> None:
    metal = draft.tint((*GOLD, *METAL))
    draft.material = "metal"
    profile = [(0.0, 0.06), (0.4, 0.0), (0.52, 0.0), (0.4, 0.2), (0.3, 0.6), (0.2, 0.75), (0.0, 0.82)]
    draft.add("bell", metal, lathe(profile, 14))
    draft.add("clapper", DARK_METAL[1], icosphere(0.18, 0.18, 0.18, 1).at(y=-0.02))
    draft.add("ring", metal, torus(0.1, 0.05, 10, 5).turned("x", 90).at(y=0.88))


def _clock(draft: Draft) -> None:
    rim = draft.tint((*PAINT, *WOOD, *METAL, *GOLD))
    draft.adjectives.append("round")
    draft.add("rim", rim, cylinder(0.6, 0.16, 20).turned("x", 90))
    draft.add("dial", WHITE, cylinder(0.52, 0.2, 20).turned("x", 90))
    hand = BLACKISH
    angle = draft.between(0, 360)
    draft.add("hand", hand, box(0.05, 0.42, 0.03).at(0, 0.19, 0.11).turned("z", angle))
    draft.add("hand", hand, box(0.06, 0.3, 0.03).at(0, 0.13, 0.11).turned("z", angle + draft.between(60, 300)))
    for i in range(12):
        draft.add("mark", hand, box(0.03, 0.08, 0.03).at(0, 0.44, 0.1).turned("z", 30 * i))


def _coat_rack(draft: Draft) -> None:
    wood = draft.tint((*WOOD, *DARK_METAL))
    draft.material = "wooden" if not drawn_from(wood, DARK_METAL) else "metal"
    high = draft.between(1.6, 1.9)
    draft.add("post", wood, cylinder(0.05, high, 8).at(y=high / 2))
    for i in range(4):
        draft.add("foot", wood, link((0, 0.04, 0.4), (0, 0.22, 0), 0.04, 6).turned("y", 90 * i))
        draft.add("hook", wood, link((0, high - 0.18, 0), (0, high - 0.02, 0.26), 0.03, 6).turned("y", 90 * i + 45))
    draft.add("top", wood, ball(0.14, 0.14, 0.14, 8, 4).at(y=high + 0.04))
    if draft.chance(0.4):
        hat = draft.other(CLOTH, wood)
        draft.add(
            "hat", hat, cylinder(0.26, 0.04, 12).at(y=high + 0.08), cylinder(0.16, 0.2, 12, top=0.13).at(y=high + 0.18)
        )
        draft.features.append("with a hat")
