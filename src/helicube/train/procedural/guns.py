"""Pistols, rifles and cannons; muzzles towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, DARK_METAL, GOLD, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import bevel_box, box, cylinder, icosphere
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, tube
from helicube.train.procedural.wheels import spoked_wheel

__all__ = ["cannon", "pistol", "rifle"]

_GUN: tuple[RGB, ...] = (BLACK, *DARK_METAL, METAL[4], METAL[0])


def _barrel(radius: float, back: float, front: float, y: float, sides: int = 8) -> Solid:
    return cylinder(radius, front - back, sides).turned("x", 90).at(0, y, (front + back) / 2)


def _side(points: list[tuple[float, float]], wide: float) -> Solid:
    """Extrude an outline of (z, y) points along x."""
    return extrude(points, wide).turned("y", -90)


def _guard(draft: Draft, color: RGB, z: float, y: float) -> None:
    path = [(0, y, z - 0.14), (0, y - 0.16, z - 0.1), (0, y - 0.17, z + 0.08), (0, y, z + 0.14)]
    draft.add("trigger", color, tube(path, 0.024, 5), box(0.04, 0.13, 0.04).at(0, y - 0.08, z))


_HANDLE = ((-0.22, 0.1), (0.1, 0.1), (0.0, -0.55), (-0.36, -0.55))


def pistol(draft: Draft) -> None:
    """Automatic pistols, revolvers, flintlocks and ray guns."""
    kind = draft.pick(("pistol", "pistol", "revolver", "flintlock pistol", "blaster"))
    steel = draft.tint(_GUN)
    grip = draft.other((*WOOD, BLACK, *DARK_METAL), steel)
    draft.call(
        kind,
        *(("pistol",) if kind in {"flintlock pistol", "blaster"} else ()),
        subclass="revolver" if kind == "revolver" else "pistol",
    )
    draft.material = "metal"
    long = draft.proportion(0.85, 1.3, ("short", "long"))
    makers = {"pistol": _automatic, "revolver": _revolver, "flintlock pistol": _flintlock, "blaster": _blaster}
    makers[kind](draft, (steel, grip), long)
    _guard(draft, steel, 0.16, 0.05)


def _automatic(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    steel, grip = colors
    draft.add("slide", steel, bevel_box(0.22, 0.22, long, 0.03).at(0, 0.22, long / 2 - 0.3))
    frame = draft.other(_GUN, steel) if draft.chance(0.4) else steel
    draft.add("frame", frame, box(0.19, 0.12, long * 0.85).at(0, 0.08, long * 0.38 - 0.25))
    draft.add("grip", grip, _side(list(_HANDLE), 0.2))
    draft.add("sight", frame, box(0.05, 0.06, 0.06).at(0, 0.35, long - 0.38), box(0.1, 0.06, 0.05).at(0, 0.35, -0.24))
    draft.add("muzzle", BLACK, _barrel(0.06, long - 0.4, long - 0.27, 0.23))


def _revolver(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    steel, grip = colors
    draft.add("barrel", steel, _barrel(0.08, 0.1, long, 0.26), box(0.1, 0.1, long - 0.1).at(0, 0.16, long / 2 + 0.05))
    draft.add("cylinder", steel, cylinder(0.17, 0.34, 6).turned("x", 90).at(0, 0.2, 0.1))
    draft.add("frame", steel, _side([(-0.25, 0.3), (-0.15, 0.36), (0.32, 0.36), (0.32, 0.02), (-0.2, 0.02)], 0.12))
    draft.add("grip", grip, _side([(-0.26, 0.2), (0.02, 0.06), (-0.14, -0.45), (-0.46, -0.42)], 0.18))
    draft.add("hammer", steel, box(0.06, 0.14, 0.06).turned("x", -30).at(0, 0.38, -0.26))


def _flintlock(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    steel, _ = colors
    draft.add(
        "barrel",
        steel,
        lathe([(0.0, 0.0), (0.09, 0.0), (0.07, long), (0.1, long + 0.05), (0.0, long + 0.05)], 8)
        .turned("x", 90)
        .at(0, 0.26, -0.1),
    )
    stock = [(long * 0.75, 0.2), (long * 0.75, 0.1), (0.0, 0.02), (-0.35, -0.35), (-0.52, -0.25), (-0.15, 0.24)]
    draft.add("grip", draft.tint(WOOD), _side(stock, 0.16))
    draft.add("hammer", draft.tint(GOLD), box(0.05, 0.2, 0.08).turned("x", -25).at(0.08, 0.36, -0.05))


def _blaster(draft: Draft, colors: tuple[RGB, RGB], _long: float) -> None:
    _, grip = colors
    paint = draft.tint(PAINT)
    draft.add(
        "body",
        paint,
        lathe([(0.0, -0.4), (0.2, -0.3), (0.24, 0.0), (0.14, 0.3), (0.0, 0.3)], 10).turned("x", 90).at(0, 0.24, 0),
    )
    for i in range(3):
        draft.add(
            "ring",
            draft.other((WHITE, *METAL), paint),
            cylinder(0.16 - 0.03 * i, 0.06, 10).turned("x", 90).at(0, 0.24, 0.34 + 0.14 * i),
        )
    draft.add("barrel", paint, _barrel(0.07, 0.2, 0.75, 0.24))
    draft.add("muzzle", draft.pieces[1].color, icosphere(0.18, 0.18, 0.18, 1).at(0, 0.24, 0.8))
    draft.add("grip", grip, _side(list(_HANDLE), 0.2))


def rifle(draft: Draft) -> None:
    """Hunting rifles, assault rifles, shotguns and sniper rifles."""
    kind = draft.pick(("rifle", "assault rifle", "shotgun", "sniper rifle"))
    steel = draft.tint(_GUN)
    wooden = kind in {"rifle", "shotgun"} or draft.chance(0.2)
    stock = draft.tint(WOOD) if wooden else draft.other((*_GUN, *PAINT[10:16], (92, 96, 58)), steel)
    draft.call(kind, *(("rifle",) if kind != "rifle" else ()), subclass="rifle" if "assault" in kind else kind)
    draft.material = "wooden" if wooden else "metal"
    long = draft.proportion(1.4, 2.1, ("short", "long")) if kind != "assault rifle" else draft.between(1.0, 1.3)
    butt = [(-0.25, 0.16), (-0.25, -0.04), (-0.5, -0.12), (-1.0, -0.3), (-1.05, 0.1), (-0.6, 0.12)]
    draft.add("stock", stock, _side(butt, 0.15))
    draft.add("receiver", steel, bevel_box(0.18, 0.26, 0.7, 0.03).at(0, 0.1, 0.05))
    draft.add("barrel", steel, _barrel(0.055, 0.3, long, 0.16))
    if kind == "shotgun":
        draft.add("barrel", steel, _barrel(0.055, 0.3, long * 0.92, 0.04))
        draft.add("pump", stock, bevel_box(0.17, 0.17, 0.45, 0.04).at(0, 0.05, long * 0.55))
    else:
        draft.add("guard", stock, bevel_box(0.15, 0.15, long * 0.45, 0.04).at(0, 0.1, 0.35 + long * 0.2))
    if kind in {"assault rifle", "sniper rifle"}:
        draft.add("grip", stock, _side([(-0.3, 0.0), (-0.1, 0.0), (-0.2, -0.36), (-0.4, -0.36)], 0.14))
        curve = _side([(0.08, 0.0), (0.3, 0.0), (0.4, -0.45), (0.2, -0.5)], 0.12)
        draft.add("magazine", steel, curve)
        draft.features.append("with a magazine")
    if kind == "sniper rifle" or draft.chance(0.25):
        draft.add(
            "scope",
            DARK_METAL[2],
            _barrel(0.075, -0.2, 0.4, 0.38),
            _barrel(0.1, 0.32, 0.48, 0.38),
            box(0.06, 0.16, 0.3).at(0, 0.28, 0.1),
        )
        draft.features.append("with a scope")
    else:
        draft.add(
            "sight", steel, box(0.04, 0.1, 0.05).at(0, 0.25, long - 0.08), box(0.08, 0.08, 0.06).at(0, 0.26, -0.1)
        )
    _guard(draft, steel, -0.08, -0.02)


def cannon(draft: Draft) -> None:
    """Cannons on a wheeled carriage, ship's guns, and sentry turrets."""
    if draft.chance(0.35):
        _turret(draft)
        return
    metal = draft.tint((*DARK_METAL, *METAL, *GOLD))
    wood = draft.tint(WOOD)
    draft.call("cannon")
    draft.material = "metal"
    long, radius = draft.proportion(1.4, 2.0, ("short", "long")), draft.between(0.2, 0.28)
    profile = [
        (0.0, -0.12), (0.08, -0.1), (0.06, 0.0), (radius * 1.1, 0.06), (radius * 1.1, 0.2), (radius, 0.22),
        (radius * 0.8, long - 0.15), (radius, long - 0.1), (radius, long), (radius * 0.55, long),
        (radius * 0.55, long - 0.3), (0.0, long - 0.32),
    ]  # fmt: skip
    tilt = -draft.between(0, 14)
    gun = lathe(profile, 12).turned("x", 90).at(0, 0, -long * 0.4)
    wheel = draft.between(0.38, 0.55)
    big = draft.chance(0.65)
    axle = wheel if big else 0.4
    draft.add("barrel", metal, gun.turned("x", tilt).at(0, axle + 0.2, 0.1))
    for side in (-1, 1):
        cheek = _carriage_cheek(long, axle)
        draft.add("carriage", wood, cheek.at(side * (radius + 0.12)))
    draft.add("carriage", wood, box(radius * 2 + 0.1, 0.12, long * 0.5).at(0, axle - 0.1, -0.15))
    if big:
        for side in (-1, 1):
            solids = [solid.at(side * (radius + 0.3), wheel, 0.1) for solid in spoked_wheel(wheel, 0.12, 8)]
            draft.add("wheel left" if side > 0 else "wheel right", wood, *solids)
        draft.add("carriage", wood, cylinder(0.06, radius * 2 + 0.5, 6).turned("z", 90).at(0, wheel, 0.1))
        draft.having(2, "wheel")
    else:
        for side, word in ((1, "left"), (-1, "right")):
            for z, name in ((0.35, "front"), (-0.45, "back")):
                solid = cylinder(0.2, 0.12, 10).turned("z", 90).at(side * (radius + 0.24), 0.2, z)
                draft.add(f"wheel {name} {word}", wood, solid)
        draft.having(4, "wheel")


def _carriage_cheek(long: float, axle: float) -> Solid:
    back = -long * 0.55
    outline = [
        (0.45, axle - 0.12),
        (0.45, axle + 0.14),
        (0.0, axle + 0.14),
        (-0.3, axle),
        (back, 0.14),
        (back, 0.0),
        (-0.3, axle - 0.22),
    ]
    return extrude(outline, 0.1).turned("y", -90)


def _turret(draft: Draft) -> None:
    paint = draft.tint((*PAINT, *METAL))
    dark = draft.other((*DARK_METAL, *METAL), paint)
    draft.call("turret", subclass="turret")
    draft.material = "metal"
    draft.add("base", dark, cylinder(0.6, 0.2, 8, top=0.45).at(y=0.1), cylinder(0.22, 0.5, 8).at(y=0.4))
    draft.add("turret", paint, bevel_box(0.75, 0.5, 0.8, 0.08).at(0, 0.85, 0))
    barrels = draft.count(1, 2)
    for i in range(barrels):
        x = (i - (barrels - 1) / 2) * 0.36
        draft.add("gun", dark, _barrel(0.09, 0.3, 1.1, 0.86).at(x), _barrel(0.12, 1.0, 1.2, 0.86).at(x))
    draft.having(barrels, "barrel")
    glow = draft.tint(((220, 60, 60), (80, 190, 240)))
    draft.add("light", glow, cylinder(0.08, 0.1, 8).turned("x", 90).at(0, 1.02, 0.4))
