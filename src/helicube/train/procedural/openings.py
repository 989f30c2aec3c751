"""Doors, windows, stairs, fences, bridges and columns."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BRASS, DARK_METAL, GLASS, METAL, PAINT, RGB, STONE, WHITE, WOOD
from helicube.train.procedural.primitives import arc, ball, box, cylinder, rock, torus, wedge
from helicube.train.procedural.solid import Floats, Solid
from helicube.train.procedural.sweep import extrude

__all__ = ["bridge", "column", "door", "fence", "stairs", "window"]


def _arched(wide: float, high: float, rise: float) -> Floats:
    """(N, 2) outline on y = 0 whose top is an arch of height `rise`; rise 0 is a rectangle."""
    half = wide / 2
    if rise <= 0:
        return np.array([(-half, 0), (half, 0), (half, high), (-half, high)])
    curve = arc(1.0, 0, 180, 8)[:, :2] * np.array([half, rise]) + np.array([0, high - rise])
    return np.concatenate([[(-half, 0.0), (half, 0.0)], curve])


def door(draft: Draft) -> None:
    """Panelled, plank, glazed and double doors in a frame."""
    plain = draft.chance(0.25)
    color = draft.tint(WOOD) if draft.chance(0.65) else draft.tint((*PAINT, *METAL))
    frame = draft.other((*WOOD, WHITE, *STONE, *DARK_METAL), color)
    draft.material = "wooden" if not plain else ""
    double = draft.chance(0.25)
    draft.call(*(("double door", "door") if double else ("door",)), subclass="door")
    wide, high = draft.between(1.3, 1.6) if double else draft.between(0.75, 0.95), draft.between(1.8, 2.1)
    rise = draft.pick((0.0, 0.0, wide / 2 if not double else 0.5))
    bar = draft.between(0.1, 0.18)
    draft.add("frame", frame, extrude(_arched(wide + 2 * bar, high + bar, rise + bar if rise else 0), 0.16))
    draft.add("door", color, extrude(_arched(wide, high, rise), 0.24))
    draft.adjectives += ["arched"] if rise else []
    knob = draft.other((BRASS, *METAL, *DARK_METAL), color)
    leaves = 2 if double else 1
    each = wide / leaves
    style = draft.pick(("panels", "planks", "glass"))
    for i in range(leaves):
        x = (i - (leaves - 1) / 2) * each
        _leaf(draft, (color, knob), (x, each, high - (rise if rise else 0)), style)
        side = 1 if i == 0 else -1
        draft.add("handle", knob, ball(0.1, 0.1, 0.1, 8, 4).at(x + side * each * 0.38, high * 0.48, 0.17))
    if double:
        draft.add("frame", frame, box(0.03, high * 0.98, 0.26).at(y=high * 0.49))
    if style == "glass":
        draft.features.append("with a window")


def _leaf(draft: Draft, colors: tuple[RGB, RGB], span: tuple[float, float, float], style: str) -> None:
    """Decoration of one leaf at x, of a width and a usable height."""
    color, metal = colors
    x, wide, high = span
    if style == "planks":
        for i in range(3):
            draft.add("door", color, box(wide * 0.26, high * 0.96, 0.27).at(x + (i - 1) * wide * 0.3, high * 0.49, 0))
        for y in (0.22, 0.78):
            draft.add("hinge", metal, box(wide * 0.8, 0.08, 0.3).at(x, high * y, 0))
    elif style == "panels":
        for y, h in ((0.26, 0.34), (0.72, 0.36)):
            draft.add("panel", color, box(wide * 0.62, high * h, 0.28).at(x, high * y, 0))
    else:
        pane = draft.tint(GLASS)
        draft.add("window", pane, box(wide * 0.56, high * 0.3, 0.27).at(x, high * 0.74, 0))
        draft.add("panel", color, box(wide * 0.62, high * 0.36, 0.28).at(x, high * 0.28, 0))


def window(draft: Draft) -> None:
    """Windows with bars, arched or square, with sills and shutters."""
    frame = draft.tint((WHITE, *WOOD, *METAL, *DARK_METAL)) if draft.chance(0.8) else draft.tint(PAINT)
    pane = draft.tint(GLASS)
    draft.call("window")
    wide, high = draft.proportion(0.7, 1.5, ("narrow", "wide")), draft.between(0.9, 1.5)
    rise = draft.pick((0.0, 0.0, min(wide / 2, high * 0.45)))
    draft.adjectives += ["arched"] if rise else []
    bar = draft.between(0.07, 0.12)
    outer, inner = _arched(wide, high, rise), _arched(wide - 2 * bar, high - 2 * bar, max(rise - bar, 0))
    draft.add("frame", frame, _ring(outer, inner + np.array([0, bar]), 0.2))
    draft.add("glass", pane, extrude(_arched(wide - bar, high - bar, max(rise - bar / 2, 0)), 0.07).at(y=bar / 2))
    columns, rows = draft.count(1, 3), draft.count(1, 3)
    for i in range(1, columns):
        x = (i / columns - 0.5) * (wide - bar)
        draft.add("frame", frame, box(bar * 0.6, high - rise * 0.6 - bar, 0.14).at(x, (high - rise * 0.6) / 2))
    for i in range(1, rows):
        draft.add("frame", frame, box(wide - bar, bar * 0.6, 0.14).at(y=(high - rise) * i / rows + bar / 2))
    if draft.chance(0.6):
        draft.add("sill", frame, box(wide * 1.12, 0.1, 0.36).at(0, -0.05, 0.06))
        draft.features.append("with a sill")
    if draft.chance(0.3):
        shade = draft.other((*PAINT, *WOOD), frame)
        for side, word in ((1, "left"), (-1, "right")):
            at = (side * wide * 0.74, (high - rise * 0.5) / 2, 0.02)
            draft.add(f"shutter {word}", shade, box(wide * 0.46, high - rise * 0.5, 0.08).at(*at))
        draft.having_colored("shutters", shade)


def _ring(outer: Floats, inner: Floats, depth: float) -> Solid:
    """A frame between two outlines with equally many points."""
    from helicube.train.procedural.sweep import loft

    def at(points: Floats, z: float) -> Floats:
        return np.column_stack([points, np.full(len(points), z)])

    half = depth / 2
    return loft([at(outer, -half), at(outer, half), at(inner, half), at(inner, -half)], loop=True)


def stairs(draft: Draft) -> None:
    """Closed and open flights that rise towards -Z, with or without railings."""
    kind = draft.pick(("wooden", "stone", "metal"))
    color = draft.tint({"wooden": WOOD, "stone": STONE, "metal": (*METAL, *DARK_METAL)}[kind])
    draft.material = kind
    draft.call(*draft.pick((("staircase", "stairs"), ("flight of stairs", "stairs"))), subclass="staircase")
    steps = draft.count(3, 9)
    wide, rise, run = (
        draft.proportion(0.8, 1.8, ("narrow", "wide")),
        draft.between(0.16, 0.2),
        draft.between(0.22, 0.32),
    )
    draft.having(steps, "step")
    if draft.chance(0.6):
        outline = [(0.0, 0.0)]
        for i in range(steps):
            outline += [(i * run, (i + 1) * rise), ((i + 1) * run, (i + 1) * rise)]
        outline = [(0.0, 0.0), *outline[1:], (steps * run, 0.0)]
        draft.add("stairs", color, extrude(outline, wide).turned("y", 90))
    else:
        for i in range(steps):
            draft.add("step", color, box(wide, 0.06, run * 1.05).at(0, (i + 1) * rise - 0.03, -(i + 0.5) * run))
        slope = float(np.degrees(np.arctan2(rise, run)))
        long = float(np.hypot(rise, run)) * steps
        for side in (-1, 1):
            beam = box(0.07, 0.2, long).turned("x", slope).at(side * wide * 0.46, steps * rise / 2, -steps * run / 2)
            draft.add("beam", color, beam)
        draft.adjectives.append("open")
    if draft.chance(0.45):
        _railing(draft, (wide, rise, run), steps)


def _railing(draft: Draft, size: tuple[float, float, float], steps: int) -> None:
    wide, rise, run = size
    metal = draft.tint((*DARK_METAL, *WOOD, *METAL))
    slope = float(np.degrees(np.arctan2(rise, run)))
    long = float(np.hypot(rise, run)) * (steps - 1) + 0.1
    for side in (-1, 1):
        x = side * (wide / 2 - 0.05)
        for i in range(0, steps, 2 if steps > 5 else 1):
            draft.add("railing", metal, box(0.05, 0.8, 0.05).at(x, (i + 1) * rise + 0.38, -(i + 0.5) * run))
        bar = box(0.08, 0.07, long).turned("x", slope)
        draft.add("railing", metal, bar.at(x, (steps + 1) / 2 * rise + 0.8, -steps / 2 * run))
    draft.features.append("with railings")


def fence(draft: Draft) -> None:
    """Picket, rail, board and iron fences along X."""
    kind = draft.pick(("picket", "rail", "board", "iron"))
    color = draft.tint(DARK_METAL) if kind == "iron" else draft.tint((*WOOD, WHITE))
    draft.material = "metal" if kind == "iron" else "wooden"
    draft.call(f"{kind} fence" if kind in {"picket", "iron"} else "fence", "fence", subclass="fence")
    long, high = draft.proportion(1.6, 3.2, ("short", "long")), draft.between(0.7, 1.1)
    posts = draft.count(2, 4)
    thick = draft.between(0.1, 0.14)
    for i in range(posts):
        x = (long - thick) * (i / (posts - 1) - 0.5)
        draft.add("post", color, box(thick, high * 1.08, thick).at(x, high * 0.54, 0))
        if kind == "iron" or draft.chance(0.02):
            draft.add("post", color, ball(0.16, 0.16, 0.16, 8, 4).at(x, high * 1.12, 0))
    rails = draft.count(2, 3)
    for i in range(rails):
        y = high * (0.22 + 0.62 * i / (rails - 1))
        tall = 0.2 * high if kind == "rail" else 0.09
        draft.add("rail", color, box(long, tall, 0.06 if kind != "rail" else 0.09).at(0, y, -0.02))
    if kind == "rail":
        draft.having(posts, "post")
        return
    gap = {"picket": 0.22, "board": 0.2, "iron": 0.16}[kind]
    number = int(long / gap)
    slim = {"picket": 0.12, "board": 0.19, "iron": 0.045}[kind]
    for i in range(number):
        x = (i + 0.5) * long / number - long / 2
        tall = high * (draft.between(0.88, 1.0) if kind == "board" else 1.0)
        draft.add("board", color, box(slim, tall, 0.05).at(x, tall / 2 + 0.02, 0.04))
        if kind != "board":
            draft.add("board", color, wedge(slim, slim * 0.8, 0.05).at(x, tall + 0.02 + slim * 0.39, 0.04))


def bridge(draft: Draft) -> None:
    """Arched stone bridges, plank bridges, rope bridges along X."""
    kind = draft.pick(("stone", "wooden", "wooden"))
    color = draft.tint(STONE if kind == "stone" else WOOD)
    draft.material = kind
    draft.call("bridge")
    long, wide = draft.proportion(2.4, 4.0, ("short", "long")), draft.between(0.9, 1.3)
    rise = draft.between(0.25, 0.7) if kind == "stone" or draft.chance(0.6) else 0.0
    steps = 10
    x = np.linspace(-long / 2, long / 2, steps + 1)
    top = 0.5 + rise * np.cos(np.pi * x / long)
    if kind == "stone":
        span = long * 0.33
        under = arc(1.0, 180, 0, 8)[:, :2] * np.array([span, (0.3 + rise) * 0.95])
        outline = np.concatenate([[(-long / 2, 0.0)], under, [(long / 2, 0.0)], np.stack([x, top], 1)[::-1]])
        draft.add("arch", color, extrude(outline, wide))
        for side in (-1, 1):
            wall = np.concatenate([np.stack([x, top - 0.05], 1), np.stack([x, top + 0.32], 1)[::-1]])
            draft.add("railing", color, extrude(wall, 0.14).at(z=side * (wide / 2 - 0.07)))
        draft.adjectives.append("arched")
        return
    planks = 16
    for i in range(planks):
        px = (i + 0.5) * long / planks - long / 2
        slope = float(np.degrees(np.arctan(-rise * np.pi / long * np.sin(np.pi * px / long))))
        plank = box(long / planks * 0.9, 0.08, wide).turned("z", slope)
        draft.add("plank", color, plank.at(px, 0.5 + rise * float(np.cos(np.pi * px / long)), 0))
    frame = color if draft.chance(0.6) else draft.other(WOOD, color)
    for side in (-1, 1):
        beam = np.concatenate([np.stack([x, top - 0.2], 1), np.stack([x, top - 0.03], 1)[::-1]])
        draft.add("beam", frame, extrude(beam, 0.1).at(z=side * wide * 0.4))
        rail = np.concatenate([np.stack([x, top + 0.5], 1), np.stack([x, top + 0.6], 1)[::-1]])
        draft.add("railing", frame, extrude(rail, 0.08).at(z=side * wide * 0.47))
        for i in range(0, steps + 1, 2):
            draft.add(
                "railing", frame, box(0.09, 0.75, 0.09).at(float(x[i]) * 0.98, float(top[i]) + 0.2, side * wide * 0.47)
            )
        for end in (-1, 1):
            draft.add("post", frame, box(0.14, 0.6, 0.14).at(end * long * 0.48, 0.2, side * wide * 0.4))
    draft.features.append("with railings")


def column(draft: Draft) -> None:
    """Round and square columns with base and capital, some broken."""
    color = draft.tint((*STONE, (222, 206, 170), WHITE))
    draft.material = "stone"
    draft.call(*draft.pick((("column",), ("pillar", "column"))), subclass="column")
    sides = draft.pick((4, 8, 12, 16))
    draft.adjectives.append("square" if sides == 4 else "round")
    high, radius = draft.proportion(1.2, 2.6, ("short", "tall")), draft.between(0.22, 0.32)
    draft.add("base", color, box(radius * 2.9, 0.14, radius * 2.9).at(y=0.07))
    draft.add("base", color, cylinder(radius * 1.3, 0.14, sides, top=radius * 1.1).at(y=0.2))
    broken = draft.chance(0.2)
    shaft = high * (draft.between(0.4, 0.7) if broken else 1.0)
    draft.add("shaft", color, cylinder(radius, shaft, sides, top=radius * 0.88).at(y=0.2 + shaft / 2))
    if broken:
        draft.adjectives.append("broken")
        shard = rock(draft.rng, radius * 1.7, radius * 1.1, radius * 1.7)
        draft.add("shaft", color, shard.at(0.03, 0.12 + shaft, 0))
        draft.add("rubble", color, rock(draft.rng, radius * 1.3, radius, radius).at(radius * 2, 0, radius))
        return
    top = 0.2 + high
    draft.add("capital", color, cylinder(radius * 0.9, 0.16, sides, top=radius * 1.3).at(y=top + 0.02))
    draft.add("capital", color, box(radius * 2.9, 0.14, radius * 2.9).at(y=top + 0.15))
    if sides > 4 and draft.chance(0.4):
        for y in (0.32, 0.68):
            draft.add("ring", color, torus(radius * 0.96, 0.07, sides, 4).at(y=0.2 + high * y))
        draft.having(2, "ring")
