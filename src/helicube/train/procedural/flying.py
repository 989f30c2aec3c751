"""Aeroplanes, helicopters, rockets and spaceships; their noses at +Z (rockets: up)."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import DARK_METAL, GLASS, METAL, PAINT, RGB, WHITE
from helicube.train.procedural.primitives import ball, box, cylinder, frustum, icosphere, link
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import lathe, loft

__all__ = ["airplane", "spaceship"]

_GLOW: tuple[RGB, ...] = ((80, 190, 240), (240, 160, 60), (120, 220, 160), (230, 90, 70))


def fuselage(profile: list[tuple[float, float]], sides: int = 10) -> Solid:
    """A body of revolution along z from (radius, z) points, back to front."""
    return lathe(profile, sides, phase=0.5).turned("x", 90)


def wing(span: float, root: tuple[float, float], tip: tuple[float, float], rise: float = 0.0) -> Solid:
    """A wing along +x from x = 0; root and tip are (back z, front z); `rise` lifts the tip."""
    rings = []
    for x, (back, front), y, thick in ((0.0, root, 0.0, 0.07), (span, tip, rise, 0.04)):
        middle = (back + 2 * front) / 3
        rings.append([(x, y, back), (x, y + thick, middle), (x, y, front), (x, y - thick, middle)])
    return loft(rings)


def _pair(draft: Draft, part: str, color: RGB, solid: Solid) -> None:
    draft.add(f"{part} left", color, solid)
    draft.add(f"{part} right", color, solid.mirrored("x"))


def airplane(draft: Draft) -> None:
    """Airliners, propeller planes, fighters and helicopters."""
    kind = draft.pick(("airliner", "propeller plane", "propeller plane", "fighter jet", "helicopter", "biplane"))
    paint = draft.tint((WHITE, *PAINT, *METAL))
    trim = draft.other(PAINT, paint)
    draft.call(
        kind,
        *(() if kind == "helicopter" else ("airplane",)),
        subclass="helicopter" if kind == "helicopter" else "airplane",
    )
    glass = draft.tint(GLASS)
    if kind == "helicopter":
        _helicopter(draft, (paint, trim, glass))
    elif kind == "airliner":
        _airliner(draft, (paint, trim, glass))
    elif kind == "fighter jet":
        _fighter(draft, (paint, trim, glass))
    else:
        _propeller_plane(draft, (paint, trim, glass), double=kind == "biplane")


def _airliner(draft: Draft, colors: tuple[RGB, RGB, RGB]) -> None:
    paint, trim, glass = colors
    long = draft.proportion(3.6, 5.0, ("short", "long"))
    half, r = long / 2, 0.34
    draft.add(
        "body",
        paint,
        fuselage(
            [(0.0, -half), (0.1, -half + 0.05), (r, -half + 1.1), (r, half - 0.6), (0.2, half - 0.15), (0.0, half)], 12
        ),
    )
    draft.add("window", glass, box(0.44, 0.12, 0.22).at(0, 0.14, half - 0.42))
    for side in (-1, 1):
        draft.add("window", glass, box(0.03, 0.09, long * 0.6).at(side * 0.325, 0.08, -0.1))
    span = draft.between(1.9, 2.4)
    _pair(draft, "wing", paint, wing(span, (-0.5, 0.6), (-1.1, -0.75), 0.2).at(0, -0.12, 0.1))
    _pair(draft, "tail wing", trim, wing(0.85, (-0.25, 0.3), (-0.45, -0.2), 0.08).at(0, 0.08, -half + 0.4))
    fin = wing(0.95, (-0.3, 0.45), (-0.5, -0.15)).turned("z", 90)
    draft.add("tail", trim, fin.at(0, 0.1, -half + 0.45))
    engines = draft.pick((2, 2, 4))
    for i in range(engines // 2):
        x = 0.75 + 0.65 * i
        pod = cylinder(0.16, 0.6, 10, top=0.13).turned("x", -90).at(x, -0.25 + 0.06 * i, 0.25 - 0.35 * i)
        _pair(draft, "engine", trim, pod)
    draft.having(engines, "engine")


def _propeller_plane(draft: Draft, colors: tuple[RGB, RGB, RGB], *, double: bool) -> None:
    paint, trim, glass = colors
    half = draft.between(1.2, 1.5)
    draft.add(
        "body",
        paint,
        fuselage(
            [
                (0.0, -half),
                (0.1, -half + 0.02),
                (0.3, 0.0),
                (0.34, half * 0.55),
                (0.28, half * 0.9),
                (0.0, half * 0.92),
            ],
            10,
        ),
    )
    draft.add("window", glass, ball(0.42, 0.5, 0.85, 8, 6).at(0, 0.24, 0.25))
    span = draft.between(1.4, 1.9)
    heights = (-0.2, 0.62) if double else (draft.pick((-0.12, 0.32)),)
    for y in heights:
        _pair(draft, "wing", trim if double else paint, wing(span, (-0.3, 0.36), (-0.25, 0.28), 0.06).at(0, y, 0.35))
    if double:
        for side in (-1, 1):
            for z in (0.2, 0.55):
                draft.add("strut", DARK_METAL[1], link((side * 0.95, -0.2, z), (side * 0.95, 0.66, z), 0.03, 5))
            draft.add("strut", DARK_METAL[1], link((side * 0.2, 0.2, 0.4), (side * 0.25, 0.64, 0.4), 0.03, 5))
    _pair(draft, "tail wing", trim, wing(0.6, (-0.2, 0.2), (-0.2, 0.06)).at(0, 0.02, -half + 0.3))
    draft.add("tail", trim, wing(0.55, (-0.25, 0.25), (-0.25, 0.0)).turned("z", 90).at(0, 0.05, -half + 0.3))
    nose = half * 0.92
    blades = draft.pick((2, 3))
    draft.add("propeller", DARK_METAL[0], fuselage([(0.12, nose - 0.05), (0.09, nose + 0.1), (0.0, nose + 0.18)], 8))
    for i in range(blades):
        blade = box(0.1, 0.62, 0.04).at(y=0.34).turned("z", 360 * i / blades + 20)
        draft.add("propeller", DARK_METAL[0], blade.at(0, 0, nose + 0.06))
    for side in (-1, 1):
        draft.add("gear", DARK_METAL[1], link((side * 0.15, -0.2, 0.5), (side * 0.34, -0.5, 0.55), 0.035, 5))
        draft.add("wheel", DARK_METAL[2], cylinder(0.15, 0.09, 10).turned("z", 90).at(side * 0.36, -0.52, 0.55))
    draft.features.append("with a propeller")


def _fighter(draft: Draft, colors: tuple[RGB, RGB, RGB]) -> None:
    paint, trim, glass = colors
    half = draft.between(1.7, 2.1)
    body = fuselage([(0.16, -half), (0.3, -half * 0.6), (0.3, 0.2), (0.14, half * 0.7), (0.0, half)], 8)
    draft.add("body", paint, body.scaled(1.15, 0.85, 1))
    draft.add("window", glass, ball(0.3, 0.36, 1.0, 8, 6).at(0, 0.22, half * 0.32))
    _pair(draft, "wing", paint, wing(draft.between(1.2, 1.5), (-0.95, 0.75), (-0.9, -0.45)).at(0, -0.03, 0))
    _pair(draft, "tail wing", trim, wing(0.7, (-0.3, 0.35), (-0.4, -0.1)).at(0.1, 0, -half + 0.35))
    fin = wing(0.75, (-0.35, 0.4), (-0.5, -0.15)).turned("z", 75)
    _pair(draft, "tail", trim, fin.at(0.18, 0.1, -half + 0.45))
    for side in (-1, 1):
        draft.add(
            "engine", DARK_METAL[0], cylinder(0.15, 0.4, 8, top=0.12).turned("x", 90).at(side * 0.16, 0, -half + 0.05)
        )
        draft.add("missile", trim, fuselage([(0.05, -0.35), (0.06, 0.2), (0.0, 0.4)], 6).at(side * 0.85, -0.14, -0.3))
    draft.having(2, "engine")


def _helicopter(draft: Draft, colors: tuple[RGB, RGB, RGB]) -> None:
    paint, trim, glass = colors
    draft.add("body", paint, icosphere(0.95, 1.0, 1.7, 2))
    draft.add("window", glass, icosphere(0.86, 0.78, 0.95, 2).at(0, 0.05, 0.46))
    long = draft.between(1.7, 2.2)
    draft.add("tail", paint, fuselage([(0.06, -long), (0.2, -0.4), (0.0, -0.2)], 8).at(0, 0.15, 0))
    draft.add("tail", trim, wing(0.5, (-0.2, 0.2), (-0.25, 0.0)).turned("z", 90).at(0, 0.12, -long + 0.15))
    for i in range(2):
        draft.add("tail rotor", trim, box(0.04, 0.62, 0.1).turned("x", 90 * i + 45).at(0.12, 0.3, -long + 0.1))
    draft.add("rotor", DARK_METAL[0], cylinder(0.07, 0.36, 8).at(y=0.6))
    blades = draft.pick((2, 4))
    for i in range(blades):
        draft.add("rotor", DARK_METAL[0], box(1.6, 0.05, 0.15).at(0.8, 0.76).turned("y", 360 * i / blades + 30))
    draft.having(blades, "blade")
    for side in (-1, 1):
        draft.add("skid", trim, cylinder(0.05, 1.6, 6).turned("x", 90).at(side * 0.45, -0.72, 0.05))
        for z in (-0.35, 0.4):
            draft.add("skid", trim, link((side * 0.25, -0.3, z), (side * 0.45, -0.72, z), 0.04, 5))


def spaceship(draft: Draft) -> None:
    """Fighters, flying saucers, shuttles and rockets."""
    kind = draft.pick(("spaceship", "spaceship", "flying saucer", "rocket", "space shuttle"))
    paint = draft.tint((WHITE, *METAL, *PAINT))
    trim = draft.other((*PAINT, *DARK_METAL), paint)
    sub = "rocket" if kind == "rocket" else "spaceship"
    draft.call(kind, *(() if kind in {"spaceship", "rocket"} else ("spaceship",)), subclass=sub)
    glass, glow = draft.tint(GLASS), draft.tint(_GLOW)
    {"flying saucer": _saucer, "rocket": _rocket, "space shuttle": _shuttle}.get(kind, _starfighter)(
        draft, (paint, trim), (glass, glow)
    )


def _starfighter(draft: Draft, colors: tuple[RGB, RGB], lights: tuple[RGB, RGB]) -> None:
    paint, trim = colors
    half, wide = draft.between(1.2, 1.8), draft.between(0.6, 0.9)
    draft.add("body", paint, frustum((wide, -half, half * 0.3), (wide * 0.6, -half * 0.9, half * 0.1), 0.0, 0.32))
    draft.add("body", paint, frustum((wide * 0.8, -half * 0.9, half * 0.2), (wide, -half, half * 0.3), -0.2, 0.0))
    nose = [(wide / 2, half * 0.25), (0.12, half)]
    rings = [[(x, -0.1, z), (x, 0.12, z), (-x, 0.12, z), (-x, -0.1, z)] for x, z in nose]
    draft.add("nose", trim, loft(rings))
    draft.add("window", lights[0], ball(wide * 0.5, 0.36, half * 0.8, 8, 6).at(0, 0.26, half * 0.12))
    span = draft.proportion(0.8, 1.7, ("narrow", "wide"))
    sweep = draft.between(-0.5, 0.5)
    rise = draft.pick((0.0, 0.0, 0.4, -0.3))
    panel = wing(span, (-0.6, 0.4), (-0.45 + sweep, 0.05 + sweep), rise).at(wide * 0.35, 0, -0.3)
    _pair(draft, "wing", paint, panel.scaled(1, 1.2, 1))
    x_tip, z_tip = wide * 0.35 + span, sweep - 0.5
    if draft.chance(0.6):
        gun = fuselage([(0.05, -0.3), (0.06, 0.3), (0.03, 0.7)], 6).at(x_tip, rise, z_tip + 0.2)
        _pair(draft, "cannon", trim, gun)
        draft.having(2, "cannon")
    engines = draft.pick((1, 2, 3))
    for i in range(engines):
        x = (i - (engines - 1) / 2) * wide * 0.5
        draft.add("engine", trim, cylinder(0.17, 0.5, 8, top=0.21).turned("x", -90).at(x, 0.06, -half))
        draft.add("engine", lights[1], cylinder(0.12, 0.1, 8).turned("x", 90).at(x, 0.06, -half - 0.24))
    draft.having(engines, "engine")
    if draft.chance(0.5):
        _pair(
            draft, "tail", trim, wing(0.5, (-0.3, 0.3), (-0.4, -0.1)).turned("z", 70).at(wide * 0.25, 0.2, -half * 0.75)
        )


def _saucer(draft: Draft, colors: tuple[RGB, RGB], lights: tuple[RGB, RGB]) -> None:
    paint, trim = colors
    draft.adjectives.append("round")
    profile = [(0.0, -0.25), (0.5, -0.2), (1.2, 0.0), (1.2, 0.06), (0.55, 0.25), (0.0, 0.27)]
    draft.add("body", paint, lathe(profile, 18))
    draft.add("rim", trim, lathe([(1.14, -0.06), (1.27, 0.0), (1.27, 0.06), (1.14, 0.11)], 18, loop=True))
    dome = [(0.5, 0.2), (0.45, 0.42), (0.26, 0.6), (0.0, 0.66)]
    draft.add("dome", lights[0], lathe(dome, 12))
    number = draft.pick((6, 8, 10))
    for i in range(number):
        lamp = icosphere(0.16, 0.12, 0.16, 1).at(0, 0.15, 0.9).turned("y", 360 * i / number)
        draft.add("light", lights[1], lamp)
    draft.features.append("with a dome")


def _rocket(draft: Draft, colors: tuple[RGB, RGB], lights: tuple[RGB, RGB]) -> None:
    paint, trim = colors
    high = draft.proportion(1.7, 2.8, ("short", "tall"))
    shape = [(0.0, 0.1), (0.3, 0.1), (0.42, high * 0.35), (0.36, high * 0.68), (0.0, high * 0.68)]
    draft.add("body", paint, lathe(shape, 12))
    draft.add("nose", trim, lathe([(0.36, high * 0.68), (0.22, high * 0.86), (0.0, high)], 12))
    draft.add("window", lights[0], cylinder(0.14, 0.1, 12).turned("x", 90).at(0, high * 0.5, 0.38))
    fins = draft.pick((3, 4))
    for i in range(fins):
        fin = wing(0.5, (-0.1, 0.6), (-0.35, 0.0)).turned("x", -90).at(0.26, 0.25, 0)
        draft.add("fin", trim, fin.turned("y", 360 * i / fins + 45))
    draft.having(fins, "fin")
    draft.add("engine", DARK_METAL[0], cylinder(0.26, 0.2, 10, top=0.18).at(y=0.02))
    if draft.chance(0.3):
        draft.add("flame", lights[1], lathe([(0.0, -0.6), (0.2, -0.06), (0.0, -0.05)], 8))
        draft.features.append("with a flame")


def _shuttle(draft: Draft, colors: tuple[RGB, RGB], lights: tuple[RGB, RGB]) -> None:
    paint, trim = colors
    half = draft.between(1.4, 1.8)
    draft.add(
        "body",
        paint,
        fuselage([(0.3, -half), (0.36, -half * 0.5), (0.36, half * 0.5), (0.2, half * 0.88), (0.0, half)], 10),
    )
    draft.add("belly", trim, box(0.66, 0.14, half * 1.8).at(0, -0.28, -0.1))
    draft.add("window", lights[0], box(0.4, 0.14, 0.2).at(0, 0.22, half * 0.68))
    _pair(draft, "wing", paint, wing(1.05, (-0.9, 0.7), (-0.9, -0.5)).at(0.1, -0.26, -0.4))
    draft.add("tail", trim, wing(0.8, (-0.3, 0.5), (-0.5, -0.1)).turned("z", 90).at(0, 0.25, -half + 0.4))
    for x, y in ((-0.16, -0.1), (0.16, -0.1), (0.0, 0.16)):
        draft.add("engine", DARK_METAL[0], cylinder(0.14, 0.3, 8, top=0.1).turned("x", 90).at(x, y, -half - 0.08))
    draft.having(3, "engine")
