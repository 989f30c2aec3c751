"""Rocks, crystals, mountains, clouds, planets and mushrooms."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import LEAF, RGB, STONE, WHITE
from helicube.train.procedural.primitives import ball, blob, cylinder, icosphere, rock, torus
from helicube.train.procedural.solid import Solid
from helicube.train.procedural.sweep import lathe

__all__ = ["cloud", "crystal", "mountain", "mushroom", "planet", "stone"]

_EARTH: tuple[RGB, ...] = ((128, 92, 64), (150, 112, 78), (108, 84, 66), (176, 140, 100))
_GEM: tuple[RGB, ...] = (
    (96, 190, 230), (150, 90, 200), (70, 180, 120), (226, 110, 160), (64, 110, 210), (220, 60, 60), (240, 200, 80),
    (60, 180, 180),
)  # fmt: skip


def stone(draft: Draft) -> None:
    """Single boulders and groups; flat, tall, mossy or snowy."""
    color = draft.tint(STONE) if draft.chance(0.75) else draft.tint(_EARTH)
    number = draft.pick((1, 1, 1, 2, 3))
    draft.call("rock")
    flat = draft.proportion(0.5, 1.3, ("flat", "tall"))
    for i in range(number):
        size = 1.0 if i == 0 else draft.between(0.35, 0.7)
        shape = rock(draft.rng, size, size * flat * draft.between(0.8, 1.1), size * draft.between(0.7, 1.2))
        angle = draft.between(0, 6.3)
        out = 0.0 if i == 0 else 0.5 + size * 0.25
        draft.add("rock", color, shape.at(out * float(np.sin(angle)), 0, out * float(np.cos(angle))))
    if number > 1:
        draft.call(f"group of {('two', 'three')[number - 2]} rocks", "rock", subclass="rock")
    if draft.chance(0.15):
        top, name = draft.pick(((WHITE, "snowy"), (LEAF[1], "mossy")))
        body = draft.pieces[0].solid
        high = float(body.vertices[:, 1].max())
        cap = blob(draft.rng, 0.62, 0.3 * flat, 0.62, rough=0.1)
        draft.add("snow" if name == "snowy" else "moss", top, cap.at(y=high - 0.05))
        draft.adjectives.append(name)


def crystal(draft: Draft) -> None:
    """One gem or a cluster of six-sided points."""
    draft.call("crystal")
    color = draft.tint(_GEM)
    if draft.chance(0.3):
        wide, high = draft.between(0.3, 0.45), draft.proportion(0.8, 1.4, ("short", "tall"))
        profile = ((0.0, 0.0), (wide, high * draft.between(0.35, 0.6)), (0.0, high))
        draft.add("crystal", color, lathe(profile, draft.pick((4, 5, 6, 8))))
        return
    number = draft.count(3, 7)
    draft.call("crystal cluster", "crystal", subclass="crystal")
    for i in range(number):
        high = draft.between(0.9, 1.2) if i == 0 else draft.between(0.35, 0.8)
        thick = high * draft.between(0.12, 0.18)
        lean = 0 if i == 0 else draft.between(18, 48)
        point = _point(thick, high).turned("x", lean).turned("y", 360 * i / (number - 1) if i else 0)
        draft.add("crystal", color, point)
    if draft.chance(0.5):
        base = rock(draft.rng, 0.8, 0.2, 0.8)
        draft.add("base", draft.tint(STONE), base.at(y=-0.06))
        draft.features.append("on a rock")


def _point(thick: float, high: float) -> Solid:
    """A six-sided column on y = 0 with a pointed tip."""
    return lathe([(thick * 0.7, 0.0), (thick, high * 0.7), (0.0, high)], 6)


def mountain(draft: Draft) -> None:
    """One to four rough peaks, often with snow."""
    color = draft.tint((*STONE, *_EARTH))
    number = draft.count(1, 4)
    draft.call(*(("mountain",) if number == 1 else ("mountain range", "mountain")), subclass="mountain")
    snow = draft.chance(0.6)
    steep = draft.proportion(0.6, 1.2, ("low", "tall"))
    for i in range(number):
        size = 1.0 if i == 0 else draft.between(0.45, 0.75)
        angle, out = 2 * np.pi * i / max(number - 1, 1), 0.0 if i == 0 else 0.55
        x, z = out * float(np.sin(angle)), out * float(np.cos(angle))
        profile = np.array([(0.62, 0.0), (0.46, 0.18), (0.3, 0.5), (0.15, 0.8), (0.0, 1.0)]) * [size, size * steep]
        peak = _rough_cone(draft, profile, 9)
        draft.add("mountain", color, peak.at(x, 0, z))
        if snow:
            share = draft.between(0.62, 0.75)
            cap = Solid(peak.vertices * np.array([1.12, 1.04, 1.12]), peak.faces)
            draft.add("snow", WHITE, _upper(cap, size * steep * share).at(x, 0, z))
    if snow:
        draft.adjectives.append("snowy")


def _rough_cone(draft: Draft, profile: np.ndarray, sides: int) -> Solid:
    """A lathe whose points are jittered; its foot stays on y = 0."""
    base = lathe([(float(r), float(y)) for r, y in profile], sides)
    radius = np.linalg.norm(base.vertices[:, [0, 2]], axis=1)
    jitter = draft.rng.uniform(0.82, 1.2, len(radius))
    shake = draft.rng.uniform(-0.05, 0.05, len(radius)) * (base.vertices[:, 1] > 1e-6) * (radius > 1e-6)
    points = base.vertices * np.stack([jitter, np.ones_like(jitter), jitter], axis=1)
    points[:, 1] += shake
    return Solid(points, base.faces)


def _upper(solid: Solid, level: float) -> Solid:
    """Press everything below a level up to it: the part above, closed by an almost flat bottom."""
    points = solid.vertices.copy()
    low = points[:, 1] < level
    share = np.where(low, (points[:, 1].max() - level) / np.maximum(points[:, 1].max() - points[:, 1], 1e-9), 1.0)
    points[:, 0] *= share
    points[:, 2] *= share
    points[:, 1] = np.where(low, level + 0.02 * (points[:, 1] - level), points[:, 1])
    return Solid(points, solid.faces)


def cloud(draft: Draft) -> None:
    """Puffs side by side."""
    draft.call("cloud")
    color = draft.tint((WHITE, WHITE, (222, 226, 230), (196, 214, 232), (150, 152, 158)))
    long = draft.proportion(0.8, 1.8, ("small", "long"))
    number = draft.count(3, 5) + round(2 * (long - 0.8))
    for i in range(number):
        t = i / (number - 1) - 0.5
        size = draft.between(0.6, 0.8) * (1.1 - abs(t))
        at = (t * long, size * 0.32 + draft.between(0, 0.1), draft.between(-0.14, 0.14))
        draft.add("cloud", color, icosphere(size, size * 0.8, size * 0.85, 1).turned("y", 40 * i).at(*at))


def planet(draft: Draft) -> None:
    """Globes with continents, spots, bands or a ring."""
    draft.call("planet")
    color = draft.tint(((64, 120, 200), (206, 140, 84), (190, 90, 60), (90, 160, 110), (130, 90, 170), (150, 150, 154)))
    second = draft.other((*_EARTH, *LEAF, WHITE, (226, 190, 130)), color)
    style = draft.pick(("land", "bands", "plain"))
    draft.add("planet", color, icosphere(1, 1, 1, 2))
    if style == "land":
        for _ in range(draft.count(4, 7)):
            patch = ball(0.46, 0.09, 0.38, 8, 4).at(y=0.485)
            patch = patch.turned("x", draft.between(0, 180)).turned("y", draft.between(0, 360))
            draft.add("land", second, patch)
    elif style == "bands":
        for y in (-0.26, 0.0, 0.24):
            radius = float(np.sqrt(0.25 - y * y))
            draft.add("band", second, cylinder(radius * 1.025, 0.08, 20).at(y=y))
    if draft.chance(0.4):
        ring = torus(0.78, 0.2, 24, 4).scaled(1, 0.12, 1).turned("z", draft.between(10, 25))
        draft.add("ring", draft.other((*_EARTH, (226, 200, 150), WHITE), color), ring)
        draft.features.append("with a ring")


def mushroom(draft: Draft) -> None:
    """A stem and a domed, flat or pointed cap, with or without spots."""
    draft.call("mushroom")
    cap = draft.tint(((196, 48, 44), (176, 120, 76), (214, 180, 130), (150, 90, 60), (130, 90, 180), (226, 130, 60)))
    stem = draft.tint(((236, 226, 206), (222, 200, 166)))
    for i in range(draft.pick((1, 1, 1, 2, 3))):
        size = 1.0 if i == 0 else draft.between(0.4, 0.6)
        at = ((0.0, 0.0), (0.55, 0.2), (-0.4, 0.4))[i]
        _one_mushroom(draft, (cap, stem), size, at)


def _one_mushroom(draft: Draft, colors: tuple[RGB, RGB], size: float, at: tuple[float, float]) -> None:
    cap, stem = colors
    high = size * draft.between(0.5, 0.9)
    thick = size * draft.between(0.1, 0.17)
    radius, dome = size * draft.between(0.38, 0.55), size * draft.between(0.25, 0.5)
    profile = [(thick * 1.2, 0.0), (thick, high * 0.4), (thick * 0.85, high + dome * 0.3)]
    draft.add("stem", stem, lathe(profile, 8).at(at[0], 0, at[1]))
    shape = ((0.0, 0.12), (0.8, 0.0), (1.0, 0.12), (0.86, 0.5), (0.5, 0.86), (0.0, 1.0))
    draft.add("cap", cap, lathe([(r * radius, y * dome) for r, y in shape], 12).at(at[0], high, at[1]))
    if draft.chance(0.5):
        for i in range(7):
            up, a = (0.95, 0.72, 0.72, 0.72, 0.42, 0.42, 0.42)[i], 2.1 * i
            out = radius * (0.05, 0.66, 0.66, 0.66, 0.9, 0.9, 0.9)[i]
            spot = icosphere(0.17 * size, 0.1 * size, 0.17 * size, 0)
            at_spot = (at[0] + out * float(np.sin(a)), high + dome * up, at[1] + out * float(np.cos(a)))
            draft.add("spot", WHITE, spot.at(*at_spot))
        if "with white spots" not in draft.features:
            draft.features.append("with white spots")
