"""Wheels for everything that rolls."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.primitives import box, cylinder, torus
from helicube.train.procedural.solid import Solid

__all__ = ["add_axle", "road_wheel", "spoked_wheel"]


def road_wheel(radius: float, width: float, sides: int = 14) -> tuple[Solid, Solid]:
    """Tire and hub about the x axis, centred on the origin."""
    tire = cylinder(radius, width, sides).turned("z", 90)
    hub = cylinder(radius * 0.55, width * 1.12, 8).turned("z", 90)
    return tire, hub


def spoked_wheel(radius: float, thick: float, spokes: int) -> list[Solid]:
    """A wooden wheel about the x axis: rim, hub and spokes."""
    rim = torus(radius - thick / 2, thick, 16, 4).turned("z", 90)
    hub = cylinder(radius * 0.18, thick * 1.7, 8).turned("z", 90)
    reach = radius - thick * 0.6
    bars = [
        box(thick * 0.5, reach, thick * 0.5).at(y=reach / 2).turned("x", float(angle))
        for angle in np.arange(spokes) * (360 / spokes)
    ]
    return [rim, hub, *bars]


def add_axle(
    draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float], at: tuple[float, float], name: str
) -> None:
    """A left (+x) and a right wheel of (radius, width) on y = 0; `at` is the track, middle to middle, and z."""
    track, z = at
    radius, width = size
    for side, word in ((1, "left"), (-1, "right")):
        for solid, color in zip(road_wheel(radius, width), colors, strict=True):
            draft.add(f"wheel {name} {word}", color, solid.at(side * track / 2, radius, z))
