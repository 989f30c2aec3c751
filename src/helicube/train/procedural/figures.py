"""Men, women and astronauts: simple figures that look towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.limbs import add_limbs, add_pair
from helicube.train.procedural.palette import (
    BLACK,
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
from helicube.train.procedural.primitives import bevel_box, box, capsule, cylinder, icosphere, link
from helicube.train.procedural.sweep import lathe

__all__ = ["astronaut", "man", "woman"]


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
        add_pair(draft, "leg", skin if bare else trousers, box(0.17, leg, 0.2).at(hip, leg / 2, 0))
    else:
        add_limbs(draft, "leg", skin if bare else trousers, joints, (0.1, 0.065))
    add_pair(draft, "foot", shoe, bevel_box(0.13, 0.1, 0.28, 0.03).at(hip * 1.1, 0.05, 0.05))
    chest = leg + 0.52
    _torso(
        draft,
        (shirt, trousers),
        (leg, chest, shoulder),
        "dress" if dress else "block" if blocky else "round",
        female=female,
    )
    _arms(draft, (shirt, skin), (shoulder, chest - 0.09), pose)
    _head(draft, (skin, hair, shirt), chest, blocky=blocky, female=female)


def _torso(draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float, float], cut: str, *, female: bool) -> None:
    """The trunk between the heights of hips and shoulders; `size` ends with the shoulders' half width."""
    shirt, trousers = colors
    leg, chest, shoulder = size
    if cut == "dress":
        draft.add(
            "dress",
            shirt,
            lathe(
                [(0.34, leg * 0.55), (0.16, leg + 0.12), (shoulder, chest - 0.06), (0.09, chest), (0.0, chest)], 10
            ).scaled(1, 1, 0.7),
        )
    elif cut == "block":
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
    add_limbs(draft, "leg", suit, ((0.14, 0.72, 0), (0.16, 0.4, 0.02), (0.16, 0.1, 0)), (0.14, 0.12))
    add_pair(draft, "foot", trim, bevel_box(0.24, 0.16, 0.36, 0.05).at(0.16, 0.08, 0.04))
    draft.add("body", suit, bevel_box(0.6, 0.62, 0.42, 0.1).at(y=0.98))
    draft.add("belt", trim, box(0.58, 0.08, 0.44).at(y=0.74))
    lift = draft.between(-0.45, 0.25)
    add_limbs(
        draft, "arm", suit, ((0.3, 1.18, 0), (0.5, 1.18 + lift * 0.5, 0.02), (0.62, 1.18 + lift, 0.1)), (0.12, 0.1)
    )
    add_pair(draft, "hand", trim, icosphere(0.22, 0.22, 0.22, 1).at(0.64, 1.18 + lift, 0.12))
    draft.add("helmet", suit, icosphere(0.58, 0.58, 0.58, 2).at(y=1.52))
    draft.add("visor", draft.tint((*GLASS[3:], (214, 160, 60), BLACK)), icosphere(0.44, 0.36, 0.3, 2).at(0, 1.53, 0.17))
    draft.add("backpack", trim, bevel_box(0.5, 0.6, 0.24, 0.05).at(0, 1.05, -0.3))
    draft.add("panel", trim, box(0.26, 0.18, 0.06).at(0, 1.02, 0.21))
    draft.features += ["with a helmet", "with a backpack"]
    draft.wobble = 0.08
