"""Signs, flags, gravestones, statues and market stalls."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft, drawn_from
from helicube.train.procedural.palette import CLOTH, DARK_METAL, GOLD, METAL, PAINT, RGB, STONE, WHITE, WOOD
from helicube.train.procedural.primitives import (
    arc,
    ball,
    bevel_box,
    blob,
    box,
    cylinder,
    icosphere,
)
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, loft

__all__ = ["flag", "gravestone", "market_stall", "sign", "statue", "wavy_cloth"]


def sign(draft: Draft) -> None:
    """Signposts with arrows, road signs, hanging and standing boards."""
    kind = draft.pick(("wooden sign", "arrow sign", "stop sign", "road sign", "hanging sign"))
    draft.call(kind, "sign", subclass="sign")
    if kind in {"stop sign", "road sign"}:
        _road_sign(draft, kind)
        return
    wood = draft.tint(WOOD)
    board = wood if draft.chance(0.5) else draft.other((*WOOD, WHITE), wood)
    draft.material = "wooden"
    high = draft.between(1.2, 1.7)
    draft.add("post", wood, box(0.12, high, 0.12).at(y=high / 2))
    if kind == "arrow sign":
        number = draft.count(1, 3)
        for i in range(number):
            outline = [(-0.45, -0.13), (0.42, -0.13), (0.6, 0.0), (0.42, 0.13), (-0.45, 0.13)]
            arrow = extrude(outline, 0.07).at(0.1)
            turn = draft.pick((0, 180)) + draft.between(-18, 18)
            draft.add("board", board, arrow.turned("y", turn).at(0, high - 0.2 - 0.36 * i, 0.0))
        draft.having(number, "arrow")
    elif kind == "hanging sign":
        draft.add("post", wood, box(0.9, 0.1, 0.1).at(0.35, high - 0.12, 0))
        for x in (0.3, 0.66):
            draft.add("chain", DARK_METAL[0], cylinder(0.02, 0.2, 4).at(x, high - 0.25, 0))
        draft.add("board", board, bevel_box(0.66, 0.42, 0.08, 0.02).at(0.48, high - 0.54, 0))
    else:
        wide, tall = draft.proportion(0.8, 1.4, ("small", "wide")), draft.between(0.4, 0.65)
        draft.add("board", board, bevel_box(wide, tall, 0.09, 0.02).at(0, high - tall * 0.45, 0.08))
        for i in range(2):
            ink = box(wide * 0.7, 0.05, 0.02).at(0, high - tall * (0.3 + 0.3 * i), 0.13)
            draft.add("text", draft.pieces[0].color if board != wood else (60, 44, 32), ink)


def _road_sign(draft: Draft, kind: str) -> None:
    pole = draft.tint(METAL)
    high = draft.between(1.5, 2.0)
    draft.material = "metal"
    draft.add("post", pole, cylinder(0.05, high, 8).at(y=high / 2))
    if kind == "stop sign":
        for radius, depth, color in ((0.42, 0.05, WHITE), (0.37, 0.08, (200, 40, 40))):
            draft.add("board", color, cylinder(radius, depth, 8, phase=0.5).turned("x", 90).at(0, high, 0.05))
        draft.add("text", WHITE, box(0.5, 0.12, 0.02).at(0, high, 0.095))
        return
    shape = draft.pick(("triangular", "round", "square"))
    draft.adjectives.append(shape)
    color = draft.tint(((240, 200, 60), (204, 48, 44), (54, 104, 200), WHITE, (48, 128, 64)))
    rim = draft.other(((204, 48, 44), WHITE, (34, 34, 36)), color)
    sides = {"triangular": 3, "round": 16, "square": 4}[shape]
    phase = 0.5 if sides == 4 else 0.0
    for radius, depth, paint in ((0.45, 0.05, rim), (0.36, 0.08, color)):
        plate = cylinder(radius, depth, sides, phase=phase).turned("x", -90 if sides == 3 else 90)
        draft.add("board", paint, plate.at(0, high, 0.05))
    draft.add("text", rim, box(0.07, 0.26, 0.02).at(0, high + 0.02, 0.095))


def wavy_cloth(wide: float, high: float, wave: float, cycles: float) -> Solid:
    """A hanging cloth of width by height along +x from the origin; its ripple has the amplitude `wave` in z."""
    x = np.linspace(0, wide, 9)
    z = wave * np.sin(x / wide * 2 * np.pi * cycles) * (x / wide) ** 0.5
    thick = 0.035
    rings = [
        [(px, 0, pz + thick), (px, 0, pz - thick), (px, high, pz - thick), (px, high, pz + thick)]
        for px, pz in zip(x, z, strict=True)
    ]
    return loft(rings)


def flag(draft: Draft) -> None:
    """Flags on a pole, banners on a bar, pennants."""
    kind = draft.pick(("flag", "flag", "banner", "pennant"))
    draft.call(kind, *(() if kind == "flag" else ("flag",)), subclass="flag")
    cloth = draft.tint((*CLOTH, *PAINT))
    pole = draft.tint((*WOOD, *METAL, *DARK_METAL))
    stripes = draft.chance(0.5)
    second = draft.other((*PAINT, WHITE), cloth)
    if kind == "banner":
        wide, high = draft.between(0.7, 1.0), draft.proportion(1.2, 2.0, ("short", "tall"))
        tail = [(-wide / 2, 0.25), (0.0, 0.0), (wide / 2, 0.25), (wide / 2, high), (-wide / 2, high)]
        draft.add("cloth", cloth, extrude(tail, 0.08))
        draft.add("pole", pole, cylinder(0.05, wide * 1.25, 8).turned("z", 90).at(y=high))
        if stripes:
            draft.add("stripe", second, box(wide * 0.3, high * 0.62, 0.12).at(y=high * 0.58))
            draft.having_one_colored("stripe", second)
        return
    tall = draft.between(1.6, 2.4)
    draft.add("pole", pole, cylinder(0.045, tall, 8).at(y=tall / 2))
    draft.add("pole", draft.tint(GOLD), ball(0.14, 0.14, 0.14, 8, 4).at(y=tall))
    wide, high = draft.proportion(0.9, 1.5, ("short", "long")), draft.between(0.55, 0.8)
    wave, cycles = draft.between(0.06, 0.14), draft.between(0.8, 1.4)
    if kind == "pennant":
        outline = [(0.0, -high / 2), (0.0, high / 2), (wide, 0.0)]
        draft.add("cloth", cloth, extrude(outline, 0.07).at(0.03, tall - high * 0.6, 0))
        return
    layers = 3 if stripes else 1
    for i in range(layers):
        color = second if i == 1 else cloth
        part = wavy_cloth(wide, high / layers, wave, cycles)
        draft.add("cloth", color, part.at(0.03, tall - 0.1 - high + i * high / layers, 0))
    if stripes:
        draft.having_one_colored("stripe", second)


def gravestone(draft: Draft) -> None:
    """Round-topped and square stones and crosses on a base."""
    stone = draft.tint((*STONE, WHITE))
    draft.material = "stone"
    kind = draft.pick(("round", "round", "square", "cross", "cross"))
    draft.call("cross gravestone" if kind == "cross" else "gravestone", "gravestone", subclass="gravestone")
    wide, high, thick = (
        draft.between(0.6, 0.85),
        draft.proportion(0.8, 1.3, ("short", "tall")),
        draft.between(0.14, 0.24),
    )
    draft.add("base", stone, box(wide * 1.3, 0.16, thick * 2.2).at(y=0.08))
    if kind == "cross":
        arm = draft.between(0.18, 0.24)
        draft.add("cross", stone, bevel_box(arm, high * 1.2, thick, 0.02).at(y=0.14 + high * 0.6))
        draft.add("cross", stone, bevel_box(wide * 1.05, arm, thick * 0.98, 0.02).at(y=0.14 + high * 0.82))
    else:
        half = wide / 2
        if kind == "round":
            curve = arc(half, 0, 180, 8)[:, :2] + np.array([0, high - half + 0.1])
        else:
            curve = np.array([(half, high), (half - 0.12, high + 0.1), (0.12 - half, high + 0.1), (-half, high)])
        draft.add("stone", stone, extrude(np.concatenate([[(-half, 0.1), (half, 0.1)], curve]), thick))
        dark = draft.other(STONE, stone)
        for i in range(draft.count(1, 3)):
            draft.add("text", dark, box(wide * (0.55 - 0.1 * i), 0.05, 0.03).at(0, high * (0.72 - 0.14 * i), thick / 2))
        draft.adjectives.append(kind)
    if draft.chance(0.3):
        grass = draft.tint(((86, 150, 60), (72, 130, 52)))
        for side in (-1, 1):
            tuft = blob(draft.rng, 0.3, 0.22, 0.26, rough=0.15).at(side * wide * 0.5, 0.07, thick * 1.1)
            draft.add("grass", grass, tuft)
        draft.features.append("with grass")


def statue(draft: Draft) -> None:
    """Busts, obelisks, figures and balls on a plinth."""
    stone = draft.tint((*STONE, *GOLD, (90, 130, 110), WHITE))
    draft.material = "stone" if not drawn_from(stone, GOLD) else "golden"
    kind = draft.pick(("bust", "obelisk", "statue", "sphere statue"))
    draft.call(kind, *(() if kind == "statue" else ("statue",)), subclass="obelisk" if kind == "obelisk" else "statue")
    plinth = draft.between(0.3, 0.8)
    draft.add("base", stone, box(0.95, 0.14, 0.95).at(y=0.07), box(0.75, plinth, 0.75).at(y=0.14 + plinth / 2))
    y = 0.14 + plinth
    draft.add("base", stone, box(0.9, 0.1, 0.9).at(y=y + 0.05))
    y += 0.1
    if kind == "obelisk":
        high = draft.between(1.2, 2.2)
        draft.add("obelisk", stone, cylinder(0.42, high, 4, top=0.26).at(y=y + high / 2))
        draft.add("obelisk", stone, cylinder(0.26, 0.3, 4, top=0.0).at(y=y + high + 0.15))
    elif kind == "sphere statue":
        draft.add("ball", stone, icosphere(0.8, 0.8, 0.8, 2).at(y=y + 0.38))
    else:
        _figure(draft, stone, y, full=kind == "statue")


def _figure(draft: Draft, stone: RGB, y: float, *, full: bool) -> None:
    if full:
        for side in (-1, 1):
            draft.add("figure", stone, cylinder(0.1, 0.6, 8, top=0.13).at(side * 0.12, y + 0.3, 0))
        draft.add("figure", stone, cylinder(0.24, 0.6, 8, top=0.28).scaled(1, 1, 0.7).at(y=y + 0.85))
        draft.add("figure", stone, cylinder(0.075, 0.6, 8).turned("z", 12).at(-0.34, y + 0.85, 0))
        draft.add("figure", stone, cylinder(0.075, 0.6, 8).turned("z", 150).at(0.4, y + 1.3, 0))
        y += 1.1
    else:
        profile = [(0.14, 0.0), (0.42, 0.3), (0.3, 0.44), (0.12, 0.5), (0.0, 0.52)]
        draft.add("figure", stone, lathe(profile, 10).scaled(1, 1, 0.65).at(y=y))
        y += 0.42
    draft.add("figure", stone, cylinder(0.1, 0.2, 8).at(y=y + 0.1), icosphere(0.34, 0.42, 0.38, 1).at(y=y + 0.34))


def market_stall(draft: Draft) -> None:
    """A counter with goods under a striped or plain awning on posts."""
    wood, cloth = draft.tint(WOOD), draft.tint(CLOTH)
    draft.call("market stall")
    draft.material = "wooden"
    wide, deep = draft.proportion(1.6, 2.6, ("small", "wide")), draft.between(0.9, 1.2)
    high = draft.between(1.7, 2.1)
    draft.add(
        "counter",
        wood,
        box(wide, 0.1, deep * 0.7).at(0, 0.78, 0.1),
        box(wide * 0.96, 0.7, 0.08).at(0, 0.38, deep * 0.4),
    )
    for side in (-1, 1):
        draft.add("counter", wood, box(0.08, 0.74, deep * 0.6).at(side * wide * 0.46, 0.38, 0.1))
        draft.add("post", wood, box(0.1, high - 0.25, 0.1).at(side * wide * 0.47, (high - 0.25) / 2, deep * 0.46))
        draft.add("post", wood, box(0.1, high + 0.1, 0.1).at(side * wide * 0.47, (high + 0.1) / 2, -deep * 0.46))
    stripes = draft.chance(0.6)
    second = draft.other((WHITE, *CLOTH), cloth)
    number = 7 if stripes else 1
    for i in range(number):
        x = (i - (number - 1) / 2) * wide * 1.12 / number
        color = second if i % 2 else cloth
        strip = box(wide * 1.12 / number, 0.07, deep * 1.5).turned("x", 14).at(x, high, 0.1)
        draft.add("awning", color, strip)
    if stripes:
        draft.features.append("with a striped awning")
    else:
        draft.having_one_colored("awning", cloth)
    for i in range(draft.count(2, 4)):
        fruit = draft.tint(((204, 52, 44), (236, 150, 44), (110, 170, 70), (240, 200, 60)))
        x = (i - 1.5) * wide * 0.22
        draft.add("crate", wood, box(wide * 0.19, 0.16, 0.42).at(x, 0.9, 0.12))
        for k in range(4):
            at = (x + (k % 2 - 0.5) * wide * 0.08, 1.0, 0.12 + (k // 2 - 0.5) * 0.18)
            draft.add("fruit", fruit, icosphere(0.16, 0.16, 0.16, 1).at(*at))
