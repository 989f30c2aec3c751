"""Robots and monsters that look towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.limbs import add_limbs, add_pair
from helicube.train.procedural.palette import (
    BLACK,
    BRASS,
    DARK_METAL,
    METAL,
    PAINT,
    RGB,
    WHITE,
)
from helicube.train.procedural.primitives import ball, bevel_box, box, capsule, cone, cylinder, icosphere, torus
from helicube.train.procedural.sweep import lathe

__all__ = ["monster", "robot"]


def robot(draft: Draft) -> None:
    """Boxy robots on legs, tracks or one wheel."""
    paint = draft.tint((*METAL, *PAINT))
    dark = draft.other((*DARK_METAL, *METAL), paint)
    glow = draft.tint(((80, 200, 240), (240, 200, 60), (220, 60, 60), (120, 220, 120)))
    draft.call("robot")
    draft.material = "metal"
    base = draft.pick(("legs", "legs", "tracks", "wheel"))
    wide, high = draft.between(0.6, 0.85), draft.between(0.6, 0.85)
    if base == "legs":
        y = draft.between(0.5, 0.7)
        add_limbs(draft, "leg", dark, ((wide * 0.28, y + 0.05, 0), (wide * 0.3, 0.08, 0)), (0.09, 0.09))
        add_pair(draft, "foot", paint, bevel_box(0.26, 0.16, 0.4, 0.04).at(wide * 0.3, 0.08, 0.05))
        draft.having(2, "leg")
    elif base == "tracks":
        y = 0.36
        add_pair(draft, "track", dark, bevel_box(0.2, 0.36, 0.85, 0.1).at(wide * 0.42, 0.18, 0))
        draft.features.append("with tracks")
    else:
        y = 0.45
        draft.add("wheel", dark, cylinder(0.3, 0.24, 14).turned("z", 90).at(y=0.3))
        draft.features.append("with a wheel")
    draft.add("body", paint, bevel_box(wide, high, wide * 0.7, 0.05).at(y=y + high / 2))
    front = wide * 0.35
    draft.add("panel", dark, box(wide * 0.55, high * 0.4, 0.05).at(0, y + high * 0.58, front))
    for i in range(3):
        light = cylinder(0.045, 0.06, 8).turned("x", 90).at((i - 1) * wide * 0.17, y + high * 0.6, front + 0.02)
        draft.add("light", glow, light)
    top = y + high
    lift = draft.pick((-0.35, -0.35, 0.3))
    arm = (
        (wide / 2, top - 0.14, 0.0),
        (wide / 2 + 0.18, top - 0.16 + lift * 0.4, 0.05),
        (wide / 2 + 0.2, top - 0.2 + lift, 0.2),
    )
    add_limbs(draft, "arm", dark, arm, (0.075, 0.065))
    add_pair(draft, "hand", paint, bevel_box(0.16, 0.16, 0.18, 0.03).at(*arm[2]))
    _robot_head(draft, (paint, dark, glow), wide, top)


def _robot_head(draft: Draft, colors: tuple[RGB, RGB, RGB], wide: float, top: float) -> None:
    paint, dark, glow = colors
    draft.add("head", dark, cylinder(0.1, 0.14, 8).at(y=top + 0.05))
    size = wide * draft.between(0.55, 0.75)
    y = top + 0.1 + size * 0.4
    if draft.chance(0.3):
        draft.add("head", paint, icosphere(size, size, size, 2).at(y=y))
    else:
        draft.add("head", paint, bevel_box(size, size * 0.8, size * 0.8, 0.04).at(y=y))
    eyes = draft.pick((1, 2, 2))
    for i in range(eyes):
        x = (i - (eyes - 1) / 2) * size * 0.42
        eye = cylinder(size * 0.15, 0.1, 10).turned("x", 90).at(x, y + 0.03, size * 0.42)
        draft.add("eyes", glow, eye)
    draft.having(eyes, "eye")
    if draft.chance(0.6):
        draft.add("antenna", dark, cylinder(0.02, 0.25, 5).at(y=y + size * 0.5 + 0.05))
        draft.add("antenna", glow, icosphere(0.1, 0.1, 0.1, 1).at(y=y + size * 0.5 + 0.18))
        draft.features.append("with an antenna")


def monster(draft: Draft) -> None:
    """Round and tall monsters, ghosts, aliens and slimes with horns, eyes and teeth."""
    kind = draft.pick(("monster", "monster", "alien", "ghost", "slime"))
    draft.call(
        kind, *(("monster",) if kind in {"ghost", "slime"} else ()), subclass="alien" if kind == "alien" else "monster"
    )
    skin = draft.tint(PAINT) if kind != "ghost" else draft.tint((WHITE, (206, 214, 226)))
    belly = draft.other(PAINT, skin)
    draft.wobble = 0.12
    if kind in {"ghost", "slime"}:
        (_ghost if kind == "ghost" else _slime)(draft, skin)
    else:
        _biped(draft, skin, belly)


def _ghost(draft: Draft, skin: RGB) -> None:
    shape = [(0.0, 0.05), (0.3, 0.08), (0.5, 0.0), (0.46, 0.5), (0.42, 0.9), (0.24, 1.15), (0.0, 1.22)]
    draft.add("body", skin, lathe(shape, 12))
    add_pair(draft, "arm", skin, capsule(0.1, 0.4, 8).turned("z", 60).at(0.52, 0.62, 0.05))
    _eyes(draft, (0.0, 0.84, 0.4), 2, 0.14)
    draft.add("mouth", BLACK, ball(0.14, 0.2, 0.1, 8, 4).at(0, 0.62, 0.43))


def _slime(draft: Draft, skin: RGB) -> None:
    shape = [(0.0, 0.0), (0.7, 0.0), (0.75, 0.12), (0.6, 0.5), (0.3, 0.78), (0.0, 0.85)]
    draft.add("body", skin, lathe(shape, 12))
    _eyes(draft, (0.0, 0.42, 0.6), 2, 0.2)
    draft.add("mouth", BLACK, box(0.3, 0.06, 0.1).at(0, 0.2, 0.7))


def _biped(draft: Draft, skin: RGB, belly: RGB) -> None:
    wide, high = draft.between(0.7, 1.1), draft.proportion(0.7, 1.2, ("short", "tall"))
    y = 0.3
    draft.add("body", skin, icosphere(wide, high, wide * 0.85, 2).at(y=y + high / 2))
    draft.add("belly", belly, icosphere(wide * 0.7, high * 0.62, wide * 0.5, 2).at(0, y + high * 0.4, wide * 0.21))
    add_limbs(draft, "leg", skin, ((wide * 0.22, y + high * 0.18, 0), (wide * 0.24, 0.08, 0)), (0.13, 0.11))
    add_pair(draft, "foot", skin, icosphere(0.28, 0.16, 0.38, 1).at(wide * 0.25, 0.08, 0.07))
    lift = draft.pick((-0.3, 0.3))
    add_limbs(
        draft,
        "arm",
        skin,
        (
            (wide * 0.42, y + high * 0.55, 0),
            (wide * 0.62, y + high * 0.55 + lift * 0.4, 0.05),
            (wide * 0.68, y + high * 0.55 + lift, 0.1),
        ),
        (0.1, 0.07),
    )
    eyes = draft.pick((1, 2, 2, 3))
    _eyes(draft, (0.0, y + high * 0.72, wide * 0.34), eyes, 0.26 if eyes == 1 else 0.18)
    draft.having(eyes, "eye")
    for side in (-1, 1):
        draft.add("teeth", WHITE, cone(0.05, 0.12, 5).turned("x", 180).at(side * 0.1, y + high * 0.45, wide * 0.43))
    _crest(draft, (skin, belly), (wide, high), y)


def _crest(draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float], y: float) -> None:
    """Antennas or horns, perhaps a collar, on a body of width and height that stands on y."""
    skin, belly = colors
    wide, high = size
    if draft.nouns[0] == "alien":
        add_limbs(draft, "antenna", skin, ((0.1, y + high * 0.93, 0), (0.2, y + high + 0.25, 0)), (0.03, 0.025))
        add_pair(draft, "antenna", belly, icosphere(0.12, 0.12, 0.12, 1).at(0.2, y + high + 0.27, 0))
        draft.features.append("with two antennas")
    else:
        horn = draft.tint(((232, 222, 196), BLACK, BRASS))
        add_pair(draft, "horn", horn, cone(0.09, 0.32, 6).turned("z", -28).at(wide * 0.26, y + high * 0.98, 0))
        draft.having(2, "horn")
    if draft.chance(0.3):
        draft.add("collar", belly, torus(wide * 0.3, 0.08, 12, 5).at(y=y + high * 0.92))


def _eyes(draft: Draft, at: tuple[float, float, float], number: int, size: float) -> None:
    """White balls with black pupils in a row about a point of the face."""
    x, y, z = at
    for i in range(number):
        dx = x + (i - (number - 1) / 2) * size * 1.35
        back = z - 0.25 * dx * dx
        draft.add("eyes", WHITE, icosphere(size, size, size * 0.8, 1).at(dx, y, back))
        draft.add("eyes", BLACK, icosphere(size * 0.5, size * 0.5, size * 0.4, 1).at(dx, y, back + size * 0.3))
