"""Swords, axes, hammers, bows and other hand weapons (upright), and shields (facing +Z)."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, CLOTH, DARK_METAL, GOLD, METAL, PAINT, RGB, WOOD
from helicube.train.procedural.primitives import arc, ball, bevel_box, box, cone, cylinder, icosphere, link, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, loft, tube

__all__ = ["shield", "weapon"]

_STEEL: tuple[RGB, ...] = (METAL[2], METAL[3], METAL[0], DARK_METAL[1])


def weapon(draft: Draft) -> None:
    """Swords, daggers, axes, hammers, bows, spears, maces, staffs and bombs."""
    kind = draft.pick(
        (
            "sword",
            "sword",
            "sword",
            "sword",
            "knife",
            "axe",
            "axe",
            "hammer",
            "bow",
            "spear",
            "mace",
            "staff",
            "bomb",
            "crossbow",
        )
    )
    sub = {"spear": "staff", "mace": "hammer"}.get(kind, kind)
    draft.call(kind, *(() if kind == "bomb" else ("weapon",)), subclass=sub)
    makers = {
        "sword": _sword, "knife": _knife, "axe": _axe, "hammer": _hammer, "bow": _bow, "spear": _spear, "mace": _mace,
        "staff": _staff, "bomb": _bomb, "crossbow": _crossbow,
    }  # fmt: skip
    draft.wobble = 0.1
    makers[kind](draft)


def _blade(wide: float, long: float, thick: float, point: float) -> Solid:
    """A two-edged blade on y = 0 with a diamond section, pointed over its last `point`."""
    rings = [
        [(w / 2, y, 0), (0, y, -t / 2), (-w / 2, y, 0), (0, y, t / 2)]
        for y, w, t in ((0, wide, thick), (long - point, wide * 0.85, thick), (long, 0.0, 0.0))
    ]
    return loft(rings)


def _sword(draft: Draft) -> None:
    steel = draft.tint(_STEEL)
    hilt, grip = draft.other((*GOLD, *METAL, *DARK_METAL), steel), draft.tint((*WOOD[:4], BLACK, *CLOTH[:3]))
    draft.material = "metal"
    long, wide = draft.proportion(1.2, 2.1, ("short", "long")), draft.between(0.2, 0.34)
    curved = draft.chance(0.2)
    blade = _blade(wide, long, draft.between(0.07, 0.11), draft.between(0.2, 0.5))
    draft.add("blade", steel, blade.bent(-draft.between(15, 30)) if curved else blade)
    guard = draft.between(0.6, 0.9)
    style = draft.pick(("bar", "wings", "disk"))
    if style == "disk":
        draft.add("guard", hilt, cylinder(guard * 0.32, 0.08, 10))
    else:
        draft.add("guard", hilt, bevel_box(guard, 0.13, 0.15, 0.03))
        if style == "wings":
            for side in (-1, 1):
                draft.add("guard", hilt, link((side * guard * 0.45, 0, 0), (side * guard * 0.58, 0.16, 0), 0.06, 6))
    grip_long = draft.between(0.35, 0.5)
    draft.add("handle", grip, cylinder(0.07, grip_long, 8).at(y=-grip_long / 2))
    draft.add("pommel", hilt, icosphere(0.2, 0.2, 0.2, 1).at(y=-grip_long - 0.05))
    if curved:
        draft.adjectives.append("curved")


def _knife(draft: Draft) -> None:
    steel, grip = draft.tint(_STEEL), draft.tint((*WOOD, BLACK))
    if draft.chance(0.5):
        draft.call("dagger", "knife", subclass="knife")
        draft.add("blade", steel, _blade(0.24, draft.between(0.7, 1.0), 0.08, 0.35))
        draft.add("guard", draft.other((*GOLD, *METAL), steel), bevel_box(0.5, 0.1, 0.14, 0.03))
    else:
        long = draft.between(0.8, 1.2)
        outline = [(-0.14, 0.0), (0.16, 0.0), (0.16, long * 0.6), (-0.06, long), (-0.14, long)]
        draft.add("blade", steel, extrude(outline, 0.06))
    draft.add("handle", grip, bevel_box(0.18, 0.55, 0.14, 0.04).at(y=-0.3))
    draft.features.append("with a handle")


def _shaft(draft: Draft, long: float, thick: float) -> RGB:
    """A wooden shaft on y = 0 with a wrapped grip; returns the wood's colour."""
    wood = draft.tint(WOOD)
    draft.add("handle", wood, cylinder(thick, long, 8).at(y=long / 2))
    if draft.chance(0.4):
        wrap = draft.other((*CLOTH[:5], BLACK), wood)
        draft.add("handle", wrap, cylinder(thick * 1.15, long * 0.25, 8).at(y=long * 0.16))
    return wood


def _axe(draft: Draft) -> None:
    steel = draft.tint(_STEEL)
    double = draft.chance(0.35)
    if double:
        draft.call("double-bladed axe", "axe", subclass="axe")
    long = draft.proportion(1.1, 2.0, ("short", "long"))
    _shaft(draft, long, 0.07)
    reach, spread = draft.between(0.42, 0.6), draft.between(0.32, 0.48)
    y = long * 0.85
    edge = arc(reach, -38, 38, 5)[:, :2] * np.array([1.0, spread / (reach * 0.616)])
    outline = np.concatenate([[(0.0, 0.13), (0.0, -0.13)], edge])
    head = extrude(outline, 0.13).at(y=y)
    draft.add("blade", steel, head)
    if double:
        draft.add("blade", steel, head.mirrored("x"))
        draft.having(2, "blade")
    else:
        draft.add("head", steel, box(0.24, 0.26, 0.16).at(-0.06, y, 0))
    draft.add("head", steel, cylinder(0.1, 0.34, 8).at(y=y))


def _hammer(draft: Draft) -> None:
    steel = draft.tint(_STEEL)
    tool = draft.chance(0.4)
    draft.call(*(("hammer",) if tool else draft.pick((("war hammer", "hammer"), ("hammer",)))), subclass="hammer")
    long = draft.between(0.9, 1.2) if tool else draft.proportion(1.2, 1.9, ("short", "long"))
    _shaft(draft, long, 0.07)
    if tool:
        draft.add(
            "head",
            steel,
            box(0.3, 0.18, 0.18).at(0, long, 0),
            cylinder(0.12, 0.24, 8).turned("z", 90).at(0.25, long, 0),
        )
        draft.add("head", steel, extrude([(0, 0.09), (0, -0.09), (-0.36, -0.02)], 0.18).at(-0.13, long, 0))
    else:
        size = draft.between(0.3, 0.42)
        draft.add("head", steel, bevel_box(size * 2.2, size, size, 0.05).at(y=long))
        trim = draft.other((*GOLD, *DARK_METAL), steel)
        draft.add("head", trim, box(0.16, size * 1.06, size * 1.06).at(y=long))


def _bow(draft: Draft) -> None:
    wood = draft.tint((*WOOD, *GOLD))
    draft.material = "wooden"
    high = draft.between(0.95, 1.2)
    t = np.linspace(-1, 1, 13)
    bend = draft.between(0.35, 0.5)
    recurve = draft.pick((0.0, 0.22))
    x = bend * (1 - t**2) - recurve * (1 - np.abs(t)) * 0.6 - recurve * 0.2 * np.cos(2 * np.pi * t)
    path = np.stack([x, high * t, 0 * t], axis=1)
    draft.add("bow", wood, tube(path, list(0.03 + 0.05 * (1 - t**2)), 6))
    grip = draft.other((*CLOTH[:5], *DARK_METAL), wood)
    draft.add("grip", grip, cylinder(0.1, 0.3, 8).at(float(x[6]), 0, 0))
    draft.add("string", (226, 222, 210), link(path[0], path[-1], 0.018, 4))
    if draft.chance(0.3):
        y_tip = float(x[6]) + 0.3
        draft.add("arrow", draft.other(WOOD, wood), link((-0.4, 0, 0), (y_tip, 0, 0), 0.022, 5))
        draft.add("arrow", METAL[1], cone(0.07, 0.16, 4).turned("z", -90).at(y_tip + 0.05, 0, 0))
        draft.features.append("with an arrow")


def _spear(draft: Draft) -> None:
    steel = draft.tint(_STEEL)
    long = draft.between(1.8, 2.4)
    _shaft(draft, long, 0.06)
    if draft.chance(0.25):
        draft.call("trident", "weapon", subclass="staff")
        draft.add("head", steel, box(0.6, 0.09, 0.1).at(y=long))
        for i in (-1, 0, 1):
            draft.add("head", steel, cylinder(0.05, 0.42, 6, top=0.0).at(i * 0.26, long + 0.22, 0))
        draft.having(3, "point")
        return
    draft.add("head", steel, _blade(0.26, 0.6, 0.1, 0.4).at(y=long - 0.02), cylinder(0.09, 0.16, 8).at(y=long))


def _mace(draft: Draft) -> None:
    steel = draft.tint((*_STEEL, *DARK_METAL))
    draft.material = "metal"
    long = draft.between(1.0, 1.5)
    _shaft(draft, long, 0.07)
    size = draft.between(0.4, 0.55)
    draft.add("head", steel, icosphere(size, size, size, 1).at(y=long))
    spikes = draft.pick((0, 8, 12))
    for i in range(spikes):
        up = -0.8 + 1.6 * (i + 0.5) / spikes
        lean = float(np.degrees(np.arccos(up)))
        spike = cone(0.08, 0.22, 5).at(y=size / 2 + 0.06).turned("x", lean).turned("y", 137.5 * i)
        draft.add("spike", steel, spike.at(y=long))
    draft.features += ["with spikes"] if spikes else []


def _staff(draft: Draft) -> None:
    wood = draft.tint(WOOD)
    gem = draft.tint(((96, 190, 230), (150, 90, 200), (70, 180, 120), (220, 60, 60), (240, 200, 80)))
    draft.material = "wooden"
    draft.call(*draft.pick((("staff", "weapon"), ("magic staff", "staff"))), subclass="staff")
    long = draft.between(1.8, 2.3)
    sway = draft.between(0.0, 0.06)
    y = np.linspace(0, 1, 8)
    path = np.stack([sway * np.sin(y * 7), long * y, sway * np.cos(y * 5)], axis=1)
    draft.add("staff", wood, tube(path, list(np.linspace(0.055, 0.075, 8)), 7))
    top = path[-1]
    for i in range(3):
        claw = arc(0.17, -90, 50, 4) + np.array([0, 0.15, 0])
        draft.add("staff", wood, tube(claw, [0.05, 0.045, 0.04, 0.03, 0.02], 5).turned("y", 120 * i).at(*top))
    draft.add(
        "crystal",
        gem,
        icosphere(0.28, 0.36, 0.28, draft.pick((0, 1))).at(float(top[0]), float(top[1]) + 0.2, float(top[2])),
    )
    draft.having_one_colored("crystal", gem)


def _bomb(draft: Draft) -> None:
    color = draft.tint((BLACK, DARK_METAL[2], *PAINT[:4]))
    draft.adjectives.append("round")
    draft.add("bomb", color, icosphere(1.0, 1.0, 1.0, 2))
    draft.add("cap", draft.other((*DARK_METAL, *METAL), color), cylinder(0.18, 0.18, 10).at(y=0.53))
    fuse = np.array([(0, 0.6, 0), (0.03, 0.75, 0), (0.14, 0.85, 0), (0.27, 0.88, 0)])
    draft.add("fuse", (206, 176, 120), tube(fuse, 0.04, 6))
    if draft.chance(0.5):
        draft.add("spark", (248, 180, 60), icosphere(0.2, 0.2, 0.2, 0).at(0.32, 0.88, 0))
        draft.adjectives.append("lit")


def _crossbow(draft: Draft) -> None:
    wood, steel = draft.tint(WOOD), draft.tint(_STEEL)
    draft.material = "wooden"
    draft.add("stock", wood, box(0.16, 0.18, 1.5), box(0.14, 0.32, 0.42).at(0, -0.12, -0.62))
    bend = arc(0.9, 40, 140, 8)[:, [0, 2, 1]] - np.array([0, 0, 0.32])
    draft.add("bow", steel, tube(bend, [0.025, 0.04, 0.05, 0.06, 0.065, 0.06, 0.05, 0.04, 0.025], 6).at(0, 0.05, 0.12))
    for side in (-1, 1):
        end = bend[0] if side > 0 else bend[-1]
        draft.add("string", (226, 222, 210), link(end + np.array([0, 0.05, 0.12]), (0, 0.1, -0.2), 0.018, 4))
    draft.add("bolt", wood, link((0, 0.12, -0.2), (0, 0.12, 0.85), 0.025, 5))
    draft.add("bolt", steel, cone(0.06, 0.16, 4).turned("x", 90).at(0, 0.12, 0.9))
    draft.add("trigger", steel, box(0.05, 0.2, 0.06).at(0, -0.16, -0.3))


def shield(draft: Draft) -> None:
    """Round shields, kite and heater shields with rims, bosses and crosses."""
    face = draft.tint(WOOD) if draft.chance(0.5) else draft.tint((*PAINT, *METAL))
    rim = draft.other((*METAL, *GOLD, *DARK_METAL), face)
    draft.call("shield")
    kind = draft.pick(("round", "round", "heater", "kite"))
    if kind == "round":
        draft.adjectives.append("round")
        sides = draft.pick((12, 16, 20))
        disk = lathe([(0.0, -0.06), (0.95, -0.1), (0.95, -0.02), (0.5, 0.07), (0.0, 0.1)], sides).turned("x", 90)
        draft.add("face", face, disk)
        draft.add("rim", rim, torus(0.96, 0.14, sides, 5).turned("x", 90).at(z=-0.05))
        draft.add("boss", rim, ball(0.42, 0.24, 0.42, 10, 4).turned("x", 90).at(z=0.1))
    else:
        draft.call(f"{kind} shield", "shield", subclass="shield")
        high = 1.0 if kind == "heater" else 1.3
        t = np.linspace(0, 1, 6)
        right = np.stack([0.8 * np.cos(t * np.pi / 2) ** 0.8, 0.25 - high * 1.15 * t**1.3], axis=1)
        right[-1, 0] = 0.0
        top = [(0.8, 0.8), (0.0, 0.9)] if kind == "heater" else [(0.72, 0.62), (0.4, 0.84), (0.0, 0.92)]
        half = np.concatenate([np.array(top)[::-1], right])
        outline = np.concatenate([half[:-1], half[-1:], (half * [-1, 1])[1:-1][::-1]])
        draft.add("rim", rim, extrude(outline, 0.12))
        draft.add("face", face, extrude(outline * 0.87 + np.array([0, 0.0]), 0.2))
        if draft.chance(0.6):
            draft.add("cross", rim, box(0.16, 1.35, 0.26).at(0, 0.05, 0), box(1.2, 0.16, 0.26).at(0, 0.35, 0))
            draft.features.append("with a cross")
    draft.having_one_colored("rim", rim)
