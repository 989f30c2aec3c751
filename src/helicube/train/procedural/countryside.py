"""Mills, barns and silos, containers, machines and space bases."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import (
    DARK_METAL,
    GLASS,
    LIGHT,
    METAL,
    PAINT,
    PLASTER,
    RGB,
    ROOF,
    STONE,
    WHITE,
    WOOD,
)
from helicube.train.procedural.primitives import box, cone, cylinder, icosphere, link, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe

__all__ = ["container", "farm", "machine", "mill", "space_base"]


def mill(draft: Draft) -> None:
    """Windmills with four sails and modern wind turbines with three blades."""
    if draft.chance(0.3):
        _turbine(draft)
        return
    wall = draft.tint((*PLASTER, *STONE, *WOOD))
    roof = draft.other(ROOF, wall)
    sail, wood = draft.tint((WHITE, (226, 206, 160))), draft.tint(WOOD)
    draft.call("windmill", subclass="windmill")
    sides, high, radius = (
        draft.pick((6, 8, 12)),
        draft.proportion(1.8, 2.8, ("short", "tall")),
        draft.between(0.75, 0.95),
    )
    top = radius * 0.65
    draft.add("wall", wall, cylinder(radius, high, sides, top=top).at(y=high / 2))
    draft.add("roof", roof, cone(top * 1.3, 0.75, sides).at(y=high + 0.35))
    draft.add("door", wood, box(0.42, 0.8, 0.2).at(0, 0.4, radius * 0.9))
    draft.add("window", draft.tint(GLASS), box(0.26, 0.32, 0.2).at(0, high * 0.52, radius * 0.76))
    hub = (0.0, high * 0.92, top + 0.22)
    draft.add("axle", wood, cylinder(0.09, 0.6, 8).turned("x", 90).at(0, hub[1], hub[2] - 0.15))
    long, turn = draft.between(1.1, 1.4), draft.between(0, 90)
    for i in range(4):
        spar = box(0.08, long, 0.06).at(y=long / 2).turned("z", turn + 90 * i).at(*hub)
        cloth = box(0.34, long * 0.72, 0.04).at(0.19, long * 0.6, 0).turned("z", turn + 90 * i).at(*hub)
        draft.add("blades", wood, spar)
        draft.add("blades", sail, cloth)
    draft.having(4, "blade")


def _turbine(draft: Draft) -> None:
    color = draft.tint((WHITE, METAL[3], (190, 200, 210)))
    draft.call("wind turbine", "mill", subclass="wind turbine")
    draft.nouns = ["wind turbine"]
    high, long = draft.between(2.4, 3.2), draft.between(1.2, 1.6)
    draft.add("tower", color, cylinder(0.14, high, 10, top=0.08).at(y=high / 2))
    draft.add("body", color, box(0.22, 0.22, 0.55).at(0, high + 0.05, 0.05))
    draft.add("hub", color, icosphere(0.26, 0.26, 0.3, 1).at(0, high + 0.05, 0.36))
    turn = draft.between(0, 120)
    for i in range(3):
        profile = [(0.04, 0.0), (0.1, 0.2 * long), (0.07, 0.6 * long), (0.02, long)]
        blade = lathe(profile, 6).scaled(1, 1, 0.45).turned("z", turn + 120 * i)
        draft.add("blades", color, blade.at(0, high + 0.05, 0.38))
    draft.having(3, "blade")


def farm(draft: Draft) -> None:
    """Barns with a broken gable, and silos."""
    if draft.chance(0.3):
        _silo(draft)
        return
    wall = draft.tint(((172, 48, 42), (150, 40, 38), (190, 60, 48), *WOOD[:4]))
    roof, trim = draft.other(ROOF, wall), draft.other((WHITE, *WOOD), wall)
    draft.call("barn", subclass="barn")
    wide, long, high = draft.between(1.8, 2.3), draft.proportion(2.0, 3.2, ("short", "long")), draft.between(1.1, 1.4)
    a, b = wide / 2, draft.between(0.45, 0.6)
    gable = [(-a, 0), (a, 0), (a, high), (a * 0.62, high + b), (0, high + b * 1.6), (-a * 0.62, high + b), (-a, high)]
    draft.add("wall", wall, extrude(gable, long))
    edge = [
        (a * 1.1, high - 0.08),
        (a * 0.66, high + b + 0.02),
        (0, high + b * 1.65),
        (-a * 0.66, high + b + 0.02),
        (-a * 1.1, high - 0.08),
    ]
    thick = 0.1
    shell = edge + [(x * 1.04, y + thick) for x, y in edge[::-1]]
    draft.add("roof", roof, extrude(shell, long + 0.3))
    _barn_front(draft, (wall, trim), long / 2, high + b * 0.75)
    draft.having(2, "door")
    draft.having_one_colored("roof", roof)


def _silo(draft: Draft) -> None:
    color, top = draft.tint((*METAL, *PLASTER)), draft.tint((*METAL, *ROOF))
    draft.call("silo", subclass="silo")
    high, radius = draft.proportion(1.8, 3.0, ("short", "tall")), draft.between(0.55, 0.75)
    draft.add("body", color, cylinder(radius, high, 14).at(y=high / 2))
    rings = draft.count(3, 5)
    for i in range(rings):
        draft.add("ring", color, cylinder(radius * 1.03, 0.07, 14).at(y=high * (i + 0.7) / rings))
    dome = [(radius, 0.0), (radius * 0.88, 0.25), (radius * 0.5, 0.48), (0.0, 0.58)]
    draft.add("roof", top, lathe(dome, 14).at(y=high))
    for side in (-1, 1):
        draft.add("ladder", METAL[0], box(0.05, high, 0.05).at(side * 0.14, high / 2, radius + 0.05))
    for i in range(9):
        draft.add("ladder", METAL[0], box(0.3, 0.04, 0.04).at(0, high * (i + 0.5) / 9, radius + 0.05))


def _barn_front(draft: Draft, colors: tuple[RGB, RGB], front: float, loft_y: float) -> None:
    wall, trim = colors
    draft.add("door frame", trim, box(1.0, 1.08, 0.06).at(0, 0.54, front))
    for side, word in ((1, "left"), (-1, "right")):
        draft.add(f"door {word}", wall, box(0.43, 0.98, 0.12).at(side * 0.23, 0.5, front))
        plank = box(0.07, 1.05, 0.04).turned("z", side * 22).at(side * 0.23, 0.5, front + 0.055)
        draft.add(f"door {word}", trim, plank)
    draft.add("window", trim, box(0.46, 0.4, 0.08).at(0, loft_y, front))
    draft.add("window", (58, 46, 40), box(0.34, 0.28, 0.12).at(0, loft_y, front))


def container(draft: Draft) -> None:
    """Shipping containers, storage tanks and futuristic crates."""
    kind = draft.pick(("shipping container", "storage tank", "sci-fi container"))
    draft.call(kind, "container", subclass="shipping container" if kind.startswith("shipping") else "container")
    color = draft.tint((*PAINT, *METAL))
    trim = draft.other((*DARK_METAL, *METAL, *PAINT[8:12]), color)
    draft.material = "metal"
    {"shipping container": _shipping, "storage tank": _storage_tank}.get(kind, _future_crate)(draft, color, trim)


def _shipping(draft: Draft, color: RGB, trim: RGB) -> None:
    long, wide, high = draft.proportion(2.0, 4.0, ("short", "long")), 1.0, 1.05
    draft.add("body", color, box(wide * 0.96, high * 0.96, long * 0.98).at(y=high / 2))
    for sx in (-1, 1):
        for sz in (-1, 1):
            draft.add("frame", color, box(0.09, high, 0.09).at(sx * wide * 0.46, high / 2, sz * (long / 2 - 0.04)))
        number = int(long / 0.28)
        for i in range(number):
            rib = box(0.05, high * 0.86, 0.12).at(sx * wide * 0.48, high / 2, (i - (number - 1) / 2) * 0.27)
            draft.add("side", color, rib)
        draft.add("door", color, box(wide * 0.42, high * 0.88, 0.05).at(sx * wide * 0.22, high / 2, long / 2))
        draft.add("door", trim, cylinder(0.025, high * 0.86, 5).at(sx * wide * 0.1, high / 2, long / 2 + 0.04))


def _storage_tank(draft: Draft, color: RGB, trim: RGB) -> None:
    radius, long = draft.between(0.4, 0.55), draft.between(1.3, 1.9)
    profile = [
        (0.0, 0.0),
        (radius * 0.7, 0.06),
        (radius, 0.25),
        (radius, long - 0.25),
        (radius * 0.7, long - 0.06),
        (0.0, long),
    ]
    tank = lathe(profile, 14)
    if draft.chance(0.5):
        draft.add("tank", color, tank.turned("x", 90).at(0, radius + 0.2, -long / 2))
        for z in (-0.3, 0.3):
            draft.add("stand", trim, box(radius * 1.7, radius, 0.14).at(0, radius / 2, z * long))
        draft.add("valve", trim, cylinder(0.1, 0.2, 8).at(y=2 * radius + 0.28))
    else:
        draft.add("tank", color, tank.at(y=0.25))
        for i in range(4):
            leg = box(0.1, 0.6, 0.1).at(0, 0.3, radius * 0.92).turned("y", 90 * i + 45)
            draft.add("leg", trim, leg)
        draft.having(4, "leg")


def _future_crate(draft: Draft, color: RGB, trim: RGB) -> None:
    wide, high = draft.between(1.0, 1.5), draft.between(0.7, 1.0)
    draft.add("body", color, box(wide, high, 0.9))
    for sx in (-1, 1):
        draft.add("frame", trim, box(0.16, high * 1.12, 1.0).at(sx * wide * 0.44, 0, 0))
    draft.add("frame", trim, box(wide * 1.02, 0.12, 0.96).at(y=high * 0.28))
    glow = draft.tint(((80, 200, 220), (120, 220, 120), (240, 160, 60)))
    draft.add("light", glow, box(wide * 0.34, 0.12, 0.06).at(0, -high * 0.1, 0.45))


def machine(draft: Draft) -> None:
    """Satellite dishes, solar panels, generators, gears and antennas."""
    kind = draft.pick(("satellite dish", "solar panel", "generator", "gear", "antenna"))
    draft.call(kind, subclass=kind)
    draft.wobble = 0.08
    color = draft.tint((*METAL, WHITE, *PAINT))
    dark = draft.other((*DARK_METAL, *METAL), color)
    draft.material = "metal"
    {"satellite dish": _dish, "solar panel": _panel, "generator": _generator, "gear": _gear, "antenna": _antenna}[kind](
        draft, color, dark
    )


def _dish(draft: Draft, color: RGB, dark: RGB) -> None:
    draft.add("base", dark, cylinder(0.4, 0.2, 8, top=0.32).at(y=0.1), cylinder(0.12, 0.7, 8).at(y=0.5))
    bowl = [(0.0, 0.0), (0.45, 0.1), (0.8, 0.34), (0.77, 0.38), (0.42, 0.17), (0.0, 0.08)]
    tilt = draft.between(25, 60)

    def aim(solid: Solid) -> Solid:
        return solid.turned("x", tilt).at(0, 0.85, 0)

    draft.add("dish", color, aim(lathe(bowl, 14)))
    for i in range(3):
        foot = (0.6 * np.sin(2.1 * i), 0.25, 0.6 * np.cos(2.1 * i))
        draft.add("arm", dark, aim(link(foot, (0, 0.72, 0), 0.025, 5)))
    draft.add("receiver", dark, aim(cylinder(0.09, 0.16, 8).at(y=0.74)))


def _panel(draft: Draft, color: RGB, dark: RGB) -> None:
    tilt = draft.between(25, 45)
    wide, high = draft.between(1.3, 2.0), draft.between(0.8, 1.1)
    draft.add("post", dark, cylinder(0.07, 0.8, 8).at(y=0.4), cylinder(0.24, 0.08, 8).at(y=0.04))
    blue = draft.tint(((40, 70, 140), (36, 60, 110), (50, 90, 170)))
    panel = [("frame", color, box(wide, 0.08, high))]
    columns, rows = draft.count(3, 4), 2
    for i in range(columns):
        for j in range(rows):
            at = ((i + 0.5) * wide * 0.96 / columns - wide * 0.48, 0.03, (j + 0.5) * high * 0.94 / rows - high * 0.47)
            panel.append(("cell", blue, box(wide * 0.9 / columns, 0.06, high * 0.86 / rows).at(*at)))
    for part, paint, solid in panel:
        draft.add(part, paint, solid.turned("x", tilt).at(0, 0.85, 0))


def _generator(draft: Draft, color: RGB, dark: RGB) -> None:
    draft.add("body", color, box(1.1, 0.7, 0.7).at(y=0.5))
    draft.add("base", dark, box(1.25, 0.14, 0.85).at(y=0.07))
    draft.add("pipe", dark, cylinder(0.09, 0.5, 8).at(0.35, 1.0, -0.15), cylinder(0.12, 0.08, 8).at(0.35, 1.25, -0.15))
    draft.add("dial", LIGHT[1], cylinder(0.14, 0.06, 12).turned("x", 90).at(-0.3, 0.58, 0.36))
    for i in range(4):
        draft.add("grill", dark, box(0.44, 0.05, 0.06).at(0.24, 0.36 + 0.11 * i, 0.345))


def _gear(draft: Draft, color: RGB, dark: RGB) -> None:
    teeth = draft.count(8, 12)
    draft.add("gear", color, torus(0.5, 0.36, teeth * 2, 4).turned("x", 90).scaled(1, 1, 0.9))
    for i in range(teeth):
        draft.add("gear", color, box(0.18, 0.2, 0.24).at(y=0.7).turned("z", 360 * i / teeth))
    if draft.chance(0.5):
        draft.add("hub", dark, cylinder(0.16, 0.34, 10).turned("x", 90))
        for i in range(3):
            draft.add("spoke", color, box(0.1, 0.9, 0.14).turned("z", 60 * i))


def _antenna(draft: Draft, color: RGB, dark: RGB) -> None:
    high = draft.between(2.0, 2.8)
    for i in range(4):
        turn = 90 * i + 45
        draft.add("mast", color, link((0, 0, 0.42), (0, high, 0.07), 0.035, 5).turned("y", turn))
        for k in range(4):
            t = (k + 1) / 5
            radius, y = 0.42 + (0.07 - 0.42) * t, high * t
            a, b = np.radians(turn), np.radians(turn + 90)
            start = (radius * np.sin(a), y, radius * np.cos(a))
            stop = (radius * np.sin(b), y, radius * np.cos(b))
            draft.add("mast", color, link(start, stop, 0.022, 4))
    draft.add("top", dark, cylinder(0.03, 0.6, 6).at(y=high + 0.28), icosphere(0.14, 0.14, 0.14, 1).at(y=high + 0.6))
    draft.add("drum", dark, cylinder(0.16, 0.1, 10).turned("x", 90).at(0, high * 0.8, 0.16))


def space_base(draft: Draft) -> None:
    """Domes, cylinders and hangars with airlocks, for planets."""
    wall = draft.tint((*METAL, WHITE, (214, 196, 152)))
    trim = draft.other((*DARK_METAL, (236, 134, 44), (54, 104, 200), (204, 48, 44)), wall)
    kind = draft.pick(("dome", "dome", "hangar", "modules"))
    draft.call("hangar" if kind == "hangar" else "space base", subclass="hangar" if kind == "hangar" else "space base")
    glow = draft.tint(GLASS)
    if kind == "hangar":
        long = draft.proportion(1.8, 3.0, ("short", "long"))
        angle = np.radians(np.linspace(0, 180, 11))
        outline = np.stack([1.1 * np.cos(angle), 1.2 * np.sin(angle)], axis=1)
        draft.add("wall", wall, extrude(outline, long))
        for z in (-0.46, 0.0, 0.46):
            draft.add("rib", trim, extrude(outline * 1.04, 0.12).at(z=z * long))
        draft.add("door", trim, extrude(outline * 0.72, 0.1).at(z=long / 2))
        return
    centers = [(0.0, 0.0, 1.0)]
    if kind == "modules":
        centers = [(0.0, 0.0, 0.8), (1.7, 0.0, 0.6), (0.0, -1.6, 0.6)][: draft.count(2, 3)]
        draft.having(len(centers), "module")
    for x, z, size in centers:
        draft.add("base", trim, cylinder(size * 1.08, 0.16, 12).at(x, 0.08, z))
        draft.add("wall", wall, cylinder(size, 0.5 * size, 12).at(x, 0.16 + 0.25 * size, z))
        profile = [(size, 0.0), (size * 0.88, 0.38 * size), (size * 0.5, 0.66 * size), (0.0, 0.76 * size)]
        draft.add("dome", glow if draft.chance(0.5) else wall, lathe(profile, 12).at(x, 0.16 + 0.5 * size, z))
        if (x, z) != (0.0, 0.0):
            tunnel = link((0, 0.4, 0), (x, 0.4, z), 0.24, 8)
            draft.add("tunnel", trim, tunnel)
    size = centers[0][2]
    draft.add("airlock", trim, box(0.6, 0.6, 0.4).at(0, 0.36, size + 0.05))
    draft.add("door", glow, box(0.4, 0.46, 0.1).at(0, 0.32, size + 0.24))
    if draft.chance(0.6):
        draft.add("antenna", trim, link((0.2, 0.8, 0), (0.3, 1.25 * size + 0.9, 0), 0.03, 5))
        draft.features.append("with an antenna")
