"""Legs, feet and other things that furniture stands on."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.primitives import box, cylinder, link
from helicube.train.procedural.solid import Solid

__all__ = ["corner_legs", "pedestal", "ring_legs", "star_base"]


def corner_legs(draft: Draft, color: RGB, size: tuple[float, float], height: float, thick: float) -> None:
    """Four legs at the corners of a width by depth rectangle, from y = 0 to `height`; round, square or splayed."""
    style = draft.pick(("square", "square", "round", "tapered", "splayed"))
    width, depth = size
    for sx in (-1, 1):
        for sz in (-1, 1):
            x, z = sx * (width - thick) / 2, sz * (depth - thick) / 2
            if style == "splayed":
                inner = (x * 0.82, height, z * 0.82)
                draft.add("leg", color, link((x, 0, z), inner, thick * 0.42, top=thick * 0.55))
            else:
                draft.add("leg", color, _leg(style, height, thick).at(x, height / 2, z))


def _leg(style: str, height: float, thick: float) -> Solid:
    if style == "round":
        return cylinder(thick / 2, height, 8)
    if style == "tapered":
        return cylinder(thick * 0.36, height, 4, top=thick * 0.68)
    return box(thick, height, thick)


def ring_legs(draft: Draft, color: RGB, number: int, size: tuple[float, float, float], lean: float) -> None:
    """`number` legs about the Y axis for (radius, height, thickness); the feet stand at `lean` times the radius."""
    radius, height, thick = size
    for i in range(number):
        angle = 2 * np.pi * i / number
        s, c = float(np.sin(angle)), float(np.cos(angle))
        foot = (s * radius * lean, 0.0, c * radius * lean)
        draft.add("leg", color, link(foot, (s * radius, height, c * radius), thick / 2, top=thick * 0.55))


def pedestal(draft: Draft, color: RGB, radius: float, height: float, thick: float) -> None:
    """One central post on a round or crossed foot."""
    draft.add("post", color, cylinder(thick / 2, height, 10).at(y=height / 2))
    if draft.chance(0.6):
        low = height * 0.06
        draft.add("base", color, cylinder(radius, low, 14, top=radius * 0.85).at(y=low / 2))
    else:
        for turn in (45, 135):
            draft.add("base", color, box(2 * radius, height * 0.08, thick).at(y=height * 0.04).turned("y", turn))


def star_base(draft: Draft, color: RGB, wheel_color: RGB, radius: float, height: float) -> None:
    """Five spokes with castors under a gas column, as on office chairs."""
    draft.add("post", color, cylinder(radius * 0.09, height * 0.85, 8).at(y=height * 0.575))
    for i in range(5):
        angle = 2 * np.pi * i / 5
        x, z = radius * float(np.sin(angle)), radius * float(np.cos(angle))
        draft.add("base", color, link((x, radius * 0.2, z), (0, radius * 0.32, 0), radius * 0.07, top=radius * 0.1))
        castor = cylinder(radius * 0.1, radius * 0.1, 8).turned("z", 90).at(x, radius * 0.1, z)
        draft.add("wheel", wheel_color, castor)
