"""Men, women, astronauts, robots and monsters: simple figures that look towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import (
    BLACK,
    BRASS,
    CLOTH,
    DARK_METAL,
    GLASS,
    HAIR,
    METAL,
    PAINT,
    RGB,
    SKIN,
    WHITE,
)
from helicube.train.procedural.primitives import ball, bevel_box, box, capsule, cone, cylinder, icosphere, link, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import lathe

__all__ = ["astronaut", "man", "monster", "robot", "woman"]


def _limbs(
    draft: Draft, name: str, color: RGB, joints: tuple[tuple[float, float, float], ...], thick: tuple[float, float]
) -> None:
    """A left (+x) limb through the joints and its mirror image; thickness at the start and the end."""
    count = len(joints) - 1
    for i in range(count):
        a = thick[0] + (thick[1] - thick[0]) * i / count
        b = thick[0] + (thick[1] - thick[0]) * (i + 1) / count
        solid = link(joints[i], joints[i + 1], a, 8, top=b)
        draft.add(f"{name} left", color, solid)
        draft.add(f"{name} right", color, solid.mirrored("x"))


def _both(draft: Draft, name: str, color: RGB, solid: Solid) -> None:
    draft.add(f"{name} left", color, solid)
    draft.add(f"{name} right", color, solid.mirrored("x"))


def _person(draft: Draft, *, female: bool) -> None:
    skin, hair = draft.tint(SKIN), draft.tint(HAIR)
    shirt = draft.tint((*CLOTH, *PAINT[:8]))
    trousers = draft.other((*CLOTH[1:5], *CLOTH[11:15], *CLOTH[18:]), shirt)
    shoe = draft.tint((BLACK, *DARK_METAL, (84, 56, 36)))
    draft.name_colors = False
    blocky = draft.chance(0.3)
    pose = draft.pick(("arms down", "arms down", "arms out", "arm raised"))
    dress = female and draft.chance(0.4)
    leg = draft.between(0.78, 0.88)
    shoulder = draft.between(0.19, 0.22) if female else draft.between(0.23, 0.28)
    hip = 0.1
    bare = dress or draft.chance(0.15)
    joints = ((hip, leg, 0.0), (hip, leg * 0.52, 0.02), (hip * 1.1, 0.06, 0.0))
    if blocky:
        _both(draft, "leg", skin if bare else trousers, box(0.17, leg, 0.2).at(hip, leg / 2, 0))
    else:
        _limbs(draft, "leg", skin if bare else trousers, joints, (0.1, 0.065))
    _both(draft, "foot", shoe, bevel_box(0.13, 0.1, 0.28, 0.03).at(hip * 1.1, 0.05, 0.05))
    chest = leg + 0.52
    if dress:
        draft.add(
            "dress",
            shirt,
            lathe(
                [(0.34, leg * 0.55), (0.16, leg + 0.12), (shoulder, chest - 0.06), (0.09, chest), (0.0, chest)], 10
            ).scaled(1, 1, 0.7),
        )
    elif blocky:
        draft.add("body", shirt, box(shoulder * 2, chest - leg + 0.04, 0.24).at(0, (chest + leg) / 2, 0))
    else:
        waist = 0.15 if female else 0.18
        shape = [
            (0.17, leg - 0.06),
            (waist, leg + 0.14),
            (shoulder, chest - 0.1),
            (shoulder * 0.7, chest),
            (0.0, chest + 0.01),
        ]
        draft.add("body", shirt, lathe(shape, 10).scaled(1, 1, 0.66))
        draft.add(
            "hips",
            trousers,
            lathe([(0.0, leg - 0.12), (0.13, leg - 0.1), (0.18, leg + 0.03), (0.0, leg + 0.06)], 10).scaled(
                1.05, 1, 0.72
            ),
        )
    _arms(draft, (shirt, skin), (shoulder, chest - 0.09), pose)
    _head(draft, (skin, hair, shirt), chest, blocky=blocky, female=female)


def _arms(draft: Draft, colors: tuple[RGB, RGB], at: tuple[float, float], pose: str) -> None:
    """Sleeved arms from the shoulders at (x, y)."""
    x, y = at
    down = ((x, y, 0.0), (x + 0.07, y - 0.28, 0.0), (x + 0.1, y - 0.54, 0.06))
    out = ((x, y, 0.0), (x + 0.28, y + 0.0, 0.0), (x + 0.54, y, 0.0))
    up = ((x, y, 0.0), (x + 0.16, y + 0.22, 0.0), (x + 0.16, y + 0.5, 0.0))
    for side in (1, -1):
        joints = out if pose == "arms out" else up if pose == "arm raised" and side < 0 else down
        name = "arm left" if side > 0 else "arm right"
        for i, color in enumerate(colors):
            limb = link(joints[i], joints[i + 1], 0.062 - 0.01 * i, 8, top=0.052 - 0.01 * i)
            draft.add(name, color, limb if side > 0 else limb.mirrored("x"))
        hand = icosphere(0.11, 0.12, 0.11, 1).at(*joints[2])
        draft.add(name, colors[1], hand if side > 0 else hand.mirrored("x"))


def _head(draft: Draft, colors: tuple[RGB, RGB, RGB], chest: float, *, blocky: bool, female: bool) -> None:
    skin, hair, _ = colors
    draft.add("head", skin, cylinder(0.06, 0.14, 8).at(y=chest + 0.03))
    y = chest + 0.21
    if blocky:
        draft.add("head", skin, bevel_box(0.27, 0.28, 0.27, 0.03).at(y=y))
        draft.add("hair", hair, box(0.29, 0.1, 0.29).at(y=y + 0.12), box(0.29, 0.2, 0.09).at(0, y + 0.04, -0.11))
    else:
        draft.add("head", skin, icosphere(0.25, 0.31, 0.28, 1).at(y=y))
        draft.add("hair", hair, icosphere(0.285, 0.27, 0.3, 1).at(0, y + 0.055, -0.03))
    for side in (-1, 1):
        draft.add("eyes", BLACK, icosphere(0.04, 0.05, 0.04, 0).at(side * 0.055, y + 0.01, 0.135))
    if female:
        style = draft.pick(("long", "long", "ponytail", "bun"))
        if style == "long":
            draft.add("hair", hair, bevel_box(0.3, 0.38, 0.12, 0.04).at(0, y - 0.08, -0.12))
        elif style == "ponytail":
            draft.add("hair", hair, capsule(0.06, 0.36, 6).turned("x", 22).at(0, y - 0.05, -0.2))
        else:
            draft.add("hair", hair, icosphere(0.16, 0.16, 0.16, 1).at(0, y + 0.14, -0.13))
        draft.features.append({"long": "with long hair", "ponytail": "with a ponytail", "bun": "with a bun"}[style])
    elif draft.chance(0.2):
        draft.add("beard", hair, icosphere(0.22, 0.2, 0.18, 1).at(0, y - 0.12, 0.06))
        draft.features.append("with a beard")
    if draft.chance(0.25):
        hat = draft.tint((*CLOTH, *PAINT[:8]))
        draft.add(
            "hat", hat, cylinder(0.2, 0.03, 12).at(y=y + 0.12), cylinder(0.155, 0.14, 12, top=0.13).at(y=y + 0.19)
        )
        draft.features.append("with a hat")


def man(draft: Draft) -> None:
    """A man standing, in trousers."""
    draft.call(*draft.pick((("man",), ("man", "person"), ("boy", "man"))), subclass="man")
    _person(draft, female=False)
    draft.features.append("standing")


def woman(draft: Draft) -> None:
    """A woman standing, in trousers or a dress."""
    draft.call(*draft.pick((("woman",), ("woman", "person"), ("girl", "woman"))), subclass="woman")
    _person(draft, female=True)
    draft.features.append("standing")


def astronaut(draft: Draft) -> None:
    """A padded suit with a helmet and a backpack."""
    suit = draft.tint((WHITE, METAL[3], (236, 134, 44), *PAINT[3:6]))
    trim = draft.other((*PAINT, *DARK_METAL), suit)
    draft.call("astronaut")
    _limbs(draft, "leg", suit, ((0.14, 0.72, 0), (0.16, 0.4, 0.02), (0.16, 0.1, 0)), (0.14, 0.12))
    _both(draft, "foot", trim, bevel_box(0.24, 0.16, 0.36, 0.05).at(0.16, 0.08, 0.04))
    draft.add("body", suit, bevel_box(0.6, 0.62, 0.42, 0.1).at(y=0.98))
    draft.add("belt", trim, box(0.58, 0.08, 0.44).at(y=0.74))
    lift = draft.between(-0.45, 0.25)
    _limbs(draft, "arm", suit, ((0.3, 1.18, 0), (0.5, 1.18 + lift * 0.5, 0.02), (0.62, 1.18 + lift, 0.1)), (0.12, 0.1))
    _both(draft, "hand", trim, icosphere(0.22, 0.22, 0.22, 1).at(0.64, 1.18 + lift, 0.12))
    draft.add("helmet", suit, icosphere(0.58, 0.58, 0.58, 2).at(y=1.52))
    draft.add("visor", draft.tint((*GLASS[3:], (214, 160, 60), BLACK)), icosphere(0.44, 0.36, 0.3, 2).at(0, 1.53, 0.17))
    draft.add("backpack", trim, bevel_box(0.5, 0.6, 0.24, 0.05).at(0, 1.05, -0.3))
    draft.add("panel", trim, box(0.26, 0.18, 0.06).at(0, 1.02, 0.21))
    draft.features += ["with a helmet", "with a backpack"]
    draft.wobble = 0.08


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
        _limbs(draft, "leg", dark, ((wide * 0.28, y + 0.05, 0), (wide * 0.3, 0.08, 0)), (0.09, 0.09))
        _both(draft, "foot", paint, bevel_box(0.26, 0.16, 0.4, 0.04).at(wide * 0.3, 0.08, 0.05))
        draft.having(2, "leg")
    elif base == "tracks":
        y = 0.36
        _both(draft, "track", dark, bevel_box(0.2, 0.36, 0.85, 0.1).at(wide * 0.42, 0.18, 0))
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
    _limbs(draft, "arm", dark, arm, (0.075, 0.065))
    _both(draft, "hand", paint, bevel_box(0.16, 0.16, 0.18, 0.03).at(*arm[2]))
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
    if kind == "ghost":
        shape = [(0.0, 0.05), (0.3, 0.08), (0.5, 0.0), (0.46, 0.5), (0.42, 0.9), (0.24, 1.15), (0.0, 1.22)]
        draft.add("body", skin, lathe(shape, 12))
        _both(draft, "arm", skin, capsule(0.1, 0.4, 8).turned("z", 60).at(0.52, 0.62, 0.05))
        _eyes(draft, (0.0, 0.84, 0.4), 2, 0.14)
        draft.add("mouth", BLACK, ball(0.14, 0.2, 0.1, 8, 4).at(0, 0.62, 0.43))
        return
    if kind == "slime":
        shape = [(0.0, 0.0), (0.7, 0.0), (0.75, 0.12), (0.6, 0.5), (0.3, 0.78), (0.0, 0.85)]
        draft.add("body", skin, lathe(shape, 12))
        _eyes(draft, (0.0, 0.42, 0.6), 2, 0.2)
        draft.add("mouth", BLACK, box(0.3, 0.06, 0.1).at(0, 0.2, 0.7))
        return
    wide, high = draft.between(0.7, 1.1), draft.proportion(0.7, 1.2, ("short", "tall"))
    y = 0.3
    draft.add("body", skin, icosphere(wide, high, wide * 0.85, 2).at(y=y + high / 2))
    draft.add("belly", belly, icosphere(wide * 0.7, high * 0.62, wide * 0.5, 2).at(0, y + high * 0.4, wide * 0.21))
    _limbs(draft, "leg", skin, ((wide * 0.22, y + high * 0.18, 0), (wide * 0.24, 0.08, 0)), (0.13, 0.11))
    _both(draft, "foot", skin, icosphere(0.28, 0.16, 0.38, 1).at(wide * 0.25, 0.08, 0.07))
    lift = draft.pick((-0.3, 0.3))
    _limbs(
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
    if kind == "alien":
        _limbs(draft, "antenna", skin, ((0.1, y + high * 0.93, 0), (0.2, y + high + 0.25, 0)), (0.03, 0.025))
        _both(draft, "antenna", belly, icosphere(0.12, 0.12, 0.12, 1).at(0.2, y + high + 0.27, 0))
        draft.features.append("with two antennas")
    else:
        horn = draft.tint(((232, 222, 196), BLACK, BRASS))
        _both(draft, "horn", horn, cone(0.09, 0.32, 6).turned("z", -28).at(wide * 0.26, y + high * 0.98, 0))
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
