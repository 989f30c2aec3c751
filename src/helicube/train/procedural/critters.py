"""Elephants, frogs, snakes, turtles, rabbits and spiders; their heads at +Z."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, RGB, WHITE
from helicube.train.procedural.primitives import ball, cone, cylinder, icosphere, link
from helicube.train.procedural.quadrupeds import ELEPHANT, add_quadruped
from helicube.train.procedural.sweep import lathe, tube

__all__ = ["LIZARD", "elephant", "frog", "rabbit", "snake", "spider", "turtle"]

LIZARD: tuple[RGB, ...] = (
    (86, 150, 60),
    (60, 110, 60),
    (126, 150, 76),
    (150, 104, 66),
    (110, 112, 116),
    (64, 140, 140),
    (180, 90, 60),
)


def elephant(draft: Draft) -> None:
    grey = draft.tint(((140, 140, 144), (120, 122, 126), (160, 158, 156)))
    y, z = add_quadruped(draft, ELEPHANT, (grey, grey))
    trunk = [(0, y - 0.02, z + 0.18), (0, y - 0.2, z + 0.36), (0, y - 0.5, z + 0.4), (0, y - 0.68, z + 0.5)]
    draft.add("trunk", grey, tube(trunk, [0.13, 0.1, 0.08, 0.06], 8))
    for side in (-1, 1):
        draft.add("ear", grey, ball(0.4, 0.5, 0.08, 8, 6).turned("y", side * 25).at(side * 0.34, y + 0.05, z - 0.05))
        tusk = tube(
            [(side * 0.12, y - 0.14, z + 0.2), (side * 0.15, y - 0.3, z + 0.36), (side * 0.14, y - 0.28, z + 0.52)],
            [0.04, 0.035, 0.01],
            6,
        )
        draft.add("tusk", (236, 230, 214), tusk)
    draft.features.append("with a trunk")


def frog(draft: Draft) -> None:
    green = draft.tint(((86, 150, 60), (112, 170, 70), (60, 130, 80), (206, 120, 50)))
    belly = draft.other(((222, 214, 170), (236, 230, 200)), green)
    draft.add("body", green, icosphere(0.8, 0.55, 0.95, 2).turned("x", -18).at(y=0.36))
    draft.add("belly", belly, icosphere(0.66, 0.36, 0.78, 1).at(0, 0.25, 0.1))
    for side in (-1, 1):
        draft.add("eyes", green, icosphere(0.24, 0.24, 0.24, 1).at(side * 0.2, 0.68, 0.25))
        draft.add("eyes", BLACK, icosphere(0.13, 0.15, 0.12, 1).at(side * 0.22, 0.7, 0.34))
        draft.add("leg back", green, ball(0.3, 0.36, 0.62, 8, 6).at(side * 0.42, 0.24, -0.22))
        draft.add("leg back", green, ball(0.26, 0.08, 0.4, 6, 4).at(side * 0.5, 0.05, 0.1))
        draft.add("leg front", green, link((side * 0.28, 0.3, 0.3), (side * 0.36, 0.05, 0.42), 0.08, 6, top=0.06))
        draft.add("leg front", green, ball(0.2, 0.07, 0.24, 6, 4).at(side * 0.36, 0.04, 0.48))


def snake(draft: Draft) -> None:
    skin = draft.tint(LIZARD)
    t = np.linspace(0, 1, 26)
    waves = draft.between(1.2, 2.2)
    path = np.stack(
        [
            0.3 * np.sin(2 * np.pi * waves * t) * (1 - 0.3 * t),
            0.08 + 0.34 * np.clip(t - 0.8, 0, 1) ** 1.2 * 4,
            2.4 * (t - 0.5),
        ],
        axis=1,
    )
    radius = 0.1 * np.minimum(1.0, 0.15 + 3.2 * t)
    draft.add("body", skin, tube(path, list(radius), 8))
    x, y, z = path[-1]
    draft.add("head", skin, ball(0.26, 0.18, 0.36, 8, 6).at(x, y + 0.02, z + 0.1))
    for side in (-1, 1):
        draft.add("eyes", BLACK, icosphere(0.05, 0.05, 0.05, 0).at(x + side * 0.09, y + 0.08, z + 0.18))
    draft.add("tongue", (200, 44, 60), link((x, y, z + 0.26), (x, y - 0.02, z + 0.42), 0.014, 4))


def turtle(draft: Draft) -> None:
    skin = draft.tint(((112, 170, 70), (86, 150, 60), (126, 150, 76)))
    shell = draft.other(((118, 86, 52), (70, 110, 62), (150, 102, 64)), skin)
    draft.add(
        "shell",
        shell,
        lathe([(0.0, 0.16), (0.56, 0.14), (0.6, 0.22), (0.46, 0.44), (0.24, 0.56), (0.0, 0.6)], 10).scaled(1, 1, 1.15),
    )
    draft.add("body", skin, cylinder(0.52, 0.14, 10).scaled(1, 1, 1.15).at(y=0.14))
    for side in (-1, 1):
        for z in (-0.42, 0.42):
            draft.add("leg", skin, ball(0.26, 0.24, 0.3, 6, 4).at(side * 0.44, 0.1, z))
        draft.add("eyes", BLACK, icosphere(0.06, 0.06, 0.06, 0).at(side * 0.1, 0.36, 0.92))
    draft.add("head", skin, ball(0.28, 0.26, 0.36, 8, 6).at(0, 0.3, 0.82))
    draft.add("tail", skin, cone(0.08, 0.26, 6).turned("x", -100).at(0, 0.14, -0.78))


def rabbit(draft: Draft) -> None:
    fur = draft.tint(((238, 236, 230), (150, 150, 152), (150, 102, 64), (222, 190, 146)))
    draft.add("body", fur, icosphere(0.62, 0.66, 0.85, 2).at(0, 0.36, -0.12))
    draft.add("head", fur, icosphere(0.46, 0.46, 0.48, 2).at(0, 0.78, 0.32))
    draft.add("tail", WHITE, icosphere(0.22, 0.22, 0.22, 1).at(0, 0.3, -0.56))
    for side in (-1, 1):
        draft.add("ear", fur, ball(0.14, 0.56, 0.1, 8, 6).turned("z", -10 * side).at(side * 0.12, 1.2, 0.24))
        draft.add(
            "foot",
            fur,
            ball(0.2, 0.14, 0.42, 6, 4).at(side * 0.2, 0.07, 0.05),
            ball(0.16, 0.3, 0.18, 6, 4).at(side * 0.14, 0.14, 0.3),
        )
        draft.add("eyes", BLACK, icosphere(0.07, 0.09, 0.07, 0).at(side * 0.16, 0.84, 0.5))
    draft.add("nose", (226, 140, 150), icosphere(0.08, 0.06, 0.06, 0).at(0, 0.74, 0.56))
    draft.features.append("with long ears")


def spider(draft: Draft) -> None:
    color = draft.tint((BLACK, (84, 56, 38), (100, 96, 94), (120, 40, 40)))
    draft.add(
        "body", color, icosphere(0.7, 0.6, 0.85, 2).at(0, 0.45, -0.4), icosphere(0.42, 0.36, 0.46, 1).at(0, 0.4, 0.18)
    )
    for side in (-1, 1):
        for i in range(4):
            z = 0.3 - 0.16 * i
            out = 0.75 + 0.08 * (i in {1, 2})
            knee, foot = (side * out * 0.6, 0.78, z * 2.2), (side * out * 1.15, 0.0, z * 3.4)
            draft.add(
                "leg",
                color,
                link((side * 0.12, 0.42, z * 0.8), knee, 0.05, 5, top=0.045),
                link(knee, foot, 0.045, 5, top=0.02),
            )
        draft.add("eyes", (200, 44, 44), icosphere(0.08, 0.08, 0.08, 0).at(side * 0.09, 0.46, 0.38))
    draft.having(8, "leg")
