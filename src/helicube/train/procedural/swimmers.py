"""Birds and sea animals; their heads at +Z."""

from __future__ import annotations

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, PAINT, RGB, WHITE
from helicube.train.procedural.primitives import ball, cone, icosphere, link
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import extrude, lathe, tube

__all__ = ["bird", "crab", "sea_animal"]

_FEATHER: tuple[RGB, ...] = (
    WHITE,
    (52, 48, 46),
    (150, 102, 64),
    (64, 110, 200),
    (204, 48, 44),
    (240, 200, 60),
    (86, 150, 60),
    (150, 150, 152),
)
_SEA: tuple[RGB, ...] = ((92, 130, 170), (70, 100, 140), (120, 132, 146), (150, 158, 166))


def _flat(points: list[tuple[float, float]], thick: float) -> Solid:
    """A fin from an outline of (z, y) points, `thick` along x."""
    return extrude(points, thick).turned("y", -90)


def _fish_body(wide: float, high: float, long: float) -> Solid:
    """A spindle along z of full sizes wide, high, long."""
    profile = [(0.0, -0.5), (0.12, -0.46), (0.36, -0.2), (0.5, 0.1), (0.4, 0.34), (0.16, 0.48), (0.0, 0.5)]
    return lathe(profile, 8, phase=0.5).turned("x", 90).scaled(wide, high, long)


def sea_animal(draft: Draft) -> None:
    """Fish, sharks, whales, dolphins, octopuses, and starfish."""
    kind = draft.pick(("fish", "fish", "fish", "fish", "shark", "whale", "dolphin", "octopus", "starfish"))
    draft.call(kind, *(() if kind == "fish" else ("sea animal",)), subclass=kind)
    draft.wobble = 0.06
    {"fish": _fish, "octopus": _octopus, "starfish": _starfish}.get(kind, _big_fish)(draft)


def _fish(draft: Draft) -> None:
    skin = draft.tint((*PAINT, (236, 134, 44), (148, 198, 236)))
    fin = draft.other(PAINT, skin) if draft.chance(0.6) else skin
    high, long = draft.proportion(0.55, 1.15, ("flat", "tall")), draft.between(1.3, 1.7)
    wide = draft.between(0.35, 0.55)
    draft.add("body", skin, _fish_body(wide, high, long))
    z = -long * 0.45
    spread = high * draft.between(0.35, 0.55)
    draft.add(
        "tail",
        fin,
        _flat([(z + 0.06, 0.06), (z + 0.06, -0.06), (z - 0.34, -spread), (z - 0.22, 0.0), (z - 0.34, spread)], 0.07),
    )
    top = high * 0.44
    draft.add("fin", fin, _flat([(0.35, top * 0.75), (-0.3, top * 0.7), (-0.34, top + 0.2), (0.05, top + 0.24)], 0.06))
    for side in (-1, 1):
        flap = ball(0.08, 0.2, 0.36, 6, 4).turned("y", side * -30).at(side * wide * 0.48, -high * 0.08, long * 0.08)
        draft.add("fin", fin, flap)
        draft.add("eyes", WHITE, icosphere(0.15, 0.15, 0.12, 1).at(side * wide * 0.36, high * 0.1, long * 0.3))
        draft.add(
            "eyes", BLACK, icosphere(0.08, 0.08, 0.08, 0).at(side * (wide * 0.36 + 0.05), high * 0.1, long * 0.31)
        )
    if draft.chance(0.35):
        stripe = draft.other((WHITE, *PAINT), skin)
        for z in (0.12, -0.16):
            scale = 1.03 * (1 - abs(z - 0.05) * 0.8)
            band = (
                lathe([(0.5, -0.05), (0.5, 0.05)], 8, phase=0.5)
                .turned("x", 90)
                .scaled(wide * scale, high * scale, long)
            )
            draft.add("stripe", stripe, band.at(z=z * long * 0.8))
        draft.having_colored("stripes", stripe)
    if fin != skin:
        draft.having_colored("fins", fin)


def _big_fish(draft: Draft) -> None:
    kind = draft.nouns[0]
    skin = draft.tint(_SEA)
    belly = draft.other((WHITE, (222, 226, 230)), skin)
    wide, high, long = {"whale": (0.85, 0.85, 2.2), "shark": (0.5, 0.55, 2.1), "dolphin": (0.42, 0.48, 1.8)}[kind]
    body = _fish_body(wide, high, long)
    if kind == "whale":
        body = (
            lathe([(0.0, -0.5), (0.1, -0.48), (0.3, -0.2), (0.5, 0.15), (0.5, 0.36), (0.32, 0.48), (0.0, 0.5)], 10)
            .turned("x", 90)
            .scaled(wide, high, long)
        )
    draft.add("body", skin, body)
    draft.add("belly", belly, _fish_body(wide * 0.9, high * 0.8, long * 0.86).at(0, -high * 0.13, long * 0.04))
    z = -long * 0.47
    if kind == "shark":
        draft.add(
            "tail",
            skin,
            _flat([(z + 0.1, 0.05), (z + 0.1, -0.05), (z - 0.2, -0.3), (z - 0.1, 0.05), (z - 0.32, 0.48)], 0.07),
        )
    else:
        flukes = [(0.0, z + 0.12), (0.45, z - 0.25), (0.1, z - 0.16), (-0.1, z - 0.16), (-0.45, z - 0.25)]
        draft.add("tail", skin, extrude(flukes, 0.08).turned("x", 90))
    if kind != "whale":
        draft.add("fin", skin, _flat([(0.25, high * 0.4), (-0.2, high * 0.4), (-0.26, high * 0.95)], 0.07))
    for side in (-1, 1):
        fin = extrude([(0.0, 0.2), (0.0, -0.12), (0.6, -0.35)], 0.06).turned("x", 90).turned("z", -22)
        fin = fin.at(wide * 0.34, -high * 0.2, long * 0.14)
        draft.add("fin", skin, fin if side > 0 else fin.mirrored("x"))
        draft.add("eyes", BLACK, icosphere(0.07, 0.08, 0.07, 0).at(side * wide * 0.38, high * 0.06, long * 0.33))
    if kind == "dolphin":
        draft.add(
            "nose",
            skin,
            lathe([(0.0, 0.0), (0.1, 0.0), (0.06, 0.3), (0.0, 0.32)], 8).turned("x", 90).at(0, -0.05, long * 0.43),
        )


def _octopus(draft: Draft) -> None:
    skin = draft.tint(((204, 60, 60), (142, 88, 190), (236, 140, 120), (226, 116, 60), (64, 140, 160)))
    draft.add(
        "head",
        skin,
        lathe([(0.0, 0.1), (0.34, 0.15), (0.4, 0.35), (0.5, 0.7), (0.4, 1.0), (0.2, 1.15), (0.0, 1.2)], 10),
    )
    for side in (-1, 1):
        draft.add("eyes", WHITE, icosphere(0.2, 0.22, 0.16, 1).at(side * 0.2, 0.42, 0.34))
        draft.add("eyes", BLACK, icosphere(0.1, 0.12, 0.1, 0).at(side * 0.2, 0.42, 0.43))
    for i in range(8):
        curl = draft.between(0.05, 0.3)
        path = [(0, 0.25, 0.2), (0, 0.14, 0.5), (0, 0.08, 0.8), (0.08, 0.1, 1.02), (0.14, 0.1 + curl, 1.1)]
        draft.add("tentacle", skin, tube(path, [0.14, 0.11, 0.085, 0.06, 0.03], 6).turned("y", 45 * i + 22))
    draft.having(8, "tentacle")


def crab(draft: Draft) -> None:
    skin = draft.tint(((204, 60, 48), (226, 116, 60), (64, 120, 180)))
    draft.add("body", skin, icosphere(1.0, 0.45, 0.75, 2).at(y=0.35))
    for side in (-1, 1):
        for i in range(3):
            knee, foot = (side * 0.72, 0.45, -0.3 + 0.2 * i), (side * 0.92, 0.0, -0.45 + 0.3 * i)
            draft.add(
                "leg",
                skin,
                link((side * 0.4, 0.32, -0.18 + 0.14 * i), knee, 0.06, 5),
                link(knee, foot, 0.055, 5, top=0.02),
            )
        draft.add(
            "claw",
            skin,
            link((side * 0.42, 0.38, 0.22), (side * 0.72, 0.46, 0.52), 0.08, 6),
            ball(0.3, 0.24, 0.42, 8, 6).at(side * 0.74, 0.48, 0.7),
        )
        draft.add("claw", skin, cone(0.07, 0.26, 5).turned("x", 80).at(side * 0.62, 0.5, 0.92))
        draft.add("eyes", skin, link((side * 0.16, 0.5, 0.28), (side * 0.17, 0.72, 0.34), 0.035, 5))
        draft.add("eyes", BLACK, icosphere(0.12, 0.12, 0.12, 1).at(side * 0.17, 0.74, 0.35))
    draft.having(2, "claw")


def _starfish(draft: Draft) -> None:
    skin = draft.tint(((226, 116, 60), (204, 60, 60), (142, 88, 190), (240, 200, 60)))
    draft.add("body", skin, icosphere(0.5, 0.24, 0.5, 1).at(y=0.1))
    for i in range(5):
        arm = (
            lathe([(0.0, 0.0), (0.22, 0.05), (0.17, 0.4), (0.06, 0.85), (0.0, 0.88)], 6)
            .turned("x", 90)
            .scaled(1, 0.55, 1)
        )
        draft.add("arm", skin, arm.at(y=0.1).turned("y", 72 * i))
    draft.having(5, "arm")


def bird(draft: Draft) -> None:
    """Songbirds, chickens, ducks, eagles, penguins and owls."""
    kind = draft.pick(("bird", "bird", "chicken", "duck", "eagle", "penguin", "owl"))
    draft.call(kind, *(() if kind == "bird" else ("bird",)), subclass=kind if kind in {"chicken", "eagle"} else "bird")
    draft.wobble = 0.06
    if kind in {"penguin", "owl"}:
        _upright(draft, kind)
        return
    body = draft.tint(_FEATHER if kind != "eagle" else ((84, 56, 38), (118, 76, 46)))
    second = draft.other(_FEATHER if kind != "eagle" else (WHITE, (222, 190, 146)), body)
    beak = draft.pick(((236, 150, 44), (240, 196, 64)))
    long = draft.between(1.0, 1.2)
    draft.add("body", body, icosphere(0.55, 0.6, long, 2).turned("x", -14).at(y=0.62))
    neck = 0.34 if kind in {"chicken", "duck"} else 0.14
    head = (0.85 + neck, long * 0.5)
    draft.add("neck", body, link((0, 0.75, long * 0.28), (0, head[0], head[1] - 0.04), 0.2, 8, top=0.15))
    draft.add("head", second if kind == "eagle" else body, icosphere(0.36, 0.36, 0.4, 1).at(0, head[0] + 0.04, head[1]))
    bill = (
        ball(0.2, 0.08, 0.36, 6, 4).at(0, head[0], head[1] + 0.26)
        if kind == "duck"
        else cone(0.09, 0.26, 5).turned("x", 95).at(0, head[0] + 0.02, head[1] + 0.28)
    )
    draft.add("beak", beak, bill)
    flying = kind == "eagle" or (kind == "bird" and draft.chance(0.4))
    _wings(draft, (body if kind == "eagle" else second, beak), flying=flying)
    for side in (-1, 1):
        draft.add("eyes", BLACK, icosphere(0.07, 0.08, 0.07, 0).at(side * 0.15, head[0] + 0.1, head[1] + 0.1))
    tail = extrude([(-0.1, 0.0), (0.1, 0.0), (0.2, -0.45), (-0.2, -0.45)], 0.08).turned(
        "x", 90 + (30 if kind == "chicken" else 8)
    )
    draft.add("tail", second, tail.at(0, 0.66, -long * 0.42))
    if kind == "chicken":
        for i in range(3):
            draft.add(
                "comb", (204, 48, 44), icosphere(0.1, 0.16, 0.14, 0).at(0, head[0] + 0.25, head[1] + 0.1 - 0.1 * i)
            )
    draft.adjectives += ["flying"] if flying else []


def _wings(draft: Draft, colors: tuple[RGB, RGB], *, flying: bool) -> None:
    """Spread wings of a flying bird, or folded wings and legs of a standing one."""
    plumage, leg = colors
    for side in (-1, 1):
        word = "left" if side > 0 else "right"
        if flying:
            wing = extrude([(0.0, 0.3), (0.0, -0.25), (0.75, -0.35), (1.25, -0.12), (0.7, 0.28)], 0.08)
            wing = wing.turned("x", 90).turned("z", draft.between(5, 25)).at(0.18, 0.72, 0.05)
            draft.add(f"wing {word}", plumage, wing if side > 0 else wing.mirrored("x"))
            continue
        folded = ball(0.14, 0.42, 0.75, 8, 6).turned("x", -18).at(side * 0.27, 0.66, -0.06)
        draft.add(f"wing {word}", plumage, folded)
        draft.add("leg", leg, link((side * 0.13, 0.42, 0.0), (side * 0.14, 0.04, 0.02), 0.035, 5))
        draft.add("leg", leg, ball(0.2, 0.06, 0.26, 6, 4).at(side * 0.14, 0.03, 0.08))


def _upright(draft: Draft, kind: str) -> None:
    body = (
        draft.tint((BLACK, (60, 64, 76)))
        if kind == "penguin"
        else draft.tint(((118, 76, 46), (150, 102, 64), (150, 150, 152), WHITE))
    )
    belly = draft.other((WHITE, (222, 206, 170)), body)
    draft.add(
        "body",
        body,
        lathe([(0.0, 0.05), (0.32, 0.08), (0.45, 0.4), (0.36, 0.85), (0.3, 1.05), (0.2, 1.25), (0.0, 1.32)], 10),
    )
    draft.add("belly", belly, ball(0.62, 0.8, 0.5, 8, 6).at(0, 0.5, 0.22))
    for side in (-1, 1):
        wing = ball(0.12, 0.66, 0.34, 6, 6).turned("z", 14 * side).at(side * 0.44, 0.62, 0)
        draft.add("wing left" if side > 0 else "wing right", body, wing)
        size = 0.2 if kind == "owl" else 0.1
        draft.add(
            "eyes",
            WHITE if kind == "penguin" else (240, 200, 60),
            icosphere(size, size, 0.12, 1).at(side * 0.12, 1.1, 0.24),
        )
        draft.add("eyes", BLACK, icosphere(size * 0.5, size * 0.5, 0.1, 0).at(side * 0.12, 1.1, 0.29))
        draft.add("foot", (236, 150, 44), ball(0.22, 0.08, 0.34, 6, 4).at(side * 0.17, 0.04, 0.16))
        if kind == "owl":
            draft.add("ear", body, cone(0.09, 0.2, 4).at(side * 0.17, 1.36, 0))
    draft.add("beak", (236, 150, 44), cone(0.07, 0.2, 5).turned("x", 100).at(0, 1.0, 0.34))
