"""Kitchen and laundry machines; their doors at +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, DARK_METAL, GLASS, METAL, PAINT, RGB, SCREEN, WHITE
from helicube.train.procedural.primitives import bevel_box, box, cylinder, torus
from helicube.train.procedural.sweep import lathe

__all__ = ["fridge", "kitchen_appliance", "oven", "washing_machine"]

_ENAMEL: tuple[RGB, ...] = (WHITE, WHITE, METAL[3], METAL[2], DARK_METAL[0], BLACK)


def _enamel(draft: Draft) -> RGB:
    return draft.tint(_ENAMEL) if draft.chance(0.8) else draft.tint(PAINT)


def fridge(draft: Draft) -> None:
    """Fridges with one door, a freezer above or below, or two wings."""
    color = _enamel(draft)
    grip = draft.other((*METAL, *DARK_METAL), color)
    draft.call("fridge")
    kind = draft.pick(("one", "two", "two", "wings"))
    wide = draft.between(0.85, 1.05) if kind == "wings" else draft.between(0.6, 0.72)
    high, deep = draft.proportion(1.1, 1.95, ("short", "tall")), draft.between(0.6, 0.7)
    draft.add("body", color, bevel_box(wide, high, deep, 0.02).at(y=high / 2 + 0.04))
    draft.add("base", DARK_METAL[2], box(wide * 0.94, 0.08, deep * 0.9).at(y=0.04))
    face = deep / 2 + 0.025
    if kind == "wings":
        split = [("door left", wide / 4, high / 2, wide / 2, high), ("door right", -wide / 4, high / 2, wide / 2, high)]
    elif kind == "one":
        split = [("door", 0.0, high / 2, wide, high)]
    else:
        cut = high * draft.pick((0.32, 0.66))
        lower, upper = ("door freezer", "door fridge") if cut < high / 2 else ("door fridge", "door freezer")
        split = [(lower, 0.0, cut / 2, wide, cut), (upper, 0.0, (high + cut) / 2, wide, high - cut)]
    for name, x, y, w, h in split:
        draft.add(name, color, bevel_box(w - 0.02, h - 0.03, 0.06, 0.015).at(x, y + 0.05, face))
        side = -np.sign(x) if x else -1
        bar = cylinder(0.018, min(0.45, h * 0.5), 6).at(x + side * (w / 2 - 0.07), y + 0.05, face + 0.06)
        draft.add("handle", grip, bar)
    draft.having(len(split), "door")


def oven(draft: Draft) -> None:
    """Cookers with four rings, an oven door with a window, and knobs."""
    color = _enamel(draft)
    draft.call(*draft.pick((("oven",), ("kitchen stove", "oven"), ("stove", "oven"))), subclass="oven")
    wide, high, deep = draft.between(0.6, 0.9), draft.between(0.8, 0.95), draft.between(0.58, 0.68)
    dark = draft.other((*DARK_METAL, BLACK), color)
    draft.add("body", color, box(wide, high, deep).at(y=high / 2))
    draft.add("top", dark, box(wide * 1.01, 0.03, deep * 1.01).at(y=high + 0.015))
    for sx in (-1, 1):
        for sz in (-1, 1):
            ring = torus(0.085, 0.045, 12, 4).at(sx * wide * 0.25, high + 0.035, sz * deep * 0.24)
            draft.add(
                "burner", METAL[0], ring, cylinder(0.035, 0.04, 8).at(sx * wide * 0.25, high + 0.04, sz * deep * 0.24)
            )
    draft.having(4, "burner")
    face = deep / 2
    draft.add("door", color, box(wide * 0.88, high * 0.55, 0.05).at(0, high * 0.42, face + 0.015))
    draft.add("window", SCREEN, box(wide * 0.62, high * 0.3, 0.06).at(0, high * 0.42, face + 0.02))
    handle = cylinder(0.018, wide * 0.7, 6).turned("z", 90).at(0, high * 0.66, face + 0.08)
    draft.add("handle", METAL[2], handle)
    for i in range(5):
        knob = cylinder(0.032, 0.05, 8).turned("x", 90).at((i - 2) * wide * 0.17, high * 0.86, face + 0.02)
        draft.add("knob", dark, knob)
    if draft.chance(0.4):
        draft.add("back", color, box(wide, 0.22, 0.06).at(0, high + 0.11, -deep / 2 + 0.03))
        draft.add("back", SCREEN, box(wide * 0.3, 0.1, 0.07).at(0, high + 0.12, -deep / 2 + 0.035))


def washing_machine(draft: Draft) -> None:
    """Front loaders with a round door."""
    color = _enamel(draft)
    draft.call(
        *draft.pick((("washing machine",), ("washing machine",), ("dryer", "washing machine"))),
        subclass="washing machine",
    )
    wide, high, deep = 0.62, draft.between(0.8, 0.92), draft.between(0.55, 0.66)
    ring = draft.other((*METAL, *DARK_METAL), color)
    draft.add("body", color, bevel_box(wide, high, deep, 0.025).at(y=high / 2))
    face = deep / 2
    draft.add("door", ring, torus(0.19, 0.07, 16, 5).turned("x", 90).at(0, high * 0.44, face + 0.01))
    glass = cylinder(0.17, 0.05, 16, top=0.13).turned("x", 90).at(0, high * 0.44, face + 0.02)
    draft.add("door", draft.tint(GLASS), glass)
    draft.add("panel", ring, box(wide * 0.94, high * 0.14, 0.03).at(0, high * 0.89, face + 0.005))
    draft.add("knob", WHITE, cylinder(0.045, 0.06, 10).turned("x", 90).at(wide * 0.3, high * 0.89, face + 0.03))
    draft.add("panel", SCREEN, box(0.14, high * 0.07, 0.05).at(-wide * 0.05, high * 0.89, face + 0.005))
    draft.features.append("with a round door")


def kitchen_appliance(draft: Draft) -> None:
    """Microwaves, toasters, blenders, coffee machines and kettles."""
    kind = draft.pick(("microwave", "toaster", "blender", "coffee machine", "kettle"))
    draft.call(kind, subclass=kind)
    draft.wobble = 0.1
    color = _enamel(draft) if draft.chance(0.6) else draft.tint(PAINT)
    trim = draft.other((*DARK_METAL, *METAL, BLACK), color)
    {"microwave": _microwave, "toaster": _toaster, "blender": _blender, "kettle": _kettle}.get(kind, _coffee)(
        draft, color, trim
    )


def _microwave(draft: Draft, color: RGB, trim: RGB) -> None:
    wide, high, deep = draft.between(0.95, 1.15), draft.between(0.55, 0.65), 0.65
    draft.add("body", color, bevel_box(wide, high, deep, 0.02))
    face = deep / 2
    draft.add("door", color, box(wide * 0.7, high * 0.9, 0.04).at(-wide * 0.12, 0, face + 0.01))
    draft.add("window", SCREEN, box(wide * 0.54, high * 0.6, 0.05).at(-wide * 0.13, 0, face + 0.015))
    draft.add("handle", trim, box(0.035, high * 0.7, 0.05).at(wide * 0.2, 0, face + 0.05))
    draft.add("panel", trim, box(wide * 0.2, high * 0.86, 0.03).at(wide * 0.37, 0, face + 0.005))
    for i in range(3):
        knob = cylinder(0.05, 0.05, 8).turned("x", 90).at(wide * 0.37, high * (0.24 - 0.24 * i), face + 0.02)
        draft.add("button", METAL[3], knob)


def _toaster(draft: Draft, color: RGB, trim: RGB) -> None:
    wide, high, deep = 1.0, draft.between(0.6, 0.75), draft.between(0.5, 0.6)
    draft.add("body", color, bevel_box(wide, high, deep, 0.12).at(y=high / 2 + 0.05))
    draft.add("base", trim, box(wide * 0.9, 0.1, deep * 0.9).at(y=0.05))
    toast = draft.chance(0.6)
    for side in (-1, 1):
        draft.add("slot", BLACK, box(wide * 0.68, 0.03, 0.1).at(0, high + 0.05, side * deep * 0.17))
        if toast:
            bread = bevel_box(wide * 0.55, 0.3, 0.07, 0.03).at(0, high + 0.12, side * deep * 0.17)
            draft.add("toast", (206, 150, 90), bread)
    draft.add("lever", trim, box(0.1, 0.06, 0.14).at(wide / 2 + 0.02, high * 0.75, 0))
    if toast:
        draft.features.append("with two slices of toast")


def _blender(draft: Draft, color: RGB, trim: RGB) -> None:
    draft.add("base", color, cylinder(0.34, 0.5, 10, top=0.25).at(y=0.25))
    draft.add("knob", trim, cylinder(0.08, 0.06, 8).turned("x", 90).at(0, 0.22, 0.3))
    draft.add("jar", draft.tint(GLASS[:3]), cylinder(0.22, 0.8, 10, top=0.34).at(y=0.9))
    draft.add("lid", trim, cylinder(0.35, 0.12, 10, top=0.3).at(y=1.36))
    draft.add("lid", trim, cylinder(0.1, 0.1, 8).at(y=1.46))
    draft.add("handle", trim, box(0.08, 0.5, 0.08).at(0.46, 0.95, 0), box(0.2, 0.08, 0.08).at(0.38, 1.16, 0))
    draft.add("handle", trim, box(0.22, 0.08, 0.08).at(0.36, 0.74, 0))


def _coffee(draft: Draft, color: RGB, trim: RGB) -> None:
    draft.add("body", color, box(0.7, 1.1, 0.36).at(0, 0.55, -0.2), box(0.7, 0.36, 0.76).at(0, 0.92, 0))
    draft.add("base", trim, box(0.74, 0.14, 0.8).at(0, 0.07, 0))
    draft.add("spout", trim, cylinder(0.09, 0.14, 8).at(0, 0.69, 0.16))
    cup = [(0.0, 0.0), (0.14, 0.0), (0.19, 0.28), (0.15, 0.28), (0.11, 0.05), (0.0, 0.05)]
    draft.add("cup", draft.other((WHITE, *PAINT), color), lathe(cup, 10).at(0, 0.14, 0.16))
    for i in range(2):
        draft.add("button", trim, cylinder(0.06, 0.06, 8).turned("x", 90).at(-0.12 + 0.24 * i, 0.95, 0.39))


def _kettle(draft: Draft, color: RGB, trim: RGB) -> None:
    profile = [(0.0, 0.0), (0.48, 0.0), (0.5, 0.1), (0.36, 0.62), (0.22, 0.72), (0.0, 0.74)]
    draft.add("body", color, lathe(profile, 12))
    draft.add("lid", trim, cylinder(0.07, 0.12, 8, top=0.09).at(y=0.78))
    draft.add("spout", color, cylinder(0.1, 0.42, 8, top=0.05).turned("z", -50).at(0.48, 0.42, 0))
    handle = torus(0.36, 0.07, 14, 6).turned("x", 90).scaled(1, 1.0, 1).at(y=0.72)
    draft.add("handle", trim, handle)
