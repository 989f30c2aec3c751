"""Bags and clothing."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, CLOTH, DARK_METAL, GOLD, METAL, PAINT, RGB, WHITE
from helicube.train.procedural.primitives import (
    arc,
    bevel_box,
    box,
    cylinder,
    frustum,
    hull,
    icosphere,
    torus,
)
from helicube.train.procedural.sweep import extrude, lathe, loft, tube

__all__ = ["bag", "clothing"]


def bag(draft: Draft) -> None:
    """Sacks, backpacks, handbags, suitcases and pouches."""
    kind = draft.pick(("sack", "backpack", "handbag", "suitcase", "money bag"))
    sub = {"backpack": "backpack", "suitcase": "briefcase"}.get(kind, "bag")
    draft.call(kind, "bag", subclass=sub)
    color = (
        draft.tint(CLOTH)
        if kind not in {"sack", "money bag"}
        else draft.tint(((196, 160, 112), (176, 140, 96), (150, 116, 80)))
    )
    trim = draft.other((*CLOTH, *GOLD, *DARK_METAL, (118, 76, 46)), color)
    draft.wobble = 0.08
    {"backpack": _backpack, "handbag": _handbag, "suitcase": _suitcase}.get(kind, _sack)(draft, color, trim)


def _sack(draft: Draft, color: RGB, trim: RGB) -> None:
    profile = [(0.0, 0.0), (0.4, 0.02), (0.55, 0.3), (0.42, 0.72), (0.16, 0.92), (0.26, 1.12), (0.0, 1.06)]
    body = lathe(profile, 10)
    shake = 1 + draft.rng.uniform(-0.05, 0.05, len(body.vertices))[:, None] * np.array([1, 0, 1])
    draft.add("bag", color, type(body)(body.vertices * shake, body.faces))
    draft.add("rope", trim, torus(0.17, 0.07, 10, 5).at(y=0.93))
    if draft.nouns[0] == "money bag":
        draft.add("mark", (214, 172, 60), cylinder(0.2, 0.06, 12).turned("x", 74).at(0, 0.45, 0.49))
        draft.features.append("with a coin on it")


def _backpack(draft: Draft, color: RGB, trim: RGB) -> None:
    draft.add("bag", color, bevel_box(0.8, 1.0, 0.42, 0.12).at(y=0.5))
    draft.add("pocket", trim, bevel_box(0.56, 0.4, 0.2, 0.06).at(0, 0.28, 0.24))
    draft.add("flap", trim, bevel_box(0.74, 0.28, 0.48, 0.1).at(0, 0.9, 0.02))
    draft.add("handle", trim, tube(arc(0.14, 0, 180, 6) + np.array([0, 1.02, -0.1]), 0.03, 5))
    for side in (-1, 1):
        path = [
            (side * 0.24, 0.92, -0.18),
            (side * 0.27, 0.8, -0.36),
            (side * 0.27, 0.4, -0.36),
            (side * 0.27, 0.12, -0.18),
        ]
        draft.add("strap", trim, tube(path, 0.05, 5))
    draft.features.append("with a pocket")


def _handbag(draft: Draft, color: RGB, trim: RGB) -> None:
    draft.add("bag", color, frustum((1.1, -0.22, 0.22), (0.9, -0.13, 0.13), 0.0, 0.7))
    draft.add("flap", color, frustum((0.94, -0.15, 0.2), (0.9, -0.15, 0.15), 0.45, 0.74))
    draft.add("clasp", trim, icosphere(0.14, 0.14, 0.1, 1).at(0, 0.48, 0.2))
    for z in (-0.08, 0.08):
        draft.add("handle", trim, tube(arc(0.32, 0, 180, 8) + np.array([0, 0.68, z]), 0.035, 6))


def _suitcase(draft: Draft, color: RGB, trim: RGB) -> None:
    wide, high = draft.between(1.1, 1.4), draft.between(0.7, 0.9)
    draft.add("case", color, bevel_box(wide, high, 0.34, 0.05).at(y=high / 2))
    for side in (-1, 1):
        draft.add("strap", trim, box(0.1, high * 1.02, 0.36).at(side * wide * 0.28, high / 2, 0))
        draft.add("lock", GOLD[0], box(0.12, 0.1, 0.04).at(side * wide * 0.28, high * 0.82, 0.18))
    draft.add("handle", trim, tube(arc(0.17, 0, 180, 6) * np.array([1, 0.8, 1]) + np.array([0, high, 0]), 0.04, 6))


def clothing(draft: Draft) -> None:
    """Helmets, boots, hats, glasses, shirts and armor."""
    kind = draft.pick(("helmet", "hat", "boots", "glasses", "t-shirt", "armor"))
    sub = {"boots": "shoes", "hat": "helmet", "t-shirt": "armor"}.get(kind, kind)
    draft.call(
        *(
            ("pair of glasses", "glasses")
            if kind == "glasses"
            else ("pair of boots", "boots")
            if kind == "boots"
            else (kind,)
        ),
        subclass=sub,
    )
    draft.wobble = 0.07
    {"helmet": _helmet, "hat": _hat, "boots": _boots, "glasses": _glasses, "t-shirt": _shirt, "armor": _armor}[kind](
        draft
    )


def _helmet(draft: Draft) -> None:
    steel = draft.tint((*METAL, *DARK_METAL, *GOLD))
    trim = draft.other((*GOLD, *DARK_METAL, *PAINT[:6]), steel)
    draft.material = "metal"
    draft.call("knight helmet" if draft.chance(0.5) else "helmet", "helmet", subclass="helmet")
    draft.add(
        "helmet",
        steel,
        lathe([(0.44, -0.4), (0.5, 0.0), (0.46, 0.3), (0.28, 0.52), (0.0, 0.6)], 12).scaled(0.95, 1, 1.08),
    )
    if draft.nouns[0] == "knight helmet":
        draft.add("visor", trim, box(0.7, 0.1, 0.12).at(0, 0.06, 0.5), box(0.09, 0.5, 0.12).at(0, -0.12, 0.5))
        plume = draft.tint(PAINT[:8])
        draft.add(
            "plume",
            plume,
            tube([(0, 0.55, 0.2), (0, 0.78, 0.0), (0, 0.7, -0.35), (0, 0.3, -0.62)], [0.05, 0.13, 0.13, 0.03], 6),
        )
        draft.having_one_colored("plume", plume)
    else:
        draft.add("rim", trim, torus(0.5, 0.1, 12, 5).scaled(0.95, 1, 1.08).at(y=-0.02))
        for side in (-1, 1):
            horn = [(side * 0.42, 0.15, 0), (side * 0.72, 0.24, 0), (side * 0.82, 0.55, 0)]
            draft.add("horn", (236, 226, 206), tube(horn, [0.12, 0.09, 0.01], 7))
        draft.having(2, "horn")


def _hat(draft: Draft) -> None:
    color = draft.tint(CLOTH)
    band = draft.other(CLOTH, color)
    kind = draft.pick(("top hat", "wizard hat", "cowboy hat"))
    draft.call(kind, "hat", subclass="helmet")
    draft.add("brim", color, cylinder(0.72 if kind != "top hat" else 0.6, 0.06, 14))
    if kind == "wizard hat":
        draft.add(
            "hat", color, lathe([(0.4, 0.0), (0.28, 0.5), (0.14, 0.95), (0.0, 1.25)], 10).bent(draft.between(-30, 30))
        )
        draft.add("band", band, cylinder(0.41, 0.12, 10, top=0.375).at(y=0.08))
        return
    high = 0.75 if kind == "top hat" else 0.42
    draft.add("hat", color, cylinder(0.36, high, 14, top=0.34).at(y=high / 2))
    draft.add("band", band, cylinder(0.37, 0.12, 14).at(y=0.1))
    draft.having_one_colored("band", band)


def _boots(draft: Draft) -> None:
    color = draft.tint((*CLOTH, (118, 76, 46), BLACK))
    sole = draft.other((*DARK_METAL, (84, 56, 38)), color)
    high = draft.proportion(0.3, 0.8, ("short", "tall"))
    for side in (-1, 1):
        x = side * 0.28
        draft.add(
            "shoe",
            color,
            cylinder(0.19, high, 8, top=0.21).at(x, 0.2 + high / 2, -0.14),
            bevel_box(0.36, 0.28, 0.78, 0.08).at(x, 0.19, 0.05),
        )
        draft.add("sole", sole, box(0.38, 0.08, 0.8).at(x, 0.04, 0.05))
        draft.add("cuff", sole, torus(0.2, 0.08, 8, 5).at(x, 0.2 + high, -0.14))


def _glasses(draft: Draft) -> None:
    frame = draft.tint((BLACK, *GOLD, *PAINT[:6], *DARK_METAL))
    lens = draft.tint(((70, 90, 110), (150, 200, 224), (56, 60, 70)))
    square = draft.chance(0.5)
    for side in (-1, 1):
        sides, phase = (4, 45) if square else (16, 0)
        draft.add(
            "frame",
            frame,
            torus(0.38, 0.09, sides, 5).turned("y", phase).turned("x", 90).scaled(1, 0.85, 1).at(side * 0.48),
        )
        draft.add(
            "lens",
            lens,
            cylinder(0.38, 0.04, sides, phase=0.0)
            .turned("y", phase)
            .turned("x", 90)
            .scaled(1, 0.85, 1)
            .at(side * 0.48),
        )
        draft.add(
            "frame",
            frame,
            box(0.07, 0.08, 1.1).at(side * 0.86, 0.08, -0.54),
            box(0.07, 0.24, 0.08).turned("x", 20).at(side * 0.86, -0.02, -1.08),
        )
    draft.add("frame", frame, box(0.24, 0.08, 0.08).at(y=0.08))


def _shirt(draft: Draft) -> None:
    color = draft.tint((*CLOTH, *PAINT))
    outline = [
        (-0.42, -0.7), (0.42, -0.7), (0.42, 0.25), (0.72, 0.05), (0.9, 0.32), (0.42, 0.7), (0.18, 0.72), (0.0, 0.6),
        (-0.18, 0.72), (-0.42, 0.7), (-0.9, 0.32), (-0.72, 0.05), (-0.42, 0.25),
    ]  # fmt: skip
    draft.add("shirt", color, extrude(outline, 0.3))
    badge = draft.other((WHITE, *PAINT), color)
    if draft.chance(0.5):
        draft.add("stripe", badge, box(0.86, 0.14, 0.34).at(y=0.1))
        draft.having_one_colored("stripe", badge)


def _armor(draft: Draft) -> None:
    steel = draft.tint((*METAL, *DARK_METAL, *GOLD, (118, 76, 46)))
    trim = draft.other((*GOLD, *DARK_METAL), steel)
    rings = [
        [(sx * x, y, sz * z) for sx, sz in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
        for x, y, z in ((0.38, -0.6, 0.22), (0.34, -0.2, 0.2), (0.52, 0.3, 0.3), (0.4, 0.6, 0.2))
    ]
    draft.add("chest", steel, loft(rings))
    draft.add(
        "chest",
        trim,
        hull([(0.3, 0.4, 0.27), (-0.3, 0.4, 0.27), (0, -0.1, 0.24), (0, 0.2, 0.38), (0.2, 0.4, 0.1), (-0.2, 0.4, 0.1)]),
    )
    for side in (-1, 1):
        draft.add("shoulder", steel, icosphere(0.42, 0.36, 0.5, 1).at(side * 0.56, 0.5, 0))
        draft.add("shoulder", trim, torus(0.2, 0.06, 10, 4).turned("z", 90).at(side * 0.68, 0.46, 0))
    draft.add("belt", trim, box(0.82, 0.12, 0.5).at(y=-0.56))
    draft.add("neck", trim, torus(0.2, 0.1, 10, 5).at(y=0.62))
    draft.nouns = ["armor", "suit of armor"]
