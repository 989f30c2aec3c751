"""Tables, desks, nightstands and beds."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft, drawn_from
from helicube.train.procedural.palette import BRASS, CLOTH, DARK_METAL, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import ball, bevel_box, box, cylinder, rounded_slab
from helicube.train.procedural.supports import corner_legs, pedestal, ring_legs

__all__ = ["bed", "desk", "drawer_front", "nightstand", "table"]


def _surface(draft: Draft) -> tuple[RGB, RGB, str]:
    """Colours of top and legs and the material word."""
    if draft.chance(0.7):
        top = draft.tint(WOOD)
        return top, top if draft.chance(0.65) else draft.other((*WOOD, *DARK_METAL, WHITE), top), "wooden"
    top = draft.tint((*PAINT, *METAL))
    return top, top if draft.chance(0.4) else draft.other((*METAL, *DARK_METAL, *WOOD), top), ""


def table(draft: Draft) -> None:
    """Dining, coffee, round and pedestal tables."""
    top, leg, draft.material = _surface(draft)
    coffee = draft.chance(0.25)
    draft.call(*(("coffee table", "table") if coffee else ("table",)), subclass="coffee table" if coffee else "table")
    high = draft.between(0.32, 0.45) if coffee else draft.between(0.62, 0.85)
    slab = draft.between(0.035, 0.09)
    shape = draft.pick(("rectangle", "rectangle", "square", "round", "round", "oval"))
    wide = draft.between(0.8, 1.0)
    if shape == "rectangle":
        wide, deep = draft.proportion(1.0, 2.0, ("short", "long")), draft.between(0.65, 0.95)
    elif shape == "oval":
        wide, deep = draft.between(1.3, 1.8), draft.between(0.75, 0.95)
    else:
        deep = wide
    if shape != "rectangle":
        draft.adjectives.append(shape)
    if shape in {"round", "oval"}:
        _round_table(draft, top, leg, (wide, deep, high, slab))
    else:
        corner = draft.chance(0.3)
        plate = rounded_slab(wide, slab, deep, 0.12) if corner else box(wide, slab, deep)
        draft.add("top", top, plate.at(y=high + slab / 2))
        thick = draft.between(0.05, 0.11)
        inset = draft.pick((1.0, 0.94, 0.86))
        corner_legs(draft, leg, (wide * inset, deep * inset), high, thick)
        draft.having(4, "leg")
        _apron(draft, leg, (wide * inset - thick, deep * inset - thick), high, thick)


def _apron(draft: Draft, color: RGB, size: tuple[float, float], high: float, thick: float) -> None:
    """Boards under the top, or a shelf near the floor, or nothing."""
    choice = draft.rng.random()
    if choice < 0.4:
        for side in (-1, 1):
            draft.add("frame", color, box(size[0], 0.09, thick * 0.4).at(0, high - 0.045, side * size[1] / 2))
            draft.add("frame", color, box(thick * 0.4, 0.09, size[1]).at(side * size[0] / 2, high - 0.045, 0))
    elif choice < 0.6:
        draft.add("shelf", color, box(size[0], 0.035, size[1]).at(y=high * 0.25))
        draft.features.append("with a shelf")


def _round_table(draft: Draft, top: RGB, leg: RGB, size: tuple[float, float, float, float]) -> None:
    wide, deep, high, slab = size
    draft.add("top", top, cylinder(0.5, slab, 18).scaled(wide, 1, deep).at(y=high + slab / 2))
    if draft.chance(0.45):
        pedestal(draft, leg, min(wide, deep) * 0.3, high, draft.between(0.08, 0.16))
        draft.having(1, "leg")
        return
    number = 4 if wide != deep else draft.pick((3, 3, 4, 5, 6))
    before = len(draft.pieces)
    ring_legs(draft, leg, number, (0.36, high, draft.between(0.05, 0.1)), draft.between(0.9, 1.25))
    if number == 4:
        turned = [(p.part, p.color, p.solid.turned("y", 45).scaled(wide, 1, deep)) for p in draft.pieces[before:]]
    else:
        turned = [(p.part, p.color, p.solid.scaled(wide, 1, deep)) for p in draft.pieces[before:]]
    del draft.pieces[before:]
    for part, color, solid in turned:
        draft.add(part, color, solid)
    draft.having(number, "leg")


def drawer_front(
    draft: Draft, color: RGB, knob: RGB, size: tuple[float, float], at: tuple[float, float, float]
) -> None:
    """A drawer seen from the front: a raised board of width by height centred at `at`, with a knob or a bar."""
    x, y, z = at
    draft.add("drawer", color, box(size[0], size[1], 0.03).at(x, y, z))
    if draft.rng.random() < 0.5:
        draft.add("handle", knob, ball(0.045, 0.045, 0.045, 8, 4).at(x, y, z + 0.028))
    else:
        draft.add("handle", knob, box(min(0.16, size[0] * 0.4), 0.025, 0.03).at(x, y, z + 0.027))


def desk(draft: Draft) -> None:
    """Writing desks with a block of drawers on one side or both."""
    top, leg, draft.material = _surface(draft)
    draft.call("desk")
    wide, deep, high = (
        draft.proportion(1.1, 1.9, ("small", "wide")),
        draft.between(0.55, 0.75),
        draft.between(0.66, 0.78),
    )
    draft.add("top", top, box(wide, 0.05, deep).at(y=high + 0.025))
    knob = draft.tint((*METAL, BRASS, *DARK_METAL))
    sides = draft.pick(((), (1,), (-1,), (-1, 1)))
    block = wide * draft.between(0.24, 0.32)
    drawers = draft.count(2, 4)
    front = draft.other((*WOOD, WHITE), leg) if draft.chance(0.3) else leg
    for side in (-1, 1):
        x = side * (wide / 2 - block / 2 - 0.02)
        if side in sides:
            draft.add("body", leg, box(block, high - 0.06, deep * 0.92).at(x, high / 2 + 0.03, 0))
            for i in range(drawers):
                each = (high - 0.1) / drawers
                at = (x, 0.08 + (i + 0.5) * each, deep * 0.46)
                drawer_front(draft, front, knob, (block * 0.88, each * 0.84), at)
        elif draft.chance(0.5):
            draft.add("leg", leg, box(0.05, high, deep * 0.92).at(side * (wide / 2 - 0.05), high / 2, 0))
        else:
            for sz in (-1, 1):
                draft.add("leg", leg, box(0.06, high, 0.06).at(side * (wide / 2 - 0.06), high / 2, sz * deep * 0.42))
    if sides:
        draft.having(drawers * len(sides), "drawer")
    draft.add("back", leg, box(wide * 0.9, high * 0.4, 0.03).at(0, high * 0.78, -deep * 0.4))


def nightstand(draft: Draft) -> None:
    """Small bedside cupboards with drawers and perhaps an open shelf."""
    top, leg, draft.material = _surface(draft)
    draft.call("nightstand")
    wide, deep = draft.between(0.42, 0.6), draft.between(0.36, 0.48)
    body = draft.proportion(0.32, 0.6, ("low", "tall"))
    feet = draft.between(0.05, 0.26)
    draft.add("body", top, box(wide, body, deep).at(y=feet + body / 2))
    draft.add("top", leg, box(wide * 1.08, 0.035, deep * 1.08).at(y=feet + body + 0.0175))
    corner_legs(draft, leg, (wide * 0.94, deep * 0.94), feet + 0.01, 0.05)
    number = draft.count(1, 3)
    knob = draft.tint((BRASS, *METAL, *DARK_METAL))
    front = draft.other((*WOOD, WHITE), top) if draft.chance(0.35) else top
    for i in range(number):
        each = body / number
        drawer_front(draft, front, knob, (wide * 0.86, each * 0.8), (0, feet + (i + 0.5) * each, deep / 2 + 0.005))
    draft.having(number, "drawer")
    if draft.chance(0.15):
        lamp = draft.tint((*CLOTH, WHITE))
        draft.add("lamp", knob, cylinder(0.02, 0.2, 6).at(y=feet + body + 0.12))
        draft.add("lamp", lamp, cylinder(0.12, 0.16, 10, top=0.08).at(y=feet + body + 0.28))
        draft.features.append("with a lamp on it")


def bed(draft: Draft) -> None:
    """Single, double and bunk beds; the head at -Z."""
    frame = draft.tint(WOOD) if draft.chance(0.75) else draft.tint((*PAINT, *DARK_METAL))
    blanket = draft.other(CLOTH, frame)
    sheet = draft.tint((WHITE, (226, 222, 210), (200, 204, 208)))
    bunk = draft.chance(0.12)
    pillows = 1 if bunk else draft.count(1, 2)
    wide = draft.between(0.9, 1.05) if pillows == 1 else draft.between(1.4, 1.8)
    name = "bunk bed" if bunk else "single bed" if pillows == 1 else "double bed"
    draft.call(name, "bed", subclass="bed")
    draft.material = "wooden" if drawn_from(frame, WOOD) else ""
    long, base = draft.between(1.95, 2.15), draft.between(0.22, 0.38)
    levels = (0.0, draft.between(0.95, 1.15)) if bunk else (0.0,)
    for level in levels:
        _mattress(draft, (frame, sheet, blanket), (wide, long, base + level), pillows)
    post, head = 0.09, draft.proportion(0.35, 0.9, ("low", "tall")) if not bunk else 0.35
    foot = draft.pick((0.05, 0.15, 0.4))
    top = levels[-1] + base
    for z, rise in ((-long / 2, head), (long / 2, 0.35 if bunk else foot)):
        for sx in (-1, 1):
            height = top + rise
            draft.add("leg", frame, box(post, height, post).at(sx * wide / 2, height / 2, z))
        if rise > 0.1:
            for level in levels:
                board = bevel_box(wide, rise * 0.9, 0.05, 0.015).at(0, level + base + rise * 0.45, z)
                draft.add("headboard" if z < 0 else "footboard", frame, board)
    draft.having_colored("sheets" if blanket == sheet else "blankets" if bunk else "bedding", blanket)


def _mattress(draft: Draft, colors: tuple[RGB, RGB, RGB], size: tuple[float, float, float], pillows: int) -> None:
    frame, sheet, blanket = colors
    wide, long, y = size
    draft.add("frame", frame, box(wide, 0.14, long).at(y=y - 0.05))
    draft.add("mattress", sheet, bevel_box(wide * 0.95, 0.2, long * 0.96, 0.04).at(y=y + 0.1))
    cover = long * draft.between(0.55, 0.68)
    draft.add(
        "blanket", blanket, bevel_box(wide * 1.02, 0.2, cover, 0.04).at(0, y + 0.13, long * 0.48 - cover / 2 + 0.01)
    )
    for i in range(pillows):
        x = (i - (pillows - 1) / 2) * wide * 0.45
        pillow = bevel_box(wide * 0.4 if pillows > 1 else wide * 0.6, 0.12, 0.34, 0.05)
        draft.add("pillow", sheet, pillow.turned("x", 12).at(x, y + 0.25, -long * 0.36))
