"""Boats and ships; the bow at +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.outdoors import wavy_cloth
from helicube.train.procedural.palette import CLOTH, DARK_METAL, GLASS, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import box, cylinder, frustum, link
from helicube.train.procedural.solid import Floats, Solid
from helicube.train.procedural.sweep import loft

__all__ = ["boat", "ship"]


def _stations(long: float, wide: float, blunt: float) -> tuple[Floats, Floats]:
    """z of nine sections from stern to bow and their half widths; `blunt` is the stern's share of the width."""
    t = np.linspace(0, 1, 9)
    half = (
        wide
        / 2
        * np.where(
            t < 0.4, blunt + (1 - blunt) * np.sin(t / 0.4 * np.pi / 2), np.cos((t - 0.4) / 0.6 * np.pi / 2) ** 0.7
        )
    )
    half[-1] = 0.02 * wide
    return (t - 0.5) * long, half


def open_hull(long: float, wide: float, high: float, blunt: float) -> Solid:
    """A hollow boat with thick sides: the outside, the gunwale and the inside."""
    z, half = _stations(long, wide, blunt)
    rise = high * (0.35 * np.linspace(-0.4, 1, 9) ** 2)
    wall, floor = wide * 0.07, high * 0.25
    inner = np.maximum(half - wall, half * 0.3)
    keel = high * 0.25 * np.linspace(0, 1, 9) ** 3
    bottom = np.minimum(floor + keel + rise * 0.3, high)
    columns = [
        (half, high + rise), (half * 0.86, high * 0.45 + rise * 0.5 + keel), (half * 0.3, keel), (-half * 0.3, keel),
        (-half * 0.86, high * 0.45 + rise * 0.5 + keel), (-half, high + rise), (-inner, high + rise),
        (-inner * 0.8, bottom), (inner * 0.8, bottom),
        (inner, high + rise),
    ]  # fmt: skip
    rings = np.stack([np.stack([x, y, z], axis=1) for x, y in columns], axis=1)
    # The inner floor stops short of both ends, so that the end caps stay thick.
    rings[0, 6:, 2] += wall
    rings[0, [7, 8], 1] = rings[1, [7, 8], 1]
    rings[-1, 6:, 2] -= wall
    return loft(rings)


def solid_hull(long: float, wide: float, high: float, blunt: float) -> Solid:
    """A closed hull with a flat deck that sweeps up to the bow."""
    z, half = _stations(long, wide, blunt)
    rise = high * 0.4 * np.linspace(0, 1, 9) ** 2
    keel = high * 0.3 * np.linspace(0, 1, 9) ** 4
    columns = [(half, high + rise), (half * 0.8, high * 0.4 + rise * 0.5 + keel), (half * 0.2, keel)]
    columns += [(-x, y) for x, y in columns[::-1]]
    return loft(np.stack([np.stack([x, y, z], axis=1) for x, y in columns], axis=1))


def boat(draft: Draft) -> None:
    """Rowing boats, canoes, sailing boats, motor boats and fishing boats."""
    kind = draft.pick(("rowing boat", "canoe", "sailboat", "motorboat", "fishing boat"))
    draft.call(kind, *(() if kind == "canoe" else ("boat",)), subclass="boat")
    wooden = kind in {"rowing boat", "canoe"} and draft.chance(0.7)
    color = draft.tint(WOOD) if wooden else draft.tint((WHITE, *PAINT))
    draft.material = "wooden" if wooden else ""
    if kind in {"rowing boat", "canoe"}:
        _open_boat(draft, color, canoe=kind == "canoe")
        return
    long, wide, high = draft.proportion(2.4, 3.4, ("short", "long")), draft.between(0.95, 1.2), draft.between(0.5, 0.65)
    trim = draft.other((WHITE, *PAINT, *WOOD), color)
    draft.add("hull", color, solid_hull(long, wide, high, 0.75))
    draft.add("deck", trim, box(wide * 0.7, 0.06, long * 0.62).at(0, high + 0.04, -long * 0.12))
    if kind == "sailboat":
        _sail(draft, long, high)
    elif kind == "motorboat":
        screen = frustum((wide * 0.7, -0.1, 0.5), (wide * 0.56, -0.1, 0.15), high + 0.03, high + 0.42)
        draft.add("window", draft.tint(GLASS), screen)
        for x in (-0.2, 0.2):
            draft.add(
                "seat", trim, box(0.3, 0.2, 0.3).at(x, high + 0.15, -0.4), box(0.3, 0.4, 0.08).at(x, high + 0.3, -0.56)
            )
        draft.add("motor", DARK_METAL[0], box(0.24, 0.45, 0.26).at(0, high * 0.9, -long / 2 - 0.06))
        draft.features.append("with a motor")
    else:
        _cabin(draft, trim, (wide * 0.6, high, -long * 0.08))


def _open_boat(draft: Draft, color: RGB, *, canoe: bool) -> None:
    long = draft.proportion(2.6, 3.6, ("short", "long")) if canoe else draft.proportion(1.8, 2.8, ("short", "long"))
    wide, high = (draft.between(0.6, 0.75), 0.4) if canoe else (draft.between(0.9, 1.1), draft.between(0.4, 0.55))
    draft.add("hull", color, open_hull(long, wide, high, 0.12 if canoe else draft.between(0.6, 0.8)))
    wood = draft.other(WOOD, color) if draft.chance(0.5) else color
    seats = draft.count(1, 3)
    for i in range(seats):
        z = (i - (seats - 1) / 2) * long * 0.22 - long * 0.06
        draft.add("seat", wood, box(wide * 0.86, 0.06, 0.24).at(0, high * 0.72, z))
    draft.having(seats, "seat")
    if draft.chance(0.5):
        oar_wood = draft.tint(WOOD)
        for side in (-1, 1):
            tip = np.array([side * (wide / 2 + 0.55), high * 0.7, -0.25])
            draft.add("oar", oar_wood, link((side * wide * 0.2, high + 0.22, 0.1), tip, 0.03, 6))
            draft.add("oar", oar_wood, box(0.4, 0.14, 0.05).turned("z", -25 * side).at(*tip))
        draft.having(2, "oar")


def _sail(draft: Draft, long: float, deck: float) -> None:
    cloth = draft.tint((WHITE, WHITE, (232, 222, 196), *CLOTH))
    tall = draft.between(2.0, 2.8)
    mast = draft.tint((*WOOD, METAL[2]))
    draft.add("mast", mast, cylinder(0.05, tall, 8).at(0, deck + tall / 2, 0.15))
    draft.add("mast", mast, cylinder(0.035, long * 0.44, 6).turned("x", 90).at(0, deck + 0.3, 0.15 - long * 0.22))
    sails = draft.count(1, 2)
    for i in range(sails):
        reach = -long * 0.42 if i == 0 else long * 0.3
        low, top = deck + 0.36, deck + tall * (0.95 if i == 0 else 0.8)
        mast_z = 0.11 if i == 0 else 0.2
        belly = draft.between(0.06, 0.16)
        rings = []
        for t in np.linspace(0, 0.97, 6):
            y, z = low + (top - low) * t, mast_z + reach * (1 - t)
            x = belly * np.sin(np.pi * t)
            rings.append(
                [
                    (0.02, y, mast_z),
                    (0.02 + x, y, (z + mast_z) / 2),
                    (0.02, y, z),
                    (-0.02, y, z),
                    (x - 0.02, y, (z + mast_z) / 2),
                    (-0.02, y, mast_z),
                ]
            )
        draft.add("sail", cloth, loft(rings))
    draft.having(sails, "sail")


def _cabin(draft: Draft, color: RGB, at: tuple[float, float, float]) -> None:
    """A wheelhouse with windows; `at` is its width, the deck and the middle z."""
    wide, deck, z = at
    high = draft.between(0.5, 0.75)
    draft.add("cabin", color, box(wide, high, 0.7).at(0, deck + high / 2, z))
    draft.add("window", draft.tint(GLASS), box(wide * 0.8, high * 0.34, 0.74).at(0, deck + high * 0.68, z))
    draft.add("window", draft.pieces[-1].color, box(wide * 1.03, high * 0.34, 0.5).at(0, deck + high * 0.68, z))
    roof = draft.other((*PAINT, *DARK_METAL), color)
    draft.add("roof", roof, box(wide * 1.15, 0.08, 0.86).at(0, deck + high + 0.04, z))
    if draft.chance(0.6):
        draft.add("chimney", roof, cylinder(0.1, 0.4, 8).at(wide * 0.2, deck + high + 0.25, z - 0.15))
    else:
        draft.add("mast", METAL[1], cylinder(0.03, 0.8, 6).at(0, deck + high + 0.4, z))
    draft.features.append("with a cabin")


def ship(draft: Draft) -> None:
    """Square-rigged sailing ships, and steamers with funnels."""
    if draft.chance(0.4):
        _steamer(draft)
        return
    wood = draft.tint(WOOD)
    cloth = draft.tint((WHITE, (232, 222, 196), *CLOTH[:4], (52, 52, 56)))
    draft.call(*draft.pick((("sailing ship", "ship"), ("pirate ship", "ship"))), subclass="sailing ship")
    draft.material = "wooden"
    long, wide, high = draft.proportion(3.2, 4.4, ("short", "long")), draft.between(1.0, 1.3), draft.between(0.6, 0.8)
    draft.add("hull", wood, solid_hull(long, wide, high, 0.75))
    trim = draft.other(WOOD, wood)
    draft.add("stern", wood, box(wide * 0.8, 0.5, long * 0.22).at(0, high + 0.2, -long * 0.37))
    draft.add("stern", trim, box(wide * 0.86, 0.08, long * 0.24).at(0, high + 0.46, -long * 0.37))
    draft.add("bowsprit", trim, link((0, high * 1.25, long * 0.4), (0, high * 1.8, long * 0.66), 0.05, 6))
    masts = draft.count(1, 3)
    for i in range(masts):
        z = 0.0 if masts == 1 else long * 0.56 * (i / (masts - 1) - 0.5) + 0.1
        tall = draft.between(1.9, 2.3) * (1.0 if i == masts // 2 else 0.85)
        draft.add("mast", trim, cylinder(0.06, tall, 8).at(0, high + tall / 2, z))
        for y, share in ((0.42, 1.0), (0.78, 0.72)):
            drop = tall * 0.32
            sheet = _billow(wide * 1.25 * share, drop)
            draft.add("sail", cloth, sheet.at(0, high + tall * y - drop / 2, z + 0.08))
            yard = cylinder(0.04, wide * 1.3 * share, 6).turned("z", 90)
            draft.add("mast", trim, yard.at(0, high + tall * y + drop / 2, z + 0.06))
    draft.having(masts, "mast")
    draft.having_colored("sails", cloth)
    if draft.nouns[0] == "pirate ship":
        pole = next(piece for piece in draft.pieces if piece.part == "mast").solid.vertices
        draft.add(
            "flag",
            (34, 34, 36),
            wavy_cloth(0.5, 0.3, 0.05, 1.0).at(0, float(pole[:, 1].max()) - 0.32, float(pole[:, 2].mean())),
        )


def _billow(wide: float, high: float) -> Solid:
    """A square sail bulging towards +z, centred on the origin."""
    rings = []
    for t in np.linspace(-1, 1, 6):
        y = t * high / 2
        bulge = 0.22 * (1 - t * t)
        x = wide / 2 * (1 - 0.04 * (1 - t))
        front = [(x, y, 0.03), (x * 0.5, y, bulge * 0.85 + 0.03), (-x * 0.5, y, bulge * 0.85 + 0.03), (-x, y, 0.03)]
        back = [(-x, y, -0.02), (-x * 0.5, y, bulge * 0.85 - 0.02), (x * 0.5, y, bulge * 0.85 - 0.02), (x, y, -0.02)]
        rings.append(front + back)
    return loft(rings)


def _steamer(draft: Draft) -> None:
    hull = draft.tint((*PAINT, *METAL))
    house = draft.other((WHITE, (232, 222, 196), *METAL), hull)
    draft.call(*draft.pick((("ship",), ("steamship", "ship"), ("cargo ship", "ship"))), subclass="ship")
    long, wide, high = draft.proportion(3.4, 4.8, ("short", "long")), draft.between(0.9, 1.15), draft.between(0.55, 0.7)
    draft.add("hull", hull, solid_hull(long, wide, high, 0.7))
    if draft.nouns[0] == "cargo ship":
        for i in range(3):
            for k in range(2):
                crate = draft.tint(PAINT)
                at = ((k - 0.5) * wide * 0.4, high + 0.2, -0.1 + i * long * 0.13)
                draft.add("cargo", crate, box(wide * 0.36, 0.36, long * 0.12).at(*at))
        center, levels = -long * 0.33, 2
        draft.features.append("with cargo")
    else:
        center, levels = -long * 0.08, draft.count(1, 3)
    for i in range(levels):
        size = long * (0.42 - 0.09 * i) if draft.nouns[0] != "cargo ship" else long * 0.16
        draft.add("cabin", house, box(wide * (0.66 - 0.08 * i), 0.34, size).at(0, high + 0.17 + 0.34 * i, center))
        pane = draft.tint(GLASS[3:])
        draft.add("window", pane, box(wide * (0.67 - 0.08 * i), 0.1, size * 0.8).at(0, high + 0.2 + 0.34 * i, center))
    funnels = draft.count(1, 3) if draft.nouns[0] != "cargo ship" else 1
    red = draft.other(PAINT, house)
    for i in range(funnels):
        z = center + (i - (funnels - 1) / 2) * long * 0.11
        draft.add("funnel", red, cylinder(0.12, 0.6, 10, top=0.1).at(0, high + 0.34 * levels + 0.28, z))
        draft.add("funnel", (34, 34, 36), cylinder(0.115, 0.12, 10).at(0, high + 0.34 * levels + 0.62, z))
    draft.having(funnels, "funnel")
