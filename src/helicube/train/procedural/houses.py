"""Houses, apartment blocks, towers, temples, tents and wells; the door at +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import NUMBER_WORDS, Draft, drawn_from
from helicube.train.procedural.palette import CLOTH, DARK_METAL, GLASS, PAINT, PLASTER, RGB, ROOF, STONE, WHITE, WOOD
from helicube.train.procedural.primitives import box, cone, cylinder, link, torus, wedge
from helicube.train.procedural.sweep import extrude, lathe

__all__ = ["building", "house", "temple", "tent", "tower", "well"]


def _window(
    draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float], at: tuple[float, float, float], turn: float
) -> None:
    """A pane in a frame on a wall; `at` is (sideways, y, distance of the wall) before turning about Y by `turn`."""
    frame, pane = colors
    side, y, wall = at
    draft.add("window", frame, box(size[0], size[1], 0.06).at(side, y, wall).turned("y", turn))
    draft.add("window", pane, box(size[0] * 0.76, size[1] * 0.8, 0.1).at(side, y, wall).turned("y", turn))


def _door(draft: Draft, color: RGB, frame: RGB, size: tuple[float, float], at: tuple[float, float]) -> None:
    """A door on y = 0 in a frame at (x, z)."""
    x, z = at
    draft.add("door frame", frame, box(size[0] * 1.25, size[1] * 1.08, 0.1).at(x, size[1] * 0.54, z))
    draft.add("door", color, box(size[0], size[1], 0.14).at(x, size[1] / 2, z))
    draft.add("door", frame, box(0.05, 0.05, 0.2).at(x + size[0] * 0.34, size[1] * 0.48, z))


def house(draft: Draft) -> None:
    """Detached houses of one to three storeys with gabled, hipped or flat roofs."""
    cabin = draft.chance(0.2)
    wall = draft.tint(WOOD) if cabin else draft.tint(PLASTER)
    roof = draft.other(ROOF, wall)
    trim = draft.other((WHITE, *WOOD, *DARK_METAL), wall)
    storeys = 1 if cabin else draft.pick((1, 1, 2, 2, 3))
    draft.call("house")
    if cabin:
        draft.call("wooden cabin", "house", subclass="house")
    wide, deep = draft.proportion(2.4, 4.4, ("narrow", "wide")), draft.between(2.4, 3.4)
    each = draft.between(1.35, 1.6)
    high = each * storeys
    draft.add("wall", wall, box(wide, high, deep).at(y=high / 2))
    style = draft.pick(("gable", "gable", "side gable", "hip", "flat"))
    _roof(draft, (roof, wall), (wide, high, deep), style)
    x = wide * draft.between(-0.25, 0.25)
    _door(draft, draft.other((*WOOD, *PAINT[:12]), wall), trim, (0.6, 1.05), (x, deep / 2))
    pane = draft.tint(GLASS)
    columns = max(2, int(wide / 1.1))
    for storey in range(storeys):
        y = each * (storey + 0.58)
        for i in range(columns):
            place = (i + 0.5) * wide / columns - wide / 2
            if storey or abs(place - x) > 0.72:
                _window(draft, (trim, pane), (0.52, 0.62), (place, y, deep / 2), 0)
            _window(draft, (trim, pane), (0.52, 0.62), (place, y, deep / 2), 180)
        for turn in (90, 270):
            _window(draft, (trim, pane), (0.52, 0.62), (draft.between(-0.3, 0.3), y, wide / 2), turn)
    if style != "flat" and draft.chance(0.5):
        brick = draft.tint(((150, 70, 54), (124, 124, 126), (158, 156, 152)))
        draft.add("chimney", brick, box(0.36, 1.3, 0.36).at(wide * 0.26, high + 0.75, -deep * 0.16))
        draft.add("chimney", brick, box(0.46, 0.12, 0.46).at(wide * 0.26, high + 1.4, -deep * 0.16))
        draft.features.append("with a chimney")
    if draft.chance(0.25):
        _porch(draft, trim, roof, (x, deep / 2))
    draft.adjectives += [f"{NUMBER_WORDS[storeys]}-story"] if storeys > 1 else []


def _roof(draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float, float], style: str) -> None:
    """A roof over a box of width, height, depth; gables are of the wall's colour."""
    roof, wall = colors
    wide, high, deep = size
    over, rise = draft.between(0.15, 0.3), draft.between(0.9, 1.5)
    if style == "flat":
        draft.add("roof", roof, box(wide + 0.2, 0.18, deep + 0.2).at(y=high + 0.09))
        draft.features.append("with a flat roof")
        return
    draft.having_one_colored("roof", roof)
    if style == "hip":
        ridge = draft.pick((0.0, 0.4))
        hip = wedge(deep + 2 * over, rise, wide + 2 * over, ridge=ridge).turned("y", 90)
        draft.add("roof", roof, hip.at(y=high + rise / 2))
        return
    turned = style == "side gable"
    span, run = (deep, wide) if turned else (wide, deep)
    half = span / 2 + over
    drop = over * rise / (span / 2)
    thick = 0.16
    outline = [
        (-half, -drop),
        (0.0, rise),
        (half, -drop),
        (half, -drop + thick),
        (0.0, rise + thick),
        (-half, -drop + thick),
    ]
    shell = extrude(outline, run + 2 * over)
    gable = wedge(span, rise, run)
    for part, color, solid in (("roof", roof, shell.at(y=high)), ("wall", wall, gable.at(y=high + rise / 2))):
        draft.add(part, color, solid.turned("y", 90) if turned else solid)


def _porch(draft: Draft, post: RGB, roof: RGB, at: tuple[float, float]) -> None:
    x, z = at
    draft.add("porch", post, box(1.4, 0.1, 0.9).at(x, 0.05, z + 0.45))
    draft.add("porch", roof, box(1.5, 0.12, 1.0).at(x, 1.32, z + 0.45))
    for side in (-1, 1):
        draft.add("porch", post, box(0.1, 1.3, 0.1).at(x + side * 0.6, 0.65, z + 0.82))
    draft.features.append("with a porch")


def building(draft: Draft) -> None:
    """Apartment and office blocks, skyscrapers and shops."""
    shop = draft.chance(0.3)
    storeys = draft.count(1, 2) if shop else draft.count(3, 9)
    wall = draft.tint((*PLASTER, *STONE))
    trim = draft.other((WHITE, *STONE, *DARK_METAL), wall)
    pane = draft.tint(GLASS)
    tower = storeys >= 7
    draft.call(*(("shop", "building") if shop else ("skyscraper", "building") if tower else ("building",)))
    draft.subclass = "shop" if shop else "building"
    columns, rows = draft.count(2, 4), draft.count(2, 3)
    wide, deep, each = columns * 0.9 + 0.3, rows * 0.9 + 0.3, 1.0
    high = storeys * each + 0.35
    draft.add("wall", wall, box(wide, high, deep).at(y=high / 2))
    draft.add("roof", trim, box(wide + 0.2, 0.2, deep + 0.2).at(y=high + 0.1))
    first = 0 if not shop else 1
    for storey in range(first, storeys):
        y = storey * each + 0.75
        for turn, count, wall_at in (
            (0, columns, deep / 2),
            (180, columns, deep / 2),
            (90, rows, wide / 2),
            (270, rows, wide / 2),
        ):
            for i in range(count):
                place = (i - (count - 1) / 2) * 0.9
                if storey or turn or abs(place) > 0.5:
                    _window(draft, (trim, pane), (0.5, 0.62), (place, y, wall_at), turn)
    _door(draft, draft.other((*WOOD, *DARK_METAL, *PAINT[:8]), wall), trim, (0.6, 0.9), (0, deep / 2))
    if shop:
        awning = draft.other(PAINT, wall)
        for side in (-1, 1):
            _window(draft, (trim, pane), (wide * 0.28, 0.6), (side * wide * 0.31, 0.6, deep / 2), 0)
        draft.add("awning", awning, box(wide * 0.96, 0.08, 0.8).turned("x", 22).at(0, 1.12, deep / 2 + 0.35))
        draft.having_one_colored("awning", awning)
    elif draft.chance(0.5):
        draft.add("roof", DARK_METAL[1], box(0.6, 0.4, 0.5).at(wide * 0.2, high + 0.35, 0))
    draft.adjectives.append(f"{NUMBER_WORDS[storeys]}-story")


def tower(draft: Draft) -> None:
    """Round and square castle towers, with battlements or a pointed roof."""
    stone = draft.tint(STONE) if draft.chance(0.75) else draft.tint(WOOD)
    draft.material = "wooden" if drawn_from(stone, WOOD) else "stone"
    draft.call("tower")
    sides = draft.pick((4, 8, 10, 12))
    draft.adjectives.append("square" if sides == 4 else "round")
    high, radius = draft.proportion(2.2, 4.5, ("short", "tall")), draft.between(0.6, 0.85)
    draft.add("base", stone, cylinder(radius * 1.15, 0.3, sides).at(y=0.15))
    draft.add("wall", stone, cylinder(radius, high, sides, top=radius * draft.between(0.82, 1.0)).at(y=high / 2))
    draft.add("top", stone, cylinder(radius * 0.95, 0.3, sides, top=radius * 1.2).at(y=high + 0.1))
    draft.add("top", stone, cylinder(radius * 1.2, 0.3, sides).at(y=high + 0.4))
    flat = radius * (1.2 * float(np.cos(np.pi / sides)))
    if draft.chance(0.5):
        number = 8 if sides == 4 else sides
        for i in range(number):
            width = 0.3 if sides == 4 else 1.3 * radius * float(np.pi / sides)
            wide = flat * (float(np.hypot(1, 1)) * 0.93 if sides == 4 and i % 2 else 0.9)
            tooth = box(width, 0.32, 0.2).at(0, high + 0.7, wide).turned("y", 360 * i / number)
            draft.add("battlement", stone, tooth)
        draft.features.append("with battlements")
    else:
        roof = draft.other(ROOF, stone)
        rise = draft.between(1.0, 2.0)
        draft.add("roof", roof, cylinder(radius * 1.35, rise, sides, top=0.0).at(y=high + 0.55 + rise / 2))
        draft.having_one_colored("roof", roof)
    face = radius * float(np.cos(np.pi / sides)) if sides != 4 else radius * float(np.cos(np.pi / 4))
    _door(draft, draft.tint(WOOD), draft.other((*DARK_METAL, *WOOD), stone), (0.42, 0.75), (0, face * 1.02))
    for i in range(draft.count(1, 3)):
        slit = box(0.16, 0.42, 0.12).at(0, high * (0.5 + 0.2 * i), face * 0.97).turned("y", 90 * i)
        draft.add("window", DARK_METAL[2], slit)


def temple(draft: Draft) -> None:
    """Columns on steps under a pediment, and stepped pyramids."""
    stone = draft.tint((*STONE, (222, 206, 170), (206, 186, 146)))
    draft.material = "stone"
    if draft.chance(0.3):
        draft.call("stepped temple", "temple", subclass="temple")
        levels = draft.count(3, 5)
        for i in range(levels):
            size = 3.0 * (1 - 0.75 * i / levels)
            draft.add("step", stone, box(size, 0.5, size).at(y=0.5 * i + 0.25))
        top = 0.5 * levels
        draft.add("shrine", stone, box(0.6, 0.6, 0.6).at(y=top + 0.3))
        draft.add("roof", draft.other(ROOF, stone), wedge(0.8, 0.35, 0.8, ridge=0).at(y=top + 0.77))
        steps = extrude([(1.45 + 0.35, 0), (0.3, 0), (0.3, top)], 0.5).turned("y", -90)
        draft.add("stairs", stone, steps)
        draft.having(levels, "level")
        return
    draft.call("temple")
    roof = stone if draft.chance(0.5) else draft.other(ROOF, stone)
    columns, deep = draft.pick((4, 4, 6)), draft.between(2.2, 3.4)
    wide, high = 0.75 * columns, draft.between(1.4, 2.0)
    for i in range(3):
        draft.add("step", stone, box(wide + 0.9 - 0.3 * i, 0.14, deep + 0.9 - 0.3 * i).at(y=0.14 * i + 0.07))
    base = 0.42
    for i in range(columns):
        x = (i - (columns - 1) / 2) * (wide - 0.4) / (columns - 1)
        for z in (deep / 2 - 0.2, -deep / 2 + 0.2):
            draft.add("column", stone, cylinder(0.17, high, 8, top=0.14).at(x, base + high / 2, z))
            draft.add("column", stone, box(0.42, 0.1, 0.42).at(x, base + high - 0.05, z))
    draft.add("wall", stone, box(wide * 0.72, high, deep * 0.66).at(0, base + high / 2, -0.1))
    draft.add("door", draft.tint(WOOD), box(0.6, high * 0.65, 0.1).at(0, base + high * 0.325, deep * 0.33 - 0.1))
    draft.add("roof", stone, box(wide + 0.2, 0.25, deep + 0.2).at(y=base + high + 0.125))
    rise = draft.between(0.5, 0.8)
    draft.add("roof", roof, wedge(wide + 0.4, rise, deep + 0.3).at(y=base + high + 0.25 + rise / 2))
    draft.having(columns * 2, "column")


def tent(draft: Draft) -> None:
    """Ridge tents, cone tents and pavilions."""
    cloth = draft.tint(CLOTH)
    pole = draft.tint(WOOD)
    kind = draft.pick(("ridge", "ridge", "cone", "pavilion"))
    draft.call("tent")
    if kind == "ridge":
        wide, high, long = (
            draft.between(1.6, 2.2),
            draft.between(1.2, 1.6),
            draft.proportion(1.6, 2.8, ("short", "long")),
        )
        draft.add("cloth", cloth, wedge(wide, high, long).at(y=high / 2))
        dark: RGB = (58, 52, 48)
        draft.add("entrance", dark, wedge(wide * 0.42, high * 0.72, 0.06).at(0, high * 0.36, long / 2))
        for z in (-long / 2, long / 2):
            draft.add("pole", pole, cylinder(0.05, high * 1.12, 6).at(0, high * 0.56, z))
        for sx in (-1, 1):
            for sz in (-1, 1):
                foot = (sx * wide * 0.72, 0.0, sz * (long / 2 + 0.3))
                draft.add("rope", pole, link(foot, (0, high * 0.98, sz * long / 2), 0.025, 4))
    elif kind == "cone":
        draft.call("teepee", "tent", subclass="tent")
        high = draft.between(1.9, 2.5)
        draft.add("cloth", cloth, cone(1.0, high, 9).at(y=high / 2))
        for i in range(5):
            stick = link((0.0, 0.0, 0.9), (0, high * 1.12, -0.12), 0.035, 5).turned("y", 72 * i + 20)
            draft.add("pole", pole, stick)
        draft.add("entrance", (58, 52, 48), wedge(0.5, high * 0.42, 0.2).at(0, high * 0.2, 0.8))
    else:
        draft.call("round tent", "tent", subclass="tent")
        top = draft.other(CLOTH, cloth)
        draft.add("wall", cloth, cylinder(1.0, 1.1, 10).at(y=0.55))
        draft.add("roof", top, cylinder(1.15, 0.9, 10, top=0.0).at(y=1.5))
        draft.add("pole", pole, cylinder(0.05, 0.5, 6).at(y=2.1))
        draft.add("flag", top, box(0.4, 0.22, 0.04).at(0.22, 2.24))
        draft.add("entrance", (58, 52, 48), box(0.6, 0.85, 0.1).at(0, 0.42, 0.95))
        draft.having_one_colored("roof", top)


def well(draft: Draft) -> None:
    """A round stone shaft with a roof on two posts, and a bucket."""
    stone, wood = draft.tint(STONE), draft.tint(WOOD)
    roof = draft.other(ROOF, stone)
    draft.call("well")
    draft.material = "stone"
    sides, high = draft.pick((8, 10, 12)), draft.between(0.6, 0.85)
    ring = [(0.5, 0.0), (0.72, 0.0), (0.7, high), (0.52, high)]
    draft.add("wall", stone, lathe(ring, sides, loop=True))
    draft.add("rim", stone, torus(0.62, 0.26, sides, 4).scaled(1, 0.5, 1).at(y=high))
    draft.add("water", (70, 130, 190), cylinder(0.55, 0.1, sides).at(y=high * 0.5))
    if draft.chance(0.85):
        top = draft.between(1.7, 2.1)
        for side in (-1, 1):
            draft.add("post", wood, box(0.12, top, 0.12).at(side * 0.62, top / 2, 0))
        draft.add("beam", wood, cylinder(0.06, 1.5, 8).turned("z", 90).at(y=top * 0.75))
        rise = draft.between(0.5, 0.7)
        outline = [(-0.75, 0), (0, rise), (0.75, 0), (0.75, 0.12), (0, rise + 0.12), (-0.75, 0.12)]
        draft.add("roof", roof, extrude(outline, 1.7).turned("y", 90).at(y=top - 0.1))
        draft.add("rope", (196, 176, 130), cylinder(0.02, top * 0.35, 5).at(y=top * 0.58))
        draft.add("bucket", wood, cylinder(0.13, 0.24, 8, top=0.17).at(y=top * 0.42))
        draft.having_one_colored("roof", roof)
