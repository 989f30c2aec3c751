"""Shelves, bookcases and cabinets; open or doored towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft, drawn_from
from helicube.train.procedural.palette import BRASS, CLOTH, DARK_METAL, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import ball, box, cylinder
from helicube.train.procedural.supports import corner_legs
from helicube.train.procedural.tables import drawer_front

__all__ = ["bookcase", "cabinet", "shelf"]

_BOOKS: tuple[RGB, ...] = ((168, 52, 48), (58, 92, 160), (64, 120, 72), (206, 168, 74), (110, 72, 130), (90, 62, 44))


def _carcass(draft: Draft, color: RGB, size: tuple[float, float, float], levels: int, *, back: bool) -> list[float]:
    """Sides and levels + 1 boards of a rack of width, height, depth; returns the height of each board's top."""
    wide, high, deep = size
    thick = draft.between(0.025, 0.05)
    for side in (-1, 1):
        draft.add("side", color, box(thick, high, deep).at(side * (wide - thick) / 2, high / 2, 0))
    tops = []
    for i in range(levels + 1):
        y = thick / 2 + 0.04 + (high - thick - 0.04) * i / levels
        draft.add("shelf" if i < levels else "top", color, box(wide - thick, thick, deep * 0.98).at(0, y, 0))
        tops.append(y + thick / 2)
    if back:
        draft.add(
            "back", color, box(wide - thick, high - 0.04, thick * 0.6).at(0, high / 2 + 0.02, -deep / 2 + thick * 0.3)
        )
    return tops


def _books(draft: Draft, span: tuple[float, float], y: float, room: float, deep: float) -> None:
    """A row of upright books between two x positions on a board at y, with `room` above it."""
    x, right = span
    while True:
        thick = draft.between(0.035, 0.07)
        if x + thick > right:
            return
        height = room * draft.between(0.6, 0.88)
        book = box(thick * 0.94, height, deep * 0.7).at(x + thick / 2, y + height / 2, 0)
        draft.add("book", draft.tint(_BOOKS), book)
        x += thick


def bookcase(draft: Draft) -> None:
    """A rack with a back, three to six levels, empty or with books."""
    color = draft.tint(WOOD) if draft.chance(0.8) else draft.tint((*PAINT, WHITE))
    draft.material = "wooden"
    draft.call("bookcase")
    levels = draft.count(3, 6)
    high, wide = draft.proportion(1.0, 2.1, ("low", "tall")), draft.proportion(0.6, 1.3, ("narrow", "wide"))
    deep = draft.between(0.26, 0.4)
    tops = _carcass(draft, color, (wide, high, deep), levels, back=True)
    draft.having(levels, "compartment" if levels == 2 else "shelf")
    if draft.chance(0.55):
        room = tops[1] - tops[0] - 0.03
        for y in tops[:-1]:
            start = draft.between(-wide / 2 + 0.06, 0)
            stop = draft.between(0.1, wide / 2 - 0.05)
            if draft.chance(0.85):
                _books(draft, (start, stop), y - 0.005, room, deep)
        draft.features.append("with books")


def shelf(draft: Draft) -> None:
    """Open racks, metal shelving and wall shelves on brackets."""
    if draft.chance(0.25):
        _wall_shelf(draft)
        return
    metal = draft.chance(0.4)
    color = draft.tint((*METAL, *DARK_METAL)) if metal else draft.tint(WOOD) if draft.chance(0.8) else draft.tint(PAINT)
    board = color if draft.chance(0.6) else draft.other(WOOD, color)
    draft.material = "metal" if metal else "wooden"
    draft.call("shelf")
    levels = draft.count(2, 6)
    high, wide = draft.proportion(0.8, 2.0, ("low", "tall")), draft.proportion(0.5, 1.4, ("narrow", "wide"))
    deep = draft.between(0.3, 0.5)
    draft.having(levels, "shelf")
    if metal or draft.chance(0.3):
        post = draft.between(0.03, 0.06)
        for sx in (-1, 1):
            for sz in (-1, 1):
                at = (sx * (wide - post) / 2, high / 2, sz * (deep - post) / 2)
                draft.add("post", color, box(post, high, post).at(*at))
        for i in range(levels):
            y = 0.1 + (high - 0.13) * i / (levels - 1)
            draft.add("shelf", board, box(wide * 0.99, 0.04, deep * 0.97).at(0, y, 0))
        return
    _carcass(draft, color, (wide, high, deep), levels, back=draft.chance(0.4))


def _wall_shelf(draft: Draft) -> None:
    color = draft.tint(WOOD)
    bracket = draft.other((*DARK_METAL, *WOOD), color)
    draft.call("wall shelf", "shelf", subclass="shelf")
    draft.material = "wooden"
    wide, deep = draft.proportion(0.7, 1.6, ("short", "long")), draft.between(0.26, 0.36)
    thick = draft.between(0.05, 0.08)
    draft.add("shelf", color, box(wide, thick, deep).at(y=0.3))
    number = draft.count(2, 3)
    for i in range(number):
        x = wide * 0.76 * (i / (number - 1) - 0.5)
        draft.add("bracket", bracket, box(0.06, 0.26, 0.05).at(x, 0.15, -deep / 2 + 0.025))
        draft.add("bracket", bracket, box(0.05, 0.05, deep * 0.85).at(x, 0.26, -0.02))
        brace = box(0.05, 0.05, deep * 0.9).turned("x", -38).at(x, 0.17, -deep * 0.14)
        draft.add("bracket", bracket, brace)
    draft.having(number, "bracket")


def cabinet(draft: Draft) -> None:
    """Cupboards, wardrobes and chests of drawers."""
    kind = draft.pick(("cabinet", "wardrobe", "chest of drawers"))
    nouns = (kind,) if kind == "cabinet" else (kind, "cabinet")
    draft.call(*nouns, subclass={"chest of drawers": "dresser"}.get(kind, kind))
    color = draft.tint(WOOD) if draft.chance(0.7) else draft.tint((*PAINT, WHITE, *METAL))
    draft.material = "wooden" if not drawn_from(color, METAL) else "metal"
    front = color if draft.chance(0.55) else draft.other((*WOOD, WHITE, *CLOTH), color)
    knob = draft.tint((BRASS, *METAL, *DARK_METAL))
    deep = draft.between(0.42, 0.58)
    if kind == "wardrobe":
        wide, high = draft.between(0.8, 1.3), draft.between(1.7, 2.0)
    else:
        wide, high = draft.proportion(0.6, 1.5, ("narrow", "wide")), draft.proportion(0.65, 1.25, ("low", "tall"))
    feet = draft.pick((0.0, 0.05, 0.14))
    if feet:
        corner_legs(draft, color, (wide * 0.95, deep * 0.92), feet + 0.01, 0.07)
    draft.add("body", color, box(wide, high, deep).at(y=feet + high / 2))
    if draft.chance(0.5):
        draft.add("top", color, box(wide * 1.05, 0.05, deep * 1.06).at(y=feet + high + 0.025))
    if kind == "chest of drawers":
        _drawers(draft, front, knob, (wide, high, deep, feet))
    else:
        _doors(draft, front, knob, (wide, high, deep, feet))


def _drawers(draft: Draft, front: RGB, knob: RGB, size: tuple[float, float, float, float]) -> None:
    wide, high, deep, feet = size
    rows = draft.count(3, 5)
    columns = 2 if wide > 1.1 else 1
    each, across = high / rows, wide / columns
    for row in range(rows):
        for column in range(columns):
            at = ((column - (columns - 1) / 2) * across, feet + (row + 0.5) * each, deep / 2 + 0.005)
            drawer_front(draft, front, knob, (across * 0.9, each * 0.82), at)
    draft.having(rows * columns, "drawer")


def _doors(draft: Draft, front: RGB, knob: RGB, size: tuple[float, float, float, float]) -> None:
    wide, high, deep, feet = size
    doors = 1 if wide < 0.75 else 2 if wide < 1.3 else draft.pick((2, 3))
    drawer = high * 0.2 if draft.chance(0.3) else 0.0
    if drawer:
        drawer_front(draft, front, knob, (wide * 0.92, drawer * 0.8), (0, feet + drawer * 0.6, deep / 2 + 0.005))
    tall = high - drawer
    across = wide / doors
    for i in range(doors):
        x = (i - (doors - 1) / 2) * across
        y = feet + drawer + tall / 2
        name = "door" if doors == 1 else ("door left", "door right", "door middle")[i if doors == 2 else (0, 2, 1)[i]]
        draft.add(name, front, box(across * 0.92, tall * 0.92, 0.03).at(x, y, deep / 2 + 0.01))
        side = 1 if i < doors / 2 else -1
        long = min(0.3, tall * 0.3)
        handle = ball(0.05, 0.05, 0.05, 8, 4) if draft.chance(0.5) else cylinder(0.018, long, 6)
        draft.add("handle", knob, handle.at(x + side * across * 0.36, y, deep / 2 + 0.045))
    draft.having(doors, "door")
