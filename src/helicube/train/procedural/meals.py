"""Fast food, bread, cheese, eggs, sushi and meat."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB, WHITE
from helicube.train.procedural.primitives import (
    arc,
    ball,
    bevel_box,
    blob,
    box,
    capsule,
    cylinder,
    frustum,
    icosphere,
    torus,
)
from helicube.train.procedural.sweep import extrude, lathe, tube
from helicube.train.procedural.sweets import sector

__all__ = ["fast_food", "food", "meat"]

_DOUGH: tuple[RGB, ...] = ((214, 160, 96), (196, 140, 84), (226, 176, 110), (176, 120, 70))
_RED: RGB = (204, 44, 48)


def fast_food(draft: Draft) -> None:
    """Burgers, hot dogs, pizzas and slices, fries, tacos and sandwiches."""
    makers = {
        "burger": _burger, "hot dog": _hot_dog, "pizza": _pizza, "slice of pizza": _pizza_slice, "fries": _fries,
        "sandwich": _sandwich,
    }  # fmt: skip
    kind = draft.pick(("burger", *makers))
    draft.call(kind, *(("fast food",) if kind == "fries" else ()), subclass="pizza" if "pizza" in kind else kind)
    draft.nouns = [kind]
    draft.wobble = 0.06
    makers[kind](draft)


def _burger(draft: Draft) -> None:
    bun = draft.tint(((206, 140, 70), (222, 160, 86), (190, 124, 62)))
    draft.nouns = list(draft.pick((("burger",), ("hamburger", "burger"), ("cheeseburger", "burger"))))
    draft.add("bun bottom", bun, lathe([(0.0, 0.0), (0.55, 0.0), (0.62, 0.1), (0.6, 0.2), (0.0, 0.2)], 14))
    y = 0.2
    patties = draft.count(1, 3)
    for _ in range(patties):
        draft.add("patty", (104, 62, 40), cylinder(0.63, 0.16, 14).at(y=y + 0.08))
        y += 0.16
        draft.add("cheese", (244, 190, 60), box(0.98, 0.04, 0.98).turned("y", draft.between(0, 90)).at(y=y + 0.015))
        y += 0.03
    if draft.chance(0.7):
        draft.add("tomato", _RED, cylinder(0.57, 0.06, 14).at(y=y + 0.03))
        y += 0.05
    draft.add("lettuce", (112, 170, 70), torus(0.55, 0.22, 12, 4).scaled(1, 0.4, 1).at(y=y + 0.03))
    y += 0.05
    draft.add(
        "bun top",
        bun,
        lathe([(0.0, 0.0), (0.62, 0.0), (0.65, 0.1), (0.54, 0.28), (0.3, 0.42), (0.0, 0.47)], 14).at(y=y),
    )
    for i in range(9):
        a, r = 2.4 * i, 0.13 * float(np.sqrt(i))
        at = (r * np.sin(a), y + 0.47 - 0.75 * r * r, r * np.cos(a))
        draft.add("sesame", (240, 224, 180), icosphere(0.07, 0.05, 0.05, 0).at(*at))
    if patties > 1:
        draft.having(patties, "patty")


def _hot_dog(draft: Draft) -> None:
    bun = draft.tint(((214, 156, 84), (226, 170, 100)))
    for side in (-1, 1):
        draft.add("bun", bun, capsule(0.24, 1.5, 8).turned("z", 90).scaled(1, 0.9, 0.8).at(0, 0.22, side * 0.2))
    draft.add("sausage", (186, 80, 50), capsule(0.16, 1.8, 8).turned("z", 90).at(y=0.38))
    sauce, name = draft.pick(((_RED, "ketchup"), ((244, 200, 60), "mustard")))
    x = np.linspace(-0.7, 0.7, 13)
    path = np.stack([x, 0 * x + 0.54, 0.08 * np.sin(x * 14)], axis=1)
    draft.add("sauce", sauce, tube(path, 0.045, 5))
    draft.features.append(f"with {name}")


def _pizza(draft: Draft) -> None:
    crust = draft.tint(((214, 156, 84), (196, 136, 72)))
    draft.add("crust", crust, cylinder(1.0, 0.1, 18).at(y=0.05), torus(0.95, 0.16, 18, 6).at(y=0.1))
    draft.add("cheese", (244, 204, 90), cylinder(0.9, 0.08, 18).at(y=0.1))
    _toppings(draft, [(0.3 * float(np.sqrt(i + 0.3)) * 0.9, 2.4 * i) for i in range(8)], 0.13)


def _toppings(draft: Draft, spots: list[tuple[float, float]], y: float) -> None:
    extra = draft.pick(((86, 150, 60), (60, 50, 46), None))
    for i, (radius, angle) in enumerate(spots):
        x, z = radius * float(np.sin(angle)), radius * float(np.cos(angle))
        draft.add("pepperoni", (186, 60, 44), cylinder(0.15, 0.06, 10).at(x, y + 0.02, z))
        if extra and i % 2:
            draft.add("topping", extra, icosphere(0.14, 0.08, 0.14, 0).at(x * 0.6 + 0.16, y + 0.03, z * 0.6))


def _pizza_slice(draft: Draft) -> None:
    crust = draft.tint(((214, 156, 84), (196, 136, 72)))
    draft.add("cheese", (244, 204, 90), sector(1.25, 44, 0.1).at(y=0.04))
    draft.add("crust", crust, sector(1.2, 42, 0.06))
    edge = arc(1.26, 67, 113, 6)[:, [0, 2, 1]]
    draft.add("crust", crust, tube(edge + np.array([0, 0.08, 0]), 0.11, 6))
    _toppings(draft, [(0.95, 0.18), (0.75, -0.16), (0.45, 0.05)], 0.14)


def _fries(draft: Draft) -> None:
    cup = draft.tint(((204, 44, 48), (240, 200, 60), WHITE, (54, 104, 200)))
    rings = [(0.6, -0.2, 0.2), (0.84, -0.26, 0.3)]
    draft.add("box", cup, frustum(rings[0], rings[1], 0.0, 0.8))
    for _ in range(16):
        x, z = draft.between(-0.34, 0.34), draft.between(-0.2, 0.22)
        long = draft.between(0.6, 0.95)
        fry = box(0.09, long, 0.09).turned("z", draft.between(-10, 10)).turned("x", draft.between(-8, 8))
        draft.add("fries", (244, 204, 100), fry.at(x, 0.6 + long / 4, z))
    draft.having_one_colored("box", cup)
    draft.nouns = ["fries"]


def _sandwich(draft: Draft) -> None:
    bread = draft.tint(((226, 184, 120), (206, 160, 100), (176, 120, 70)))
    tri = (
        [(-0.7, -0.35), (0.7, -0.35), (0.0, 0.55)]
        if draft.chance(0.5)
        else [(-0.6, -0.5), (0.6, -0.5), (0.6, 0.5), (-0.6, 0.5)]
    )
    y = 0.0
    layers: list[tuple[str, RGB, float, float]] = [
        ("bread", bread, 0.18, 1.0), ("lettuce", (112, 170, 70), 0.06, 1.06), ("tomato", _RED, 0.08, 0.94),
        ("cheese", (244, 196, 70), 0.05, 1.04), ("ham", (226, 140, 140), 0.06, 1.0), ("bread", bread, 0.18, 1.0),
    ]  # fmt: skip
    for part, color, thick, scale in layers:
        plate = extrude(np.array(tri) * scale, thick).turned("x", -90).at(y=y + thick / 2)
        draft.add(part, color, plate)
        y += thick - 0.01


def food(draft: Draft) -> None:
    """Bread, baguettes, cheese, eggs, sushi."""
    makers = {
        "loaf of bread": _loaf,
        "baguette": _baguette,
        "cheese": _cheese,
        "egg": _egg,
        "sushi": _sushi,
        "slice of bread": _toast,
    }
    kind = draft.pick(tuple(makers))
    sub = {"loaf of bread": "bread", "baguette": "bread", "slice of bread": "bread"}.get(kind, kind)
    draft.call(kind, subclass=sub)
    draft.wobble = 0.06
    makers[kind](draft)


def _loaf(draft: Draft) -> None:
    crust = draft.tint(_DOUGH)
    long = draft.proportion(1.1, 1.8, ("short", "long"))
    top = arc(0.42, -10, 190, 8)[:, :2] * np.array([1, 0.8]) + np.array([0, 0.42])
    outline = np.concatenate([[(-0.38, 0.0), (0.38, 0.0)], top])
    draft.add("bread", crust, extrude(outline, long).turned("y", 90))
    for i in range(3):
        cut = box(0.06, 0.05, 0.5).turned("y", 25).at((i - 1) * long * 0.28, 0.75, 0)
        draft.add("bread", draft.other(_DOUGH, crust), cut)


def _baguette(draft: Draft) -> None:
    crust = draft.tint(_DOUGH)
    draft.add("bread", crust, ball(2.2, 0.4, 0.5, 8, 8).at(y=0.2))
    for i in range(5):
        draft.add(
            "cut",
            draft.other(((236, 206, 150), (244, 220, 170)), crust),
            ball(0.3, 0.06, 0.1, 6, 4).turned("y", 35).at((i - 2) * 0.34, 0.4 - 0.03 * abs(i - 2), 0),
        )


def _toast(draft: Draft) -> None:
    crust = draft.tint(((176, 120, 70), (150, 100, 58)))
    shape = np.array(
        [
            (-0.45, -0.5),
            (0.45, -0.5),
            (0.45, 0.15),
            (0.56, 0.35),
            (0.4, 0.52),
            (0.0, 0.56),
            (-0.4, 0.52),
            (-0.56, 0.35),
            (-0.45, 0.15),
        ]
    )
    draft.add("crust", crust, extrude(shape, 0.2))
    draft.add("bread", (238, 210, 158), extrude(shape * 0.88, 0.24))


def _cheese(draft: Draft) -> None:
    yellow = draft.tint(((244, 200, 80), (240, 190, 70), (238, 220, 150)))
    wedge = sector(1.3, draft.between(40, 65), draft.between(0.5, 0.7))
    draft.add("cheese", yellow, wedge)
    hole = draft.other(((214, 150, 50), (226, 170, 60), (206, 166, 90)), yellow)
    for i in range(5):
        size = draft.between(0.14, 0.24)
        draft.add(
            "hole",
            hole,
            icosphere(size, 0.06, size, 1).at(
                0.12 * (-1) ** i * (i * 0.4), float(wedge.vertices[:, 1].max()), 0.5 + 0.14 * i
            ),
        )
    draft.nouns = ["piece of cheese", "wedge of cheese"]
    draft.features.append("with holes")


def _egg(draft: Draft) -> None:
    if draft.chance(0.5):
        shell = draft.tint((WHITE, (226, 190, 150), (206, 160, 120), (148, 198, 236), (236, 170, 190)))
        shape = [(0.0, 0.0), (0.22, 0.05), (0.4, 0.25), (0.43, 0.45), (0.33, 0.78), (0.16, 1.0), (0.0, 1.06)]
        draft.add("egg", shell, lathe(shape, 12))
        return
    draft.call("fried egg", "egg", subclass="egg")
    white = blob(draft.rng, 2.0, 0.16, 1.8, rough=0.12, level=2)
    draft.add("white", WHITE, white)
    draft.add("yolk", (246, 186, 50), icosphere(0.7, 0.4, 0.7, 1).at(0.05, 0.06, 0))


def _sushi(draft: Draft) -> None:
    fish = draft.pick(((236, 130, 80), (214, 70, 60), (244, 200, 90)))
    if draft.chance(0.5):
        draft.add("rice", (238, 236, 230), bevel_box(1.2, 0.42, 0.6, 0.14).at(y=0.21))
        draft.add("fish", fish, bevel_box(1.36, 0.2, 0.68, 0.07).at(y=0.5))
        for i in range(3):
            draft.add("fish", (246, 214, 190), box(0.05, 0.21, 0.69).at((i - 1) * 0.36, 0.5, 0))
        if draft.chance(0.4):
            draft.add("seaweed", (40, 52, 44), box(0.26, 0.64, 0.7).at(y=0.32))
        return
    draft.nouns = ["sushi roll", "sushi"]
    draft.add("seaweed", (40, 52, 44), cylinder(0.5, 0.56, 14).at(y=0.28))
    draft.add("rice", (238, 236, 230), cylinder(0.44, 0.6, 14).at(y=0.3))
    draft.add("fish", fish, cylinder(0.2, 0.64, 8).at(y=0.32))


def meat(draft: Draft) -> None:
    """Drumsticks, steaks, sausages, hams on the bone."""
    kind = draft.pick(("chicken drumstick", "steak", "sausage", "meat on the bone"))
    draft.call(kind, "meat", subclass="sausage" if kind == "sausage" else "meat")
    draft.wobble = 0.08
    bone: RGB = (236, 226, 206)
    brown = draft.tint(((176, 100, 56), (150, 84, 50), (196, 120, 70)))
    if kind == "sausage":
        x = np.linspace(-0.9, 0.9, 9)
        path = np.stack([x, 0.25 * x**2, 0 * x], axis=1)
        draft.add(
            "sausage",
            draft.tint(((170, 74, 50), (150, 90, 60), (186, 90, 70))),
            tube(path, [0.04, 0.19, 0.22, 0.22, 0.22, 0.22, 0.22, 0.19, 0.04], 8),
        )
    elif kind == "steak":
        red = draft.tint(((186, 60, 56), (150, 84, 50)))
        steak = blob(draft.rng, 1.7, 0.3, 1.2, rough=0.1, level=2)
        draft.add("fat", (240, 214, 196), steak.scaled(1.06, 0.85, 1.08))
        draft.add("meat", red, steak)
        draft.add("bone", bone, cylinder(0.14, 0.34, 8).at(0.4, 0, 0.1))
    elif kind == "chicken drumstick":
        draft.add(
            "meat", brown, lathe([(0.0, 0.0), (0.3, 0.05), (0.45, 0.35), (0.34, 0.75), (0.14, 1.1), (0.0, 1.12)], 10)
        )
        draft.add(
            "bone",
            bone,
            cylinder(0.08, 0.5, 8).at(y=1.3),
            icosphere(0.2, 0.2, 0.2, 1).at(0.08, 1.56, 0),
            icosphere(0.2, 0.2, 0.2, 1).at(-0.08, 1.56, 0),
        )
        draft.features.append("with a bone")
    else:
        draft.add("meat", brown, ball(1.2, 0.9, 0.9, 10, 8))
        for side in (-1, 1):
            draft.add("bone", bone, cylinder(0.1, 0.45, 8).turned("z", 90).at(side * 0.75))
            draft.add("bone", bone, *[icosphere(0.22, 0.22, 0.22, 1).at(side * 0.98, dy, 0) for dy in (-0.09, 0.09)])
        draft.nouns = ["piece of meat on the bone", "meat"]
