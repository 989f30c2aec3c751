"""Locomotives and railway cars; they drive towards +Z."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, DARK_METAL, GLASS, GOLD, LIGHT, METAL, PAINT, RGB, WOOD
from helicube.train.procedural.primitives import box, cylinder, frustum, link, wedge
from helicube.train.procedural.sweep import extrude, lathe
from helicube.train.procedural.wheels import road_wheel

__all__ = ["train", "train_car"]


def _rail_wheels(draft: Draft, color: RGB, at: list[float], radius: float, track: float) -> None:
    for z in at:
        for side in (-1, 1):
            tire, hub = road_wheel(radius, 0.12, 12)
            draft.add("wheels", color, tire.at(side * track / 2, radius, z))
            draft.add("wheels", METAL[0], hub.at(side * track / 2, radius, z))
    for before, after in pairwise(at):
        rod = box(0.06, 0.07, abs(after - before))
        draft.add(
            "wheels",
            METAL[1],
            *[rod.at(side * (track / 2 + 0.09), radius, (after + before) / 2) for side in (-1, 1)],
        )


def train(draft: Draft) -> None:
    """Steam locomotives, diesel and electric engines, high-speed trains."""
    kind = draft.pick(("steam locomotive", "steam locomotive", "electric train", "high-speed train", "tram"))
    paint = draft.tint((*PAINT, BLACK))
    trim = draft.other((*PAINT, *GOLD), paint)
    draft.call(kind, "train", subclass="train")
    if kind == "steam locomotive":
        _steam(draft, paint, trim)
        return
    long = draft.proportion(2.6, 4.2, ("short", "long"))
    front, low, top = long / 2, 0.3, 1.3
    nose = 1.1 if kind == "high-speed train" else 0.25
    profile = [
        (-front, low),
        (front - 0.05, low),
        (front, low + 0.2),
        (front - nose * 0.35, low + 0.55),
        (front - nose, top),
        (-front, top),
    ]
    draft.add("body", paint, extrude(profile, 1.0).turned("y", -90))
    draft.add("roof", DARK_METAL[0], box(0.8, 0.1, long - nose - 0.2).at(0, top + 0.03, -nose / 2))
    pane = draft.tint(GLASS)
    number = max(3, int((long - nose) / 0.5))
    for i in range(number):
        z = -front + 0.3 + i * (long - nose - 0.5) / (number - 1)
        draft.add("window", pane, box(1.03, 0.34, 0.32).at(0, 0.98, z))
    draft.add("stripe", trim, box(1.02, 0.13, long * 0.86).at(0, 0.62, -long * 0.06))
    slope = float(np.degrees(np.arctan2(nose * 0.65, top - low - 0.55)))
    screen = box(0.8, 0.36, 0.06).turned("x", -slope).at(0, low + 0.78, front - nose * 0.35 - nose * 0.65 * 0.36 + 0.01)
    draft.add("window", pane, screen)
    for side in (-1, 1):
        draft.add("light", LIGHT[1], box(0.16, 0.12, 0.1).at(side * 0.32, low + 0.28, front - 0.03))
    if kind in {"electric train", "tram"}:
        _pantograph(draft, top)
    _rail_wheels(draft, DARK_METAL[1], [-front + 0.4, -front + 0.8, front - 0.9, front - 0.5], 0.18, 0.76)


def _pantograph(draft: Draft, top: float) -> None:
    draft.add(
        "pantograph",
        DARK_METAL[1],
        link((0, top, -0.2), (0, top + 0.25, 0.1), 0.03, 5),
        link((0, top + 0.25, 0.1), (0, top + 0.5, -0.2), 0.03, 5),
    )
    draft.add("pantograph", DARK_METAL[1], box(0.7, 0.05, 0.1).at(0, top + 0.5, -0.2))


def _steam(draft: Draft, paint: RGB, trim: RGB) -> None:
    long = draft.between(2.4, 3.0)
    radius = draft.between(0.36, 0.44)
    axis = 0.62 + radius
    boiler = cylinder(radius, long * 0.66, 14).turned("x", 90)
    draft.add("boiler", paint, boiler.at(0, axis, long * 0.16))
    front = long * 0.49
    draft.add("boiler", DARK_METAL[0], cylinder(radius * 1.06, 0.12, 14).turned("x", 90).at(0, axis, front))
    for i in range(3):
        draft.add("ring", trim, cylinder(radius * 1.03, 0.06, 14).turned("x", 90).at(0, axis, -0.1 + i * long * 0.2))
    draft.add("light", LIGHT[2], cylinder(0.13, 0.16, 10).turned("x", 90).at(0, axis + radius * 0.7, front + 0.06))
    stack = [(0.1, 0.0), (0.1, 0.32), (0.2, 0.5), (0.15, 0.56), (0.0, 0.56)]
    draft.add("chimney", DARK_METAL[1], lathe(stack, 10).at(0, axis + radius - 0.05, front - 0.35))
    draft.add(
        "dome",
        trim,
        lathe([(0.16, 0.0), (0.15, 0.16), (0.08, 0.25), (0.0, 0.27)], 10).at(0, axis + radius - 0.04, long * 0.14),
    )
    draft.add("frame", DARK_METAL[0], box(0.8, 0.2, long).at(0, 0.52, 0))
    back = -long / 2
    draft.add("cab", paint, box(0.98, 0.7, 0.75).at(0, 0.92, back + 0.38))
    for sx in (-1, 1):
        for z in (0.08, 0.7):
            draft.add("cab", paint, box(0.09, 0.62, 0.09).at(sx * 0.44, 1.5, back + z))
    draft.add("roof", trim, box(1.16, 0.1, 0.95).at(0, 1.84, back + 0.4))
    draft.add("cowcatcher", trim, frustum((0.9, front - 0.1, front + 0.35), (0.8, front - 0.1, front), 0.12, 0.5))
    _rail_wheels(draft, trim, [back + 0.4, back + 0.95, back + 1.5], 0.3, 0.86)
    for side in (-1, 1):
        tire, _ = road_wheel(0.19, 0.12, 12)
        draft.add("wheels", trim, tire.at(side * 0.43, 0.19, front - 0.3))
    draft.features.append("with a chimney")


def train_car(draft: Draft) -> None:
    """Passenger cars, boxcars, hoppers, tank cars and flat cars with logs."""
    kind = draft.pick(("passenger train car", "boxcar", "coal wagon", "tank wagon", "flat wagon"))
    paint = draft.tint((*PAINT, *WOOD[:4], *DARK_METAL))
    trim = draft.other((*DARK_METAL, *PAINT), paint)
    draft.call(kind, "train car", subclass="train car")
    long = draft.proportion(2.0, 3.2, ("short", "long"))
    half = long / 2
    draft.add("frame", DARK_METAL[0], box(0.8, 0.16, long).at(0, 0.4, 0))
    for end in (-1, 1):
        draft.add("coupling", DARK_METAL[1], box(0.14, 0.12, 0.2).at(0, 0.4, end * (half + 0.08)))
    makers = {"passenger train car": _carriage, "boxcar": _boxcar, "coal wagon": _hopper, "tank wagon": _tank_wagon}
    makers.get(kind, _flat_wagon)(draft, (paint, trim), long)
    _rail_wheels(draft, DARK_METAL[1], [-half + 0.3, -half + 0.72], 0.17, 0.72)
    _rail_wheels(draft, DARK_METAL[1], [half - 0.72, half - 0.3], 0.17, 0.72)


def _carriage(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    paint, trim = colors
    draft.add("body", paint, box(0.96, 0.9, long * 0.98).at(0, 0.92, 0))
    draft.add("roof", trim, wedge(1.06, 0.2, long, ridge=0.94).at(0, 1.46, 0))
    pane = draft.tint(GLASS)
    number = int(long / 0.45)
    for i in range(number):
        draft.add("window", pane, box(1.0, 0.32, 0.26).at(0, 1.06, (i - (number - 1) / 2) * 0.42))
    draft.features.append("with windows")


def _boxcar(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    paint, trim = colors
    draft.add("cargo", paint, box(0.96, 0.96, long * 0.98).at(0, 0.95, 0))
    draft.add("roof", trim, wedge(1.04, 0.14, long, ridge=1.0).at(0, 1.5, 0))
    for side in (-1, 1):
        draft.add("door", trim, box(0.05, 0.84, 0.7).at(side * 0.49, 0.93, 0))


def _hopper(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    paint, _ = colors
    for side in (-1, 1):
        draft.add("body", paint, box(0.08, 0.62, long * 0.96).at(side * 0.44, 0.78, 0))
        draft.add("body", paint, box(0.9, 0.62, 0.08).at(0, 0.78, side * (long / 2 - 0.06)))
    load = draft.tint(((44, 44, 46), (120, 92, 66), (150, 150, 148)))
    draft.add("cargo", load, wedge(0.84, 0.42, long * 0.9, ridge=0.6).at(0, 1.05, 0))
    draft.features.append("with a load")


def _tank_wagon(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    paint, trim = colors
    draft.add("tank", paint, cylinder(0.46, long * 0.92, 14).turned("x", 90).at(0, 0.92, 0))
    draft.add("tank", trim, cylinder(0.16, 0.16, 10).at(0, 1.42, 0))
    for z in (-0.3, 0.3):
        draft.add("band", trim, cylinder(0.48, 0.08, 14).turned("x", 90).at(0, 0.92, z * long))


def _flat_wagon(draft: Draft, colors: tuple[RGB, RGB], long: float) -> None:
    log = draft.tint(WOOD[:6])
    for x, y in ((-0.28, 0.62), (0.0, 0.62), (0.28, 0.62), (-0.14, 0.87), (0.14, 0.87), (0.0, 1.12)):
        draft.add("cargo", log, cylinder(0.145, long * 0.9, 10).turned("x", 90).at(x, y, 0))
    for z in (-0.3, 0.3):
        for side in (-1, 1):
            draft.add("post", colors[1], box(0.07, 0.5, 0.07).at(side * 0.44, 0.68, z * long))
    draft.features.append("with logs")
