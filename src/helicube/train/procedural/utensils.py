"""Kitchen utensils."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, DARK_METAL, GOLD, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import (
    bevel_box,
    box,
    capsule,
    cylinder,
    frustum,
    icosphere,
    link,
)
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["kitchen_utensil"]


def kitchen_utensil(draft: Draft) -> None:
    """Spoons, forks, kitchen knives, spatulas, cutting boards, rolling pins, salt shakers, whisks."""
    makers = {
        "spoon": _spoon, "fork": _fork, "spatula": _spatula, "cutting board": _board, "rolling pin": _pin,
        "salt shaker": _shaker, "ladle": _spoon, "whisk": _whisk,
    }  # fmt: skip
    kind = draft.pick(tuple(makers))
    sub = kind if kind in {"spoon", "cutting board", "salt shaker"} else "kitchen utensil"
    draft.call(kind, "kitchen utensil", subclass=sub)
    draft.wobble = 0.08
    makers[kind](draft)


_CUTLERY: tuple[RGB, ...] = (*METAL, *WOOD, *GOLD)


def _spoon(draft: Draft) -> None:
    color = draft.tint(_CUTLERY)
    if draft.nouns[0] == "ladle":
        bowl = [(0.0, 0.0), (0.3, 0.08), (0.4, 0.3), (0.35, 0.3), (0.26, 0.13), (0.0, 0.07)]
        draft.add("bowl", color, lathe(bowl, 12))
        draft.add(
            "handle", color, tube([(0, 0.26, -0.37), (0, 0.8, -0.42), (0, 1.5, -0.4), (0, 1.62, -0.28)], 0.055, 6)
        )
        return
    bowl = [(0.0, -0.1), (0.2, -0.06), (0.29, 0.03), (0.24, 0.04), (0.15, -0.02), (0.0, -0.04)]
    draft.add("bowl", color, lathe(bowl, 12).scaled(1, 1.3, 1.35))
    draft.add("handle", color, tube([(0, 0.04, -0.36), (0, 0.1, -0.6), (0, 0.06, -1.7)], [0.05, 0.05, 0.085], 6))


def _fork(draft: Draft) -> None:
    color = draft.tint(_CUTLERY)
    tines = draft.pick((3, 4))
    draft.add("head", color, box(0.42, 0.07, 0.34))
    for i in range(tines):
        draft.add("tine", color, box(0.07, 0.06, 0.55).at((i - (tines - 1) / 2) * 0.35 / (tines - 1), 0.01, 0.42))
    draft.add("handle", color, tube([(0, 0, -0.12), (0, 0.06, -0.5), (0, 0.03, -1.6)], [0.06, 0.05, 0.09], 6))
    draft.features.append(f"with {('three', 'four')[tines - 3]} prongs")


def _spatula(draft: Draft) -> None:
    blade, grip = draft.tint((*METAL, *WOOD, *PAINT)), draft.tint((BLACK, *WOOD, *PAINT[:6]))
    draft.add("blade", blade, frustum((0.52, -0.3, 0.42), (0.5, -0.3, 0.4), 0.0, 0.07))
    draft.add("handle", blade, link((0, 0.04, -0.28), (0, 0.3, -0.75), 0.05, 6))
    draft.add("handle", grip, link((0, 0.28, -0.7), (0, 0.42, -1.5), 0.08, 8))


def _board(draft: Draft) -> None:
    wood = draft.tint(WOOD)
    draft.material = "wooden"
    wide, long = draft.between(0.8, 1.0), draft.between(1.1, 1.4)
    draft.add("board", wood, bevel_box(wide, 0.12, long, 0.03))
    draft.add("handle", wood, bevel_box(0.26, 0.12, 0.5, 0.03).at(0, 0, -long / 2 - 0.2))
    if draft.chance(0.4):
        draft.add(
            "knife",
            METAL[2],
            box(0.2, 0.05, 0.6).at(0.2, 0.085, 0.1),
        )
        draft.add("knife", BLACK, box(0.1, 0.07, 0.35).at(0.25, 0.095, -0.36))
        draft.features.append("with a knife")


def _pin(draft: Draft) -> None:
    wood = draft.tint(WOOD)
    draft.material = "wooden"
    draft.add("roller", wood, cylinder(0.22, 1.2, 12).turned("z", 90))
    grip = draft.other((*WOOD, *PAINT[:4]), wood) if draft.chance(0.5) else wood
    for side in (-1, 1):
        draft.add("handle", grip, capsule(0.09, 0.5, 8).turned("z", 90).at(side * 0.8))


def _shaker(draft: Draft) -> None:
    body = draft.tint((WHITE, *METAL, *WOOD, (200, 220, 230)))
    top = draft.other((*METAL, *DARK_METAL), body)
    draft.add("shaker", body, lathe([(0.0, 0.0), (0.34, 0.0), (0.24, 0.5), (0.28, 0.8), (0.0, 0.8)], 10))
    draft.add("top", top, lathe([(0.29, 0.78), (0.29, 0.95), (0.16, 1.08), (0.0, 1.1)], 10))
    for i in range(3):
        draft.add(
            "hole", BLACK, icosphere(0.06, 0.04, 0.06, 0).at(0.09 * np.sin(2.1 * i), 1.09, 0.09 * np.cos(2.1 * i))
        )


def _whisk(draft: Draft) -> None:
    steel, grip = draft.tint(METAL), draft.tint((*WOOD, BLACK, *PAINT[:4]))
    draft.add("handle", grip, cylinder(0.09, 0.75, 8).at(y=-0.35))
    for i in range(4):
        t = np.linspace(0, 2 * np.pi, 13)[:-1]
        path = np.stack([0.3 * np.sin(t) * (0.55 - 0.45 * np.cos(t)), 0.5 - 0.5 * np.cos(t), 0 * t], axis=1)
        draft.add("wires", steel, tube(path, 0.025, 4, loop=True).turned("y", 45 * i))
