"""Cars, race cars, vans, trucks and emergency vehicles; they drive towards +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, DARK_METAL, GLASS, LIGHT, METAL, PAINT, RGB, TIRE, WHITE
from helicube.train.procedural.primitives import bevel_box, box, cylinder, frustum, wedge
from helicube.train.procedural.wheels import add_axle

__all__ = ["car", "emergency_vehicle", "race_car", "truck"]

_RIM: tuple[RGB, ...] = (METAL[2], METAL[3], (226, 228, 230))
_TAIL: RGB = (190, 36, 36)


def _wheels(draft: Draft, axles: list[float], size: tuple[float, float], track: float) -> None:
    names = ("front", "back") if len(axles) == 2 else ("front", "middle", "back")
    rim = draft.tint(_RIM)
    for z, name in zip(axles, names, strict=True):
        add_axle(draft, (TIRE, rim), size, (track, z), name)
    draft.having(2 * len(axles), "wheel")


def _lamps(draft: Draft, wide: float, y: float, ends: tuple[float, float], size: float) -> None:
    """Head lamps at ends[1] and tail lamps at ends[0]."""
    for side in (-1, 1):
        draft.add("light", LIGHT[1], box(size * 1.5, size, 0.06).at(side * wide * 0.33, y, ends[1]))
        draft.add("light", _TAIL, box(size * 1.5, size, 0.06).at(side * wide * 0.35, y, ends[0]))


def car(draft: Draft) -> None:
    """Sedans, hatchbacks, SUVs, pickups, sports cars and taxis."""
    kind = draft.pick(("sedan", "sedan", "hatchback", "suv", "pickup truck", "sports car", "taxi"))
    draft.call(kind, *(() if kind == "pickup truck" else ("car",)), subclass="taxi" if kind == "taxi" else "car")
    if kind in {"sedan", "hatchback"} and draft.chance(0.6):
        draft.call("car")
    paint = (238, 196, 52) if kind == "taxi" else draft.tint(PAINT)
    glass = draft.tint(GLASS)
    long = {"hatchback": 3.3, "suv": 3.9}.get(kind, 4.1) * draft.between(0.93, 1.07)
    wide = draft.between(1.55, 1.8)
    radius = draft.between(0.32, 0.38) if kind not in {"suv", "pickup truck"} else draft.between(0.38, 0.46)
    clear = radius * 0.62
    belt = clear + (0.42 if kind == "sports car" else 0.56) * draft.between(0.95, 1.1)
    roof = belt + (0.34 if kind == "sports car" else 0.5 if kind != "suv" else 0.58)
    front, back = long / 2, -long / 2
    nose = draft.between(0.0, 0.16) if kind != "sports car" else 0.22
    draft.add("body", paint, frustum((wide * 0.94, back + 0.05, front), (wide, back, front), clear, belt - 0.2))
    draft.add("body", paint, frustum((wide, back, front), (wide * 0.95, back + 0.04, front - nose), belt - 0.2, belt))
    middle = _greenhouse(draft, (paint, glass), (wide, long), (belt, roof), kind)
    _extras(draft, paint, (wide, long), (belt, roof, middle))
    bumper = draft.tint(DARK_METAL)
    for z in (front, back):
        draft.add("bumper", bumper, box(wide * 0.96, 0.13, 0.14).at(0, clear + 0.1, z))
    _lamps(draft, wide, belt - 0.26, (back - 0.01, front), 0.15)
    _wheels(draft, [long * 0.31, -long * 0.31], (radius, 0.24), wide - 0.16)
    draft.having_colored("wheels", TIRE)


def _greenhouse(
    draft: Draft, colors: tuple[RGB, RGB], size: tuple[float, float], heights: tuple[float, float], kind: str
) -> float:
    """Windows, roof and pillars from the belt line to the roof; returns the middle z of the roof."""
    paint, glass = colors
    wide, long = size
    belt, roof = heights
    ends = {
        "hatchback": ((-0.47, 0.2), (-0.36, 0.06)),
        "suv": ((-0.48, 0.22), (-0.42, 0.1)),
        "pickup truck": ((-0.1, 0.24), (-0.06, 0.13)),
        "sports car": ((-0.34, 0.16), (-0.2, 0.0)),
    }.get(kind, ((-0.36, 0.22), (-0.24, 0.08)))
    (base_back, base_front), (top_back, top_front) = ((a * long, b * long) for a, b in ends)
    top_wide = wide * 0.76
    draft.add(
        "window",
        glass,
        frustum((wide * 0.9, base_back, base_front), (top_wide, top_back, top_front), belt - 0.02, roof),
    )
    draft.add(
        "body",
        paint,
        frustum(
            (top_wide * 1.05, top_back - 0.06, top_front + 0.06),
            (top_wide, top_back, top_front),
            roof - 0.02,
            roof + 0.06,
        ),
    )
    middle = (top_back + top_front) / 2 - 0.04
    foot, head = (wide * 0.925, middle - 0.06, middle + 0.06), (top_wide * 1.03, middle - 0.06, middle + 0.06)
    draft.add("body", paint, frustum(foot, head, belt - 0.02, roof))
    return middle


def _extras(draft: Draft, paint: RGB, size: tuple[float, float], at: tuple[float, float, float]) -> None:
    """A pickup's bed, a taxi's sign, a spoiler; `at` holds the heights of belt and roof and the roof's middle z."""
    wide, long = size
    belt, roof, middle = at
    back, kind = -long / 2, draft.nouns[0]
    if kind == "pickup truck":
        for side in (-1, 1):
            draft.add("bed", paint, box(0.1, 0.28, long * 0.38).at(side * wide * 0.43, belt + 0.12, back + long * 0.2))
        draft.add("bed", paint, box(wide * 0.86, 0.28, 0.1).at(0, belt + 0.12, back + 0.09))
    if kind == "taxi":
        draft.add("sign", WHITE, bevel_box(0.5, 0.16, 0.22, 0.04).at(0, roof + 0.13, middle))
    if kind == "sports car" and draft.chance(0.6):
        draft.add("spoiler", paint, box(wide * 0.9, 0.05, 0.26).at(0, belt + 0.24, back + 0.18))
        for side in (-1, 1):
            draft.add("spoiler", BLACK, box(0.06, 0.22, 0.14).at(side * wide * 0.33, belt + 0.11, back + 0.18))
        draft.features.append("with a spoiler")


def race_car(draft: Draft) -> None:
    """Open-wheeled racers with wings, and karts."""
    paint = draft.tint(PAINT)
    trim = draft.other(PAINT, paint)
    draft.call("race car")
    long, radius = draft.between(4.0, 4.8), draft.between(0.36, 0.44)
    low = 0.16
    draft.add("body", paint, frustum((0.9, -1.5, 0.6), (0.66, -1.4, 0.5), low, 0.62))
    draft.add("body", paint, frustum((0.62, 0.4, long / 2), (0.34, 0.3, long / 2 - 0.05), low + 0.02, 0.46))
    for side in (-1, 1):
        draft.add("body", paint, frustum((0.42, -1.3, 0.4), (0.36, -1.2, 0.1), low, 0.5).at(side * 0.6))
    draft.add("seat", BLACK, box(0.46, 0.08, 0.7).at(0, 0.61, 0.05))
    draft.add("body", paint, wedge(0.36, 0.4, 1.1, ridge=0.5).at(0, 0.78, -0.9))
    if draft.chance(0.6):
        helmet = draft.other(PAINT, paint)
        draft.add("driver", helmet, cylinder(0.17, 0.26, 10, top=0.12).at(0, 0.76, -0.05))
        draft.features.append("with a driver")
    draft.add("front wing", trim, box(1.6, 0.06, 0.42).at(0, low + 0.06, long / 2 - 0.06))
    draft.add("rear wing", trim, box(1.3, 0.06, 0.42).at(0, 1.05, -long / 2 + 0.35))
    for side in (-1, 1):
        draft.add("rear wing", trim, box(0.06, 0.4, 0.46).at(side * 0.64, 0.92, -long / 2 + 0.35))
        draft.add("rear wing", BLACK, box(0.07, 0.6, 0.12).at(side * 0.24, 0.76, -long / 2 + 0.45))
    draft.add("body", paint, box(0.5, 0.3, 0.9).at(0, 0.4, -1.7))
    rim = draft.tint((*_RIM, (226, 190, 60)))
    for z, name in ((long * 0.3, "front"), (-long * 0.33, "back")):
        draft.add("axle", DARK_METAL[0], box(1.5, 0.08, 0.08).at(0, radius, z))
        add_axle(draft, (TIRE, rim), (radius, 0.36), (1.6, z), name)
    draft.having(4, "wheel")
    draft.features.append("with a rear wing")


def truck(draft: Draft) -> None:
    """Box trucks, flatbeds, tippers and vans."""
    if draft.chance(0.3):
        _van(draft, draft.tint(PAINT), "van")
        return
    paint, load = draft.tint(PAINT), draft.tint((WHITE, *PAINT, *METAL))
    kind = draft.pick(("box truck", "flatbed truck", "dump truck"))
    draft.call(kind, "truck", subclass="truck")
    if draft.chance(0.4):
        draft.call("truck")
    radius, wide, long = draft.between(0.44, 0.52), 2.0, draft.proportion(5.0, 7.0, ("short", "long"))
    deck = radius * 1.6
    cab = draft.between(1.3, 1.6)
    front = long / 2
    draft.add("frame", DARK_METAL[0], box(wide * 0.6, 0.3, long * 0.97).at(0, deck - 0.1, -0.05))
    _cab(draft, paint, (wide, cab), (deck - 0.25, front))
    rear = front - cab - 0.12
    middle, length = (rear - long / 2) / 2, rear + long / 2
    if kind == "box truck":
        tall = draft.between(1.6, 2.1)
        draft.add("cargo", load, box(wide * 1.04, tall, length).at(0, deck + 0.06 + tall / 2, middle))
    else:
        draft.add("cargo", load, box(wide * 1.02, 0.14, length).at(0, deck + 0.12, middle))
        wall = draft.between(0.35, 0.5) if kind == "flatbed truck" else draft.between(0.8, 1.1)
        for side in (-1, 1):
            draft.add("cargo", load, box(0.1, wall, length).at(side * wide * 0.49, deck + 0.1 + wall / 2, middle))
        draft.add("cargo", load, box(wide, wall, 0.1).at(0, deck + 0.1 + wall / 2, -long / 2 + 0.05))
        draft.add("cargo", load, box(wide, wall * 1.2, 0.1).at(0, deck + 0.1 + wall * 0.6, rear - 0.05))
        if kind == "dump truck" and draft.chance(0.6):
            dirt = draft.tint(((120, 92, 66), (150, 150, 148), (206, 176, 120)))
            draft.add("load", dirt, wedge(wide * 0.92, 0.6, length * 0.92, ridge=0.5).at(0, deck + wall, middle))
            draft.features.append("with a load")
    axles = [front - cab * 0.5, -long / 2 + 0.9]
    if long > 6.3:
        axles = [axles[0], axles[1] + 1.1, axles[1]]
    _wheels(draft, axles, (radius, 0.36), wide - 0.3)


def _cab(draft: Draft, paint: RGB, size: tuple[float, float], at: tuple[float, float]) -> None:
    """A driver's cab of (width, length) whose floor and front are at (y, z)."""
    wide, long = size
    y, front = at
    draft.add("cab", paint, box(wide, 0.85, long).at(0, y + 0.425, front - long / 2))
    glass = draft.tint(GLASS)
    bottom, top = (wide * 0.96, front - long, front - 0.04), (wide * 0.86, front - long + 0.02, front - 0.32)
    draft.add("window", glass, frustum(bottom, top, y + 0.84, y + 1.42))
    draft.add(
        "cab",
        paint,
        frustum((wide * 0.9, front - long, front - 0.28), (wide * 0.84, front - long, front - 0.36), y + 1.4, y + 1.5),
    )
    draft.add("cab", paint, box(wide * 0.955, 0.6, 0.16).at(0, y + 1.13, front - long + 0.08))
    draft.add("bumper", DARK_METAL[1], box(wide * 1.02, 0.22, 0.2).at(0, y + 0.08, front))
    for side in (-1, 1):
        draft.add("light", LIGHT[1], box(0.26, 0.2, 0.08).at(side * wide * 0.36, y + 0.4, front))


def _van(draft: Draft, paint: RGB, noun: str) -> tuple[float, float, float]:
    """A one-box van; returns width, roof height and length."""
    draft.call(*((noun, "truck") if noun == "van" else (noun,)), subclass=noun)
    wide, long, radius = draft.between(1.8, 2.0), draft.between(4.3, 5.0), draft.between(0.36, 0.42)
    low, roof = radius * 0.7, draft.between(1.9, 2.3)
    front, belt = long / 2, roof * 0.52
    draft.add("body", paint, box(wide, belt - low, long).at(0, (belt + low) / 2, 0))
    draft.add(
        "body", paint, frustum((wide, -front, front - 0.75), (wide * 0.92, -front, front - 1.25), belt - 0.01, roof)
    )
    glass = draft.tint(GLASS)
    screen = frustum(
        (wide * 0.95, front - 1.4, front - 0.3), (wide * 0.87, front - 1.5, front - 0.95), belt - 0.02, roof - 0.1
    )
    draft.add("window", glass, screen)
    draft.add("body", paint, box(wide * 0.88, 0.1, 0.7).at(0, roof - 0.06, front - 1.25))
    for side, word in ((1, "left"), (-1, "right")):
        door = box(0.05, (roof - low) * 0.6, 1.1).at(side * wide * 0.49, (roof + low) / 2 - 0.1, -0.4)
        draft.add(f"door {word}", paint, door)
    draft.add("bumper", DARK_METAL[1], box(wide, 0.2, 0.16).at(0, low + 0.05, front))
    _lamps(draft, wide, belt - 0.24, (-front, front), 0.2)
    _wheels(draft, [long * 0.32, -long * 0.3], (radius, 0.28), wide - 0.18)
    return wide, roof, long


def emergency_vehicle(draft: Draft) -> None:
    """Police cars, ambulances and fire engines with their lights."""
    kind = draft.pick(("police car", "ambulance", "fire truck"))
    if kind == "fire truck":
        _fire_truck(draft)
        return
    if kind == "ambulance":
        wide, roof, long = _van(draft, WHITE, "ambulance")
        stripe, red = (204, 48, 44), (214, 44, 44)
        for side in (-1, 1):
            draft.add("stripe", stripe, box(0.04, 0.16, long * 0.9).at(side * wide * 0.497, roof * 0.44, -0.1))
            draft.add("cross", red, box(0.05, 0.5, 0.16).at(side * wide * 0.475, roof * 0.74, -long * 0.24))
            draft.add("cross", red, box(0.05, 0.16, 0.5).at(side * wide * 0.475, roof * 0.74, -long * 0.24))
        bar = (0.0, roof + 0.08, long * 0.18)
    else:
        base = draft.pick((WHITE, (44, 44, 46), (40, 76, 160)))
        car(draft_like := Draft(draft.rng))
        body = next(piece.color for piece in draft_like.pieces if piece.part == "body")
        draft.pieces = [type(p)(p.part, p.solid, base if p.color == body else p.color) for p in draft_like.pieces]
        draft.pieces = [piece for piece in draft.pieces if piece.part not in {"sign", "bed", "spoiler"}]
        draft.call("police car", subclass="police car")
        roof = max(float(p.solid.vertices[:, 1].max()) for p in draft.pieces)
        top = next(p.solid.vertices for p in reversed(draft.pieces) if p.part == "body")
        bar = (0.0, roof + 0.05, float(top[:, 2].mean()))
        draft.having(4, "wheel")
    for side, color in ((1, (214, 44, 44)), (-1, (44, 90, 214))):
        draft.add("siren", color, box(0.4, 0.15, 0.22).at(side * 0.22 + bar[0], bar[1], bar[2]))
    draft.features.append("with a red and blue siren")


def _fire_truck(draft: Draft) -> None:
    draft.call("fire truck", subclass="fire truck")
    red = draft.tint(((204, 48, 44), (222, 60, 50), (190, 40, 40)))
    radius, wide, long = 0.5, 2.0, draft.between(5.4, 6.6)
    front, deck = long / 2, 0.75
    _cab(draft, red, (wide, 1.6), (deck - 0.3, front))
    rear = front - 1.65
    middle, length = (rear - front) / 2, rear + front
    draft.add("body", red, box(wide, 1.5, length).at(0, deck + 0.45, middle))
    for side in (-1, 1):
        draft.add("stripe", WHITE, box(0.04, 0.18, length).at(side * wide / 2, deck + 0.3, middle))
        for i in range(3):
            panel = box(0.04, 0.55, length * 0.24).at(side * wide / 2, deck + 0.82, middle + (i - 1) * length * 0.3)
            draft.add("door", METAL[2], panel)
        draft.add("ladder", METAL[3], box(0.08, 0.1, length * 1.1).at(side * 0.3, deck + 1.36, middle + 0.2))
        draft.add("siren", (44, 90, 214), box(0.4, 0.16, 0.2).at(side * 0.3, deck + 1.28, front - 0.75))
    for i in range(8):
        rung = box(0.6, 0.06, 0.06).at(0, deck + 1.36, middle + 0.2 + (i - 3.5) * length * 0.14)
        draft.add("ladder", METAL[3], rung)
    _wheels(draft, [front - 0.8, -front + 1.1], (radius, 0.36), wide - 0.28)
    draft.features.append("with a ladder")
