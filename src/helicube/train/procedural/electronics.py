"""Televisions, monitors, computers and gadgets; their screens look towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, BRASS, DARK_METAL, METAL, PAINT, RGB, SCREEN, TIRE, WHITE, WOOD
from helicube.train.procedural.primitives import (
    bevel_box,
    box,
    capsule,
    cylinder,
    frustum,
    icosphere,
    link,
    rounded_slab,
    torus,
)

__all__ = ["computer", "gadget", "monitor", "television"]

_GLOW: tuple[RGB, ...] = (SCREEN, SCREEN, (44, 96, 160), (40, 130, 140), (90, 170, 210))
_CASE: tuple[RGB, ...] = (BLACK, *DARK_METAL, *METAL[2:4], WHITE)


def television(draft: Draft) -> None:
    """Flat televisions on feet, and old sets with aerials."""
    draft.call(*draft.pick((("tv",), ("television", "tv"))), subclass="tv")
    glow = draft.tint(_GLOW)
    if draft.chance(0.4):
        _old_set(draft, glow)
        return
    case = draft.tint(_CASE)
    wide = draft.proportion(1.3, 1.9, ("small", "wide"))
    high = draft.between(0.8, 0.95)
    draft.add("frame", case, bevel_box(wide, high, 0.08, 0.02).at(y=high / 2 + 0.2))
    draft.add("screen", glow, box(wide * 0.94, high * 0.9, 0.02).at(0, high / 2 + 0.205, 0.038))
    draft.add("back", case, box(wide * 0.6, high * 0.5, 0.1).at(0, high / 2 + 0.15, -0.06))
    if draft.chance(0.5):
        draft.add("stand", case, box(0.12, 0.24, 0.08).at(y=0.12), box(wide * 0.4, 0.04, 0.34).at(y=0.02))
    else:
        for side in (-1, 1):
            draft.add("foot", case, frustum((0.06, -0.2, 0.2), (0.06, -0.04, 0.04), 0.0, 0.22).at(side * wide * 0.34))
    draft.adjectives.append("flat-screen")


def _old_set(draft: Draft, glow: RGB) -> None:
    case = draft.tint((*WOOD, *PAINT, *METAL))
    knob = draft.other((BRASS, *METAL, *DARK_METAL), case)
    draft.adjectives.append("vintage")
    wide, high, deep = draft.between(1.1, 1.4), draft.between(0.8, 0.95), draft.between(0.6, 0.8)
    feet = draft.between(0.08, 0.25)
    draft.add("case", case, bevel_box(wide, high, deep, 0.04).at(y=feet + high / 2))
    draft.add(
        "back",
        case,
        frustum((wide * 0.7, -deep / 2 - 0.2, 0), (wide * 0.6, -deep / 2 - 0.15, 0), feet + 0.12, feet + high * 0.8),
    )
    front = deep / 2
    draft.add("frame", knob, bevel_box(wide * 0.7, high * 0.8, 0.06, 0.02).at(-wide * 0.1, feet + high / 2, front))
    draft.add(
        "screen", glow, bevel_box(wide * 0.62, high * 0.7, 0.1, 0.04).at(-wide * 0.1, feet + high / 2, front + 0.01)
    )
    for i in range(draft.count(2, 3)):
        dial = cylinder(0.06, 0.07, 8).turned("x", 90).at(wide * 0.38, feet + high * (0.75 - 0.22 * i), front + 0.03)
        draft.add("knob", knob, dial)
    for sx in (-1, 1):
        for sz in (-1, 1):
            draft.add(
                "leg", knob, cylinder(0.035, feet + 0.03, 6, top=0.05).at(sx * wide * 0.4, feet / 2, sz * deep * 0.35)
            )
    if draft.chance(0.7):
        for side in (-1, 1):
            top = (side * 0.35, feet + high + 0.5, 0.0)
            draft.add("antenna", DARK_METAL[1], link((0, feet + high, 0), top, 0.022, 5))
        draft.features.append("with two antennas")


def monitor(draft: Draft) -> None:
    """Computer screens on a foot."""
    case, glow = draft.tint(_CASE), draft.tint(_GLOW)
    draft.call(
        *draft.pick((("monitor",), ("computer monitor", "monitor"), ("computer screen", "monitor"))), subclass="monitor"
    )
    wide = draft.proportion(0.9, 1.5, ("small", "wide"))
    high, stand = draft.between(0.6, 0.75), draft.between(0.2, 0.35)
    draft.add("frame", case, bevel_box(wide, high, 0.07, 0.02).at(y=stand + high / 2))
    draft.add("screen", glow, box(wide * 0.93, high * 0.86, 0.02).at(0, stand + high * 0.52, 0.034))
    draft.add("stand", case, box(0.1, stand + high * 0.4, 0.05).at(0, (stand + high * 0.4) / 2, -0.05))
    if draft.chance(0.5):
        draft.add("base", case, cylinder(0.24, 0.035, 14).scaled(1.2, 1, 0.9).at(y=0.0175))
    else:
        draft.add("base", case, box(wide * 0.4, 0.035, 0.36).at(y=0.0175))


def computer(draft: Draft) -> None:
    """Towers, laptops, keyboards, and a tower with its screen."""
    kind = draft.pick(("computer", "laptop", "keyboard", "desktop computer"))
    draft.call(kind, *(("computer",) if kind == "desktop computer" else ()), subclass=kind.removeprefix("desktop "))
    case, glow = draft.tint((*_CASE, *PAINT[:6])), draft.tint(_GLOW)
    if kind == "laptop":
        _laptop(draft, case, glow)
    elif kind == "keyboard":
        _keys(draft, case, (1.5, 0.5), 0.0)
    elif kind == "computer":
        _case(draft, case, 0.0)
    else:
        _case(draft, case, 0.75)
        draft.add("frame", case, bevel_box(1.0, 0.66, 0.07, 0.02).at(-0.1, 0.68, -0.1))
        draft.add("screen", glow, box(0.92, 0.56, 0.02).at(-0.1, 0.69, -0.066))
        draft.add("stand", case, box(0.1, 0.5, 0.05).at(-0.1, 0.25, -0.15), box(0.42, 0.03, 0.3).at(-0.1, 0.015, -0.1))
        before = len(draft.pieces)
        _keys(draft, case, (0.8, 0.26), 0.0)
        draft.pieces[before:] = [type(p)("keyboard", p.solid.at(-0.1, 0, 0.3), p.color) for p in draft.pieces[before:]]
        draft.add("mouse", case, icosphere(0.12, 0.08, 0.2, 1).at(0.42, 0.03, 0.3))
        draft.features.append("with a monitor and a keyboard")


def _case(draft: Draft, color: RGB, x: float) -> None:
    """A tower case on y = 0."""
    high, deep = draft.between(0.85, 1.1), draft.between(0.75, 0.95)
    draft.add("case", color, bevel_box(0.4, high, deep, 0.02).at(x, high / 2 + 0.02, -0.05))
    trim = draft.other((*DARK_METAL, *METAL), color)
    front = deep / 2 - 0.05
    for i in range(2):
        draft.add("drive", trim, box(0.3, 0.07, 0.03).at(x, high * (0.88 - 0.11 * i), front + 0.005))
    button = draft.pick(((80, 200, 120), (80, 160, 230), (226, 80, 60)))
    draft.add("button", button, cylinder(0.035, 0.04, 8).turned("x", 90).at(x, high * 0.62, front + 0.01))
    draft.add("grill", trim, box(0.26, high * 0.3, 0.03).at(x, high * 0.26, front + 0.005))


def _laptop(draft: Draft, case: RGB, glow: RGB) -> None:
    wide, deep = draft.between(1.2, 1.4), draft.between(0.8, 0.92)
    tilt = draft.between(5, 30)
    draft.add("base", case, rounded_slab(wide, 0.06, deep, 0.05).at(y=0.03))
    keys = draft.other((BLACK, *DARK_METAL, *METAL), case)
    for row in range(4):
        for column in range(8):
            key = box(wide * 0.085, 0.02, deep * 0.085)
            draft.add("keyboard", keys, key.at((column - 3.5) * wide * 0.107, 0.062, (row - 2.6) * deep * 0.11))
    draft.add("touchpad", keys, box(wide * 0.26, 0.01, deep * 0.22).at(0, 0.061, deep * 0.32))
    lid = bevel_box(wide, deep * 0.92, 0.05, 0.015).at(y=deep * 0.46)
    screen = box(wide * 0.92, deep * 0.78, 0.02).at(0, deep * 0.48, 0.022)
    for part, color, solid in (("lid", case, lid), ("screen", glow, screen)):
        draft.add(part, color, solid.turned("x", -tilt).at(0, 0.05, -deep / 2 + 0.02))
    draft.adjectives.append("open")


def _keys(draft: Draft, case: RGB, size: tuple[float, float], y: float) -> None:
    """A keyboard of width by depth on the plane y."""
    wide, deep = size
    cap = draft.other((BLACK, *DARK_METAL, *METAL[2:], WHITE), case)
    draft.add(
        "base", case, frustum((wide, -deep / 2, deep / 2), (wide * 0.98, -deep / 2, deep / 2 - 0.02), y, y + 0.07)
    )
    for row in range(4):
        columns = 11 if row < 3 else 5
        for column in range(columns):
            long = wide * 0.078 if row < 3 or column != 2 else wide * 0.4
            x = (column - 5) * wide * 0.086 if row < 3 else (-0.42, -0.31, 0.0, 0.31, 0.42)[column] * wide
            draft.add("key", cap, box(long, 0.05, deep * 0.18).at(x, y + 0.075, (row - 1.5) * deep * 0.23))


def gadget(draft: Draft) -> None:
    """Phones, radios, speakers, cameras, batteries and headphones."""
    kind = draft.pick(("phone", "radio", "speaker", "camera", "battery", "headphones"))
    draft.call(kind, subclass=kind)
    draft.wobble = 0.1
    color = draft.tint((*PAINT, *_CASE))
    trim = draft.other((*DARK_METAL, *METAL, BLACK, BRASS), color)
    {
        "phone": _phone, "radio": _radio, "speaker": _speaker, "camera": _camera, "battery": _battery,
        "headphones": _headphones,
    }[kind](draft, color, trim)  # fmt: skip


def _phone(draft: Draft, color: RGB, trim: RGB) -> None:
    wide, high = 0.5, draft.between(0.9, 1.05)
    draft.add("body", color, rounded_slab(wide, 0.09, high, 0.07).turned("x", 90))
    draft.add("screen", draft.tint(_GLOW), box(wide * 0.9, high * 0.84, 0.02).at(0, 0, 0.045))
    draft.add("camera", trim, bevel_box(0.16, 0.2, 0.04, 0.01).at(0.12, high * 0.38, -0.06))


def _radio(draft: Draft, color: RGB, trim: RGB) -> None:
    wide, high = draft.between(1.1, 1.4), draft.between(0.6, 0.75)
    draft.add("body", color, bevel_box(wide, high, 0.36, 0.05))
    draft.add("speaker", trim, cylinder(high * 0.32, 0.06, 14).turned("x", 90).at(-wide * 0.25, -high * 0.06, 0.18))
    draft.add("display", (226, 214, 170), box(wide * 0.38, high * 0.22, 0.04).at(wide * 0.22, high * 0.18, 0.175))
    for i in range(3):
        draft.add("knob", trim, cylinder(0.06, 0.08, 8).turned("x", 90).at(wide * (0.1 + 0.13 * i), -high * 0.2, 0.2))
    draft.add("antenna", METAL[2], link((wide * 0.42, high / 2, -0.1), (wide * 0.55, high * 1.3, -0.1), 0.02, 5))
    draft.features.append("with an antenna")


def _speaker(draft: Draft, color: RGB, trim: RGB) -> None:
    high = draft.proportion(0.9, 1.5, ("short", "tall"))
    draft.add("body", color, bevel_box(0.62, high, 0.55, 0.03))
    for y, radius in ((-high * 0.2, 0.23), (high * 0.27, 0.14)):
        draft.add("cone", trim, torus(radius, 0.07, 14, 5).turned("x", 90).at(0, y, 0.275))
        draft.add(
            "cone",
            BLACK if trim != BLACK else DARK_METAL[3],
            cylinder(radius * 0.95, 0.04, 14, top=radius * 0.5).turned("x", 90).at(0, y, 0.28),
        )


def _camera(draft: Draft, color: RGB, trim: RGB) -> None:
    draft.add("body", color, bevel_box(1.0, 0.66, 0.36, 0.05))
    draft.add("body", trim, box(0.36, 0.14, 0.26).at(0, 0.38, 0))
    draft.add("lens", trim, cylinder(0.26, 0.4, 14, top=0.23).turned("x", 90).at(0, -0.02, 0.34))
    draft.add("lens", (70, 90, 110), cylinder(0.18, 0.04, 14).turned("x", 90).at(0, -0.02, 0.54))
    draft.add("button", (204, 48, 44), cylinder(0.06, 0.08, 8).at(-0.34, 0.35, 0))
    draft.add("flash", WHITE, box(0.2, 0.08, 0.04).at(0, 0.38, 0.13))


def _battery(draft: Draft, color: RGB, trim: RGB) -> None:
    draft.add("body", color, cylinder(0.3, 0.85, 14).at(y=0.425))
    draft.add("top", trim, cylinder(0.3, 0.25, 14).at(y=0.97))
    draft.add("contact", METAL[3], cylinder(0.11, 0.1, 10).at(y=1.14))


def _headphones(draft: Draft, color: RGB, trim: RGB) -> None:
    band = torus(0.5, 0.1, 20, 6).turned("x", 90)
    draft.add("band", color, band.scaled(1, 1.1, 1).at(y=0.1))
    for side in (-1, 1):
        draft.add("cushion", trim, cylinder(0.26, 0.14, 12).turned("z", 90).at(side * 0.46, -0.2, 0))
        draft.add("cup", color, cylinder(0.24, 0.14, 12, top=0.16).turned("z", -90 * side).at(side * 0.58, -0.2, 0))
    draft.add("band", TIRE, capsule(0.06, 0.4, 6).turned("z", 90).at(0, 0.66, 0))
