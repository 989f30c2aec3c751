"""Tools."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, CLOTH, DARK_METAL, METAL, PAINT, TIRE, WOOD
from helicube.train.procedural.primitives import (
    arc,
    ball,
    bevel_box,
    box,
    cylinder,
    frustum,
    link,
    torus,
)
from helicube.train.procedural.sweep import extrude, lathe, tube

__all__ = ["tool"]


def tool(draft: Draft) -> None:
    """Shovels, saws, ladders, buckets, wrenches, screwdrivers, pens, brooms, wheelbarrows, rakes."""
    makers = {
        "shovel": _shovel, "saw": _saw, "ladder": _ladder, "bucket": _bucket, "wrench": _wrench,
        "screwdriver": _screwdriver, "pencil": _pencil, "broom": _broom, "wheelbarrow": _wheelbarrow,
        "pickaxe": _pickaxe,
    }  # fmt: skip
    kind = draft.pick(tuple(makers))
    sub = {"pencil": "pen", "wrench": "tool", "screwdriver": "tool", "broom": "tool", "pickaxe": "tool"}.get(kind, kind)
    draft.call(kind, "tool", subclass=sub)
    draft.wobble = 0.08
    makers[kind](draft)


def _shovel(draft: Draft) -> None:
    wood, steel = draft.tint(WOOD), draft.tint((*METAL, *DARK_METAL))
    long = draft.proportion(1.2, 1.8, ("short", "long"))
    draft.add("handle", wood, cylinder(0.06, long, 8).at(y=long / 2))
    draft.add(
        "handle",
        wood,
        box(0.42, 0.09, 0.1).at(y=long),
        *[box(0.07, 0.2, 0.08).at(s * 0.16, long - 0.1, 0) for s in (-1, 1)],
    )
    outline = [(-0.3, 0.05), (0.3, 0.05), (0.3, -0.35), (0.0, -0.66), (-0.3, -0.35)]
    draft.add("blade", steel, extrude(outline, 0.08).at(y=0.05), cylinder(0.09, 0.3, 8).at(y=0.12))


def _saw(draft: Draft) -> None:
    steel, wood = draft.tint(METAL), draft.tint((*WOOD, *PAINT[:6]))
    long, teeth = 1.5, 14
    x = np.linspace(0, long, 2 * teeth + 1)
    edge = np.stack([x, np.where(np.arange(len(x)) % 2, -0.07, 0.0)], axis=1)
    outline = np.concatenate([edge, [(long, 0.18), (0.0, 0.46)]])
    draft.add("blade", steel, extrude(outline, 0.06))
    draft.add("handle", wood, torus(0.2, 0.15, 10, 5).turned("x", 90).scaled(1, 1.3, 1).at(-0.22, 0.2, 0))
    draft.material = "metal"


def _ladder(draft: Draft) -> None:
    color = draft.tint((*WOOD, *METAL))
    rungs = draft.count(4, 9)
    wide, high = draft.between(0.5, 0.7), 0.32 * rungs + 0.2
    for side in (-1, 1):
        draft.add("rail", color, box(0.1, high, 0.12).at(side * wide / 2, high / 2, 0))
    for i in range(rungs):
        draft.add("rung", color, cylinder(0.045, wide, 6).turned("z", 90).at(y=0.26 + 0.32 * i))
    draft.having(rungs, "rung")


def _bucket(draft: Draft) -> None:
    color = draft.tint((*METAL, *WOOD, *PAINT))
    high = draft.between(0.75, 0.95)
    profile = [(0.0, 0.0), (0.36, 0.0), (0.5, high), (0.45, high), (0.33, 0.06), (0.0, 0.06)]
    draft.add("bucket", color, lathe(profile, 14))
    ring = draft.other((*METAL, *DARK_METAL), color)
    draft.add("rim", ring, torus(0.48, 0.06, 14, 5).at(y=high))
    draft.add("handle", ring, tube(arc(0.49, 0, 180, 10) * np.array([1, 0.85, 1]) + np.array([0, high, 0]), 0.03, 5))
    if draft.chance(0.4):
        draft.add("water", (84, 150, 206), cylinder(0.42, 0.05, 14).at(y=high * 0.75))
        draft.features.append("of water")


def _wrench(draft: Draft) -> None:
    steel = draft.tint((*METAL, *DARK_METAL))
    draft.material = "metal"
    draft.add("handle", steel, bevel_box(0.22, 1.3, 0.13, 0.04))
    jaw = [
        (-0.32, 0.0),
        (0.32, 0.0),
        (0.36, 0.4),
        (0.16, 0.46),
        (0.14, 0.18),
        (-0.14, 0.18),
        (-0.16, 0.46),
        (-0.36, 0.4),
    ]
    draft.add("head", steel, extrude(jaw, 0.15).at(y=0.6))
    draft.add("head", steel, torus(0.18, 0.16, 8, 4).turned("x", 90).at(y=-0.74))


def _screwdriver(draft: Draft) -> None:
    grip = draft.tint(PAINT)
    draft.add("handle", grip, lathe([(0.0, 0.0), (0.16, 0.03), (0.19, 0.3), (0.15, 0.6), (0.17, 0.66), (0.0, 0.7)], 8))
    draft.add("shaft", METAL[2], cylinder(0.05, 0.9, 8).at(y=1.1), box(0.15, 0.16, 0.05).at(y=1.55))


def _pencil(draft: Draft) -> None:
    color = draft.tint(((240, 200, 60), *PAINT))
    long = draft.between(1.3, 1.7)
    draft.add("pencil", color, cylinder(0.12, long, 6).at(y=long / 2))
    draft.add("tip", (226, 190, 146), cylinder(0.12, 0.3, 6, top=0.03).at(y=-0.15).turned("x", 180).at(y=0.0))
    draft.add("lead", BLACK, cylinder(0.045, 0.12, 6, top=0.0).turned("x", 180).at(y=-0.28))
    draft.add("band", METAL[2], cylinder(0.13, 0.14, 8).at(y=long + 0.05))
    draft.add("eraser", (236, 140, 150), cylinder(0.12, 0.16, 8).at(y=long + 0.18))


def _broom(draft: Draft) -> None:
    wood, straw = draft.tint(WOOD), draft.tint(((226, 190, 90), (214, 160, 80), (206, 176, 120)))
    draft.add("handle", wood, cylinder(0.05, 1.5, 8).at(y=1.25))
    draft.add("bristles", straw, frustum((0.72, -0.16, 0.16), (0.26, -0.1, 0.1), -0.05, 0.55))
    draft.add("band", draft.other((*CLOTH[:4], *DARK_METAL), straw), box(0.34, 0.12, 0.24).at(y=0.5))


def _wheelbarrow(draft: Draft) -> None:
    paint, wood = draft.tint((*PAINT, *METAL, *WOOD)), draft.tint((*WOOD, *DARK_METAL))
    low, top = (0.5, -0.4, 0.35), (0.85, -0.6, 0.75)
    draft.add("tray", paint, frustum(low, top, 0.45, 0.85))
    draft.add("load", draft.tint(((120, 92, 66), (150, 150, 148))), ball(0.7, 0.3, 1.1, 8, 4).at(0, 0.84, 0.07))
    for side in (-1, 1):
        draft.add("handle", wood, link((side * 0.12, 0.3, 0.95), (side * 0.36, 0.62, -1.2), 0.045, 6))
        draft.add("leg", wood, link((side * 0.26, 0.45, -0.35), (side * 0.3, 0.0, -0.45), 0.04, 6))
    draft.add("wheel", TIRE, cylinder(0.3, 0.14, 12).turned("z", 90).at(0, 0.3, 0.9))
    draft.having(1, "wheel")


def _pickaxe(draft: Draft) -> None:
    wood, steel = draft.tint(WOOD), draft.tint((*METAL, *DARK_METAL))
    draft.add("handle", wood, cylinder(0.065, 1.5, 8).at(y=0.75))
    t = np.linspace(-1, 1, 9)
    path = np.stack([0.75 * t, 1.42 - 0.28 * t**2, 0 * t], axis=1)
    draft.add(
        "head",
        steel,
        tube(path, [0.015, 0.06, 0.085, 0.1, 0.105, 0.1, 0.085, 0.06, 0.015], 6),
        box(0.2, 0.22, 0.2).at(y=1.4),
    )
