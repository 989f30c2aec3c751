"""Chairs, armchairs, sofas, stools and benches; the sitter looks towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, CLOTH, DARK_METAL, METAL, PAINT, RGB, STONE, TIRE, WOOD
from helicube.train.procedural.primitives import bevel_box, box, capsule, cylinder, rounded_slab
from helicube.train.procedural.supports import corner_legs, pedestal, ring_legs, star_base

__all__ = ["armchair", "bench", "chair", "sofa", "stool"]


def _frame_color(draft: Draft) -> tuple[RGB, str]:
    """Colour and material word of a frame: mostly wood, else painted or metal."""
    kind = draft.rng.random()
    if kind < 0.6:
        return draft.tint(WOOD), "wooden"
    if kind < 0.75:
        return draft.tint((*METAL, *DARK_METAL)), "metal"
    return draft.tint(PAINT), draft.pick(("plastic", "painted"))


def chair(draft: Draft) -> None:
    """Kitchen, armed, round-seated and office chairs."""
    if draft.chance(0.2):
        _office_chair(draft)
        return
    color, draft.material = _frame_color(draft)
    draft.call("chair")
    cushion = draft.chance(0.3)
    seat_color = draft.other(CLOTH, color) if cushion or draft.chance(0.15) else color
    width, depth = draft.between(0.42, 0.56), draft.between(0.42, 0.52)
    high = draft.between(0.42, 0.48)
    back = draft.proportion(0.36, 0.72, ("low", "tall"))
    thick = draft.between(0.035, 0.065)
    seat = draft.between(0.035, 0.07)
    if draft.chance(0.22):
        number = draft.pick((3, 3, 4))
        ring_legs(draft, color, number, (width * 0.36, high, thick), draft.between(1.0, 1.35))
        draft.add("seat", seat_color, cylinder(width * 0.5, seat, 14).at(y=high + seat / 2))
        draft.having(number, "leg")
    else:
        corner_legs(draft, color, (width, depth), high, thick)
        draft.add("seat", seat_color, box(width, seat, depth).at(y=high + seat / 2))
        draft.having(4, "leg")
    if cushion:
        pad = bevel_box(width * 0.92, seat * 1.2, depth * 0.9, seat * 0.4)
        draft.add("cushion", seat_color, pad.at(y=high + seat * 1.5))
        draft.having_one_colored("cushion", seat_color)
    _chair_back(draft, color, (width, back, thick), (high + seat, -depth / 2 + thick / 2))
    if draft.chance(0.25):
        for side in (-1, 1):
            x = side * (width / 2 - thick / 2)
            draft.add("armrest", color, box(thick, thick, depth * 0.9).at(x, high + 0.22, 0))
            draft.add("armrest", color, box(thick, 0.22, thick).at(x, high + 0.11, depth * 0.36))
        draft.features.append("with armrests")


def _chair_back(draft: Draft, color: RGB, size: tuple[float, float, float], at: tuple[float, float]) -> None:
    """A back of (width, height, thickness) over the point (y, z): board, slats, bars or ladder, leaning back."""
    width, height, thick = size
    y, z = at
    lean = draft.between(0, 12)
    style = draft.pick(("board", "slats", "ladder", "bars"))
    pieces = []
    if style == "board":
        pieces.append(box(width, height, thick).at(y=height / 2))
    else:
        pieces += [box(thick, height, thick).at(side * (width - thick) / 2, height / 2) for side in (-1, 1)]
        rail = thick * 1.6
        pieces.append(box(width, rail, thick * 0.9).at(y=height - rail / 2))
    if style == "ladder":
        steps = draft.count(1, 4)
        pieces += [box(width, rail * 0.8, thick * 0.7).at(y=height * (i + 0.8) / (steps + 1)) for i in range(steps)]
    if style in {"slats", "bars"}:
        number = draft.count(2, 5)
        gap = (width - 2 * thick) / number
        slim = gap * 0.55 if style == "slats" else thick * 0.6
        pieces += [
            box(slim, height - rail / 2, thick * 0.6).at((i + 0.5) * gap - width / 2 + thick, height / 2 - rail / 4)
            for i in range(number)
        ]
    draft.add("back", color, *[piece.turned("x", -lean).at(0, y - 0.012, z) for piece in pieces])


def _office_chair(draft: Draft) -> None:
    draft.call("office chair", "chair", subclass="office chair")
    cloth, frame = draft.tint((*CLOTH, *PAINT, BLACK)), draft.tint((*DARK_METAL, *METAL))
    high = draft.between(0.44, 0.5)
    star_base(draft, frame, TIRE, draft.between(0.26, 0.32), high)
    width = draft.between(0.44, 0.52)
    draft.add("seat", cloth, rounded_slab(width, 0.09, width, 0.12).at(y=high + 0.045))
    height = draft.proportion(0.35, 0.7, ("low", "tall"))
    back = bevel_box(width * 0.92, height, 0.08, 0.03).turned("x", -8).at(0, high + 0.16 + height / 2, -width * 0.5)
    draft.add("back", cloth, back)
    draft.add("frame", frame, box(0.07, 0.4, 0.05).turned("x", -8).at(0, high + 0.15, -width * 0.54))
    draft.add("frame", frame, box(0.07, 0.04, width * 0.5).at(0, high - 0.01, -width * 0.3))
    draft.having(5, "wheel")
    if draft.chance(0.5):
        for side in (-1, 1):
            draft.add("armrest", frame, box(0.05, 0.04, width * 0.6).at(side * width * 0.54, high + 0.26, 0))
            draft.add("armrest", frame, box(0.04, 0.24, 0.05).at(side * width * 0.54, high + 0.13, -0.05))
        draft.features.append("with armrests")


def stool(draft: Draft) -> None:
    """Three- and four-legged stools, bar stools and pedestal stools."""
    color, draft.material = _frame_color(draft)
    seat_color = color if draft.chance(0.5) else draft.other(CLOTH, color)
    bar = draft.chance(0.35)
    draft.call(*(("bar stool", "stool") if bar else ("stool",)), subclass="stool")
    high = draft.between(0.68, 0.85) if bar else draft.between(0.36, 0.52)
    wide = draft.between(0.32, 0.46)
    thick, seat = draft.between(0.04, 0.06), draft.between(0.04, 0.09)
    kind = draft.pick(("square", "ring", "ring", "pedestal"))
    if kind == "square":
        corner_legs(draft, color, (wide, wide), high, thick)
        draft.add("seat", seat_color, bevel_box(wide, seat, wide, seat * 0.25).at(y=high + seat / 2))
        draft.adjectives.append("square")
        draft.having(4, "leg")
        step = high * 0.35
        for side in (-1, 1):
            draft.add("rung", color, box(wide, thick * 0.6, thick * 0.6).at(0, step, side * (wide - thick) / 2))
        return
    draft.add("seat", seat_color, cylinder(wide / 2, seat, 14).at(y=high + seat / 2))
    draft.adjectives.append("round")
    if kind == "pedestal":
        pedestal(draft, color, wide * 0.45, high, thick * 1.2)
        return
    number = draft.pick((3, 4))
    ring_legs(draft, color, number, (wide * 0.34, high, thick), draft.between(1.1, 1.5))
    draft.having(number, "leg")


def bench(draft: Draft) -> None:
    """Garden and park benches, with or without a back."""
    stone = draft.chance(0.12)
    color = draft.tint(STONE) if stone else draft.tint(WOOD) if draft.chance(0.75) else draft.tint(PAINT)
    frame = color if stone or draft.chance(0.5) else draft.other((*DARK_METAL, *METAL), color)
    draft.material = "stone" if stone else "wooden"
    draft.call("bench")
    long = draft.proportion(1.1, 2.2, ("short", "long"))
    deep, high, thick = draft.between(0.36, 0.5), draft.between(0.4, 0.48), draft.between(0.04, 0.08)
    planks = draft.pick((1, 2, 3, 4))
    gap = 0.0 if planks == 1 else 0.02
    for i in range(planks):
        each = (deep - gap * (planks - 1)) / planks
        z = -deep / 2 + each / 2 + i * (each + gap)
        draft.add("seat", color, box(long, thick, each).at(0, high + thick / 2, z))
    for side in (-1, 1):
        x = side * long * draft.pick((0.38, 0.42, 0.45))
        if draft.chance(0.5):
            draft.add("leg", frame, box(thick * 1.3, high, deep * 0.9).at(x, high / 2, 0))
        else:
            draft.add("leg", frame, *[box(thick, high, thick).at(x, high / 2, s * deep * 0.4) for s in (-1, 1)])
            draft.add("leg", frame, box(thick, thick, deep * 0.85).at(x, high - thick / 2, 0))
    if draft.chance(0.55):
        height = draft.between(0.3, 0.5)
        boards = draft.count(1, 3)
        each = height / boards * 0.75
        for i in range(boards):
            board = box(long, each, thick * 0.8).at(0, high + thick + (i + 0.7) * height / boards, -deep / 2 - 0.02)
            draft.add("back", color, board)
        for side in (-1, 1):
            post = box(thick, height + 0.2, thick * 0.8).at(side * long * 0.38, high + height / 2, -deep / 2 - 0.04)
            draft.add("back", frame, post)
        draft.features.append("with a back")
    else:
        draft.features.append("without a back")


def sofa(draft: Draft) -> None:
    """Sofas for two to four people."""
    number = draft.count(2, 4)
    _upholstered(draft, number, ("sofa",))
    draft.having(number, "cushion")


def armchair(draft: Draft) -> None:
    """Upholstered chairs for one person."""
    _upholstered(draft, 1, ("armchair",))


def _upholstered(draft: Draft, number: int, nouns: tuple[str, ...]) -> None:
    """Seat, back and arms of cloth on short legs, `number` cushions wide."""
    draft.call(*nouns)
    cloth = draft.tint((*CLOTH, *PAINT[:20]))
    pad = cloth if draft.chance(0.7) else draft.other(CLOTH, cloth)
    wood = draft.tint((*WOOD, *DARK_METAL))
    each, deep = draft.between(0.55, 0.68), draft.between(0.7, 0.85)
    arm, feet = draft.between(0.12, 0.22), draft.between(0.04, 0.14)
    base = draft.between(0.22, 0.3)
    back = draft.proportion(0.38, 0.68, ("low", "tall"))
    inner = each * number
    wide = inner + 2 * arm
    soft = draft.pick((0.02, 0.05, 0.08))
    draft.add("base", cloth, box(inner + arm, base, deep - 0.06).at(y=feet + base / 2))
    draft.add(
        "back", cloth, bevel_box(inner + arm, back + base, 0.2, soft).at(0, feet + (back + base) / 2, -deep / 2 + 0.1)
    )
    arm_high = base + draft.between(0.14, 0.26)
    round_arm = draft.chance(0.35)
    for side in (-1, 1):
        x = side * (wide - arm) / 2
        draft.add("armrest", cloth, bevel_box(arm, arm_high, deep, soft).at(x, feet + arm_high / 2, 0))
        if round_arm:
            roll = cylinder(arm * 0.62, deep * 1.01, 10).turned("x", 90).at(x, feet + arm_high, 0)
            draft.add("armrest", cloth, roll)
    for i in range(number):
        x = (i - (number - 1) / 2) * each
        draft.add("cushion", pad, bevel_box(each * 0.97, 0.14, deep - 0.2, 0.035).at(x, feet + base + 0.06, 0.09))
        if draft.chance(0.99) and back > 0.42:
            rest = bevel_box(each * 0.95, back - 0.16, 0.14, 0.045).turned("x", -10)
            draft.add("pillow", pad, rest.at(x, feet + base + 0.12 + (back - 0.16) / 2, -deep / 2 + 0.24))
    _sofa_feet(draft, wood, wide, deep, feet)
    if pad != cloth:
        draft.having_colored("cushions" if number > 1 else "padding", pad)


def _sofa_feet(draft: Draft, color: RGB, wide: float, deep: float, high: float) -> None:
    for sx in (-1, 1):
        for sz in (-1, 1):
            foot = capsule(0.035, high, 6) if high > 0.1 else box(0.06, high, 0.06)
            draft.add(
                "leg", color, foot.scaled(1, 1.02, 1).at(sx * (wide / 2 - 0.06), high / 2, sz * (deep / 2 - 0.06))
            )
