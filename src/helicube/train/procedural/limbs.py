"""Pairs of limbs that mirror each other."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.primitives import link
from helicube.train.procedural.solid import Solid

__all__ = ["add_limbs", "add_pair"]


def add_limbs(
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


def add_pair(draft: Draft, name: str, color: RGB, solid: Solid) -> None:
    draft.add(f"{name} left", color, solid)
    draft.add(f"{name} right", color, solid.mirrored("x"))
