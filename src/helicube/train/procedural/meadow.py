"""Flowers, grass, logs, tree stumps and other small plants."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.decor import leaf_blade
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BARK, LEAF, RGB, WHITE
from helicube.train.procedural.primitives import ball, box, cylinder, icosphere, link, torus
from helicube.train.procedural.sweep import extrude, lathe, tube

__all__ = ["flower", "grass", "log", "plant", "tree_stump"]

_PETAL: tuple[RGB, ...] = (
    (204, 48, 54), (236, 140, 176), (240, 204, 70), WHITE, (142, 88, 190), (236, 134, 44), (84, 130, 220),
    (226, 80, 130),
)  # fmt: skip
_RING: tuple[RGB, ...] = ((214, 170, 112), (196, 150, 98), (226, 186, 130))


def flower(draft: Draft) -> None:
    """Daisies, sunflowers, tulips and roses on a stem, alone or in a bunch."""
    kind = draft.pick(("flower", "flower", "sunflower", "tulip", "rose"))
    draft.call(kind, *(() if kind == "flower" else ("flower",)), subclass="flower")
    petal = (240, 196, 60) if kind == "sunflower" else draft.tint(_PETAL)
    green = draft.tint(LEAF[:6])
    number = draft.pick((1, 1, 1, 3))
    high = draft.proportion(0.7, 1.5, ("short", "tall"))
    for i in range(number):
        turn = 120 * i
        lean = 0.0 if number == 1 else 0.3
        head = np.array([lean * np.sin(np.radians(turn)), high * (1 - 0.12 * i), lean * np.cos(np.radians(turn))])
        path = [np.zeros(3), head * np.array([0.3, 0.55, 0.3]), head]
        draft.add("stem", green, tube(path, 0.035, 6))
        for k in range(2):
            blade = leaf_blade(0.38, 0.15, 0.3).turned("y", turn + 180 * k + 40)
            draft.add("leaves", green, blade.at(*(head * (0.25 + 0.15 * k))))
        _bloom(draft, kind, petal, head)
    if number > 1:
        draft.call(f"bunch of three {kind}s", f"{kind}s", subclass="flower")
        draft.nouns = [f"bunch of three {kind}s", f"bunch of {kind}s"]
    draft.having_colored("petals", petal)


def _bloom(draft: Draft, kind: str, petal: RGB, at: np.ndarray) -> None:
    x, y, z = (float(v) for v in at)
    if kind == "tulip":
        for i in range(5):
            leaf = ball(0.24, 0.44, 0.12, 6, 6).at(0, 0.2, 0.11).turned("y", 72 * i)
            draft.add("petals", petal, leaf.at(x, y, z))
        return
    if kind == "rose":
        draft.add(
            "petals", petal, lathe([(0.0, 0.0), (0.14, 0.04), (0.22, 0.2), (0.16, 0.34), (0.0, 0.3)], 8).at(x, y, z)
        )
        for ring in range(2):
            for i in range(5):
                leaf = (
                    ball(0.22, 0.26, 0.08, 6, 4)
                    .turned("x", 16 + 24 * ring)
                    .at(0, 0.13 - 0.03 * ring, 0.17 + 0.06 * ring)
                )
                draft.add("petals", petal, leaf.turned("y", 72 * i + 36 * ring).at(x, y, z))
        return
    big = kind == "sunflower"
    count, reach = (12, 0.4) if big else (draft.pick((5, 6, 8)), 0.28)
    tilt = 55 if big else draft.between(10, 50)
    wide = 0.9 * reach * 2 * np.pi / count * 0.8
    for i in range(count):
        leaf = ball(wide, 0.06, reach, 6, 4).at(0, 0, reach * 0.75).turned("x", -8).turned("y", 360 * i / count)
        draft.add("petals", petal, leaf.turned("x", tilt).at(x, y, z))
    middle = (110, 70, 40) if big else draft.other(((240, 200, 70), (110, 70, 40)), petal)
    size = reach * (0.85 if big else 0.6)
    draft.add("center", middle, icosphere(size, 0.16, size, 1).turned("x", tilt).at(x, y, z))


def grass(draft: Draft) -> None:
    """Tufts of blades."""
    draft.call(*draft.pick((("tuft of grass", "grass"), ("grass",), ("patch of grass", "grass"))), subclass="grass")
    green = draft.tint(LEAF)
    number = draft.count(6, 14)
    high = draft.proportion(0.4, 1.0, ("short", "tall"))
    for i in range(number):
        radius, turn = 0.28 * float(np.sqrt(i / number)), 137.5 * i
        long = high * draft.between(0.6, 1.0)
        blade = lathe([(0.075, 0.0), (0.06, long * 0.5), (0.0, long)], 4).scaled(1, 1, 0.5).bent(draft.between(10, 55))
        draft.add(
            "grass",
            green,
            blade.turned("y", turn + 90).at(radius * np.sin(np.radians(turn)), 0, radius * np.cos(np.radians(turn))),
        )


def log(draft: Draft) -> None:
    """Cut logs, alone or stacked, with pale ends."""
    draft.call("log")
    bark, wood = draft.tint(BARK), draft.tint(_RING)
    draft.material = "wooden"
    number = draft.pick((1, 1, 3, 6))
    long, radius = draft.proportion(1.3, 2.4, ("short", "long")), 0.26
    spots = [(0.0, 0.0)] if number == 1 else [(-0.5, 0.0), (0.5, 0.0), (0.0, 0.86)]
    if number == 6:
        spots = [(-1.0, 0.0), (0.0, 0.0), (1.0, 0.0), (-0.5, 0.86), (0.5, 0.86), (0.0, 1.72)]
    for x, y in spots:
        size = radius * draft.between(0.92, 1.0)
        shift = draft.between(-0.08, 0.08)
        body = cylinder(size, long, 9).turned("x", 90).at(x * 2 * radius, radius + y * 2 * radius, shift)
        ends = cylinder(size * 0.86, long * 1.02, 9).turned("x", 90).at(x * 2 * radius, radius + y * 2 * radius, shift)
        draft.add("bark", bark, body)
        draft.add("wood", wood, ends)
    if number == 1 and draft.chance(0.5):
        twig = link((0, radius, 0.2), (0.34, radius + 0.3, 0.3), 0.09, 6, top=0.07)
        draft.add("branch", bark, twig)
    if number > 1:
        draft.nouns = [f"stack of {('three', 'six')[number == 6]} logs", "stack of logs"]


def tree_stump(draft: Draft) -> None:
    """A cut trunk with roots, rings and perhaps a mushroom or an axe mark."""
    draft.call("tree stump")
    bark, wood = draft.tint(BARK), draft.tint(_RING)
    high, radius = draft.proportion(0.35, 0.9, ("low", "tall")), draft.between(0.36, 0.46)
    draft.add("trunk", bark, lathe([(radius * 1.25, 0.0), (radius, high * 0.35), (radius * 0.95, high)], 10))
    draft.add("wood", wood, cylinder(radius * 0.84, 0.06, 10).at(y=high))
    draft.add(
        "wood",
        draft.other((*_RING, (176, 128, 80)), wood),
        torus(radius * 0.45, 0.06, 10, 4).scaled(1, 0.4, 1).at(y=high + 0.03),
    )
    roots = draft.count(3, 5)
    for i in range(roots):
        root = tube(
            [(0, 0.26, radius * 0.7), (0, 0.12, radius * 1.2), (0.04, 0.02, radius * 1.75)], [0.16, 0.12, 0.03], 6
        )
        draft.add("root", bark, root.turned("y", 360 * i / roots + draft.between(-15, 15)))
    if draft.chance(0.3):
        cap = draft.tint(((204, 48, 44), (214, 180, 130), (176, 120, 76)))
        draft.add("mushroom", (232, 222, 200), cylinder(0.05, 0.2, 6).at(radius * 1.2, 0.1, 0.2))
        draft.add(
            "mushroom", cap, lathe([(0.0, 0.0), (0.16, 0.0), (0.1, 0.1), (0.0, 0.13)], 8).at(radius * 1.2, 0.18, 0.2)
        )
        draft.features.append("with a mushroom")


def plant(draft: Draft) -> None:
    """Ferns, bamboo, lily pads, hay bales, wheat, reeds and vines' leaves."""
    kind = draft.pick(("plant", "plant", "fern", "bamboo", "lily pad", "hay bale", "wheat", "cattail"))
    sub = kind if kind in {"bamboo", "lily pad", "hay bale", "wheat"} else "plant"
    draft.call(kind, *(("plant",) if kind in {"fern", "bamboo", "cattail"} else ()), subclass=sub)
    green = draft.tint(LEAF)
    draft.wobble = 0.06
    {"fern": _fern, "bamboo": _bamboo, "lily pad": _lily, "hay bale": _hay, "wheat": _wheat, "cattail": _cattail}.get(
        kind, _leafy
    )(draft, green)


def _leafy(draft: Draft, green: RGB) -> None:
    number, long = draft.count(5, 9), draft.proportion(0.6, 1.1, ("small", "tall"))
    for i in range(number):
        blade = leaf_blade(long * draft.between(0.75, 1.0), long * draft.between(0.25, 0.38), draft.between(0.1, 0.8))
        draft.add("leaves", green, blade.turned("x", -draft.between(0, 30)).turned("y", 360 * i / number))


def _fern(draft: Draft, green: RGB) -> None:
    for i in range(draft.count(5, 7)):
        path = np.array([(0, 0, 0), (0, 0.4, 0.3), (0, 0.56, 0.65), (0, 0.5, 1.0)])
        turn = 360 * i / 6 + draft.between(-8, 8)
        draft.add("leaves", green, tube(path, [0.04, 0.035, 0.03, 0.01], 4).turned("y", turn))
        for k in range(5):
            t = 0.25 + 0.14 * k
            at = np.array(
                [
                    0,
                    float(np.interp(t, (0, 0.33, 0.67, 1), path[:, 1])),
                    float(np.interp(t, (0, 0.33, 0.67, 1), path[:, 2])),
                ]
            )
            for side in (-1, 1):
                leaf = (
                    ball(0.34 - 0.05 * k, 0.05, 0.12, 5, 4).at(side * (0.17 - 0.025 * k), 0, 0).turned("y", -side * 30)
                )
                draft.add("leaves", green, leaf.at(*at).turned("y", turn))


def _bamboo(draft: Draft, green: RGB) -> None:
    number = draft.count(2, 4)
    for i in range(number):
        high, x, z = draft.between(1.4, 2.2), 0.24 * np.sin(2.3 * i), 0.24 * np.cos(2.3 * i)
        draft.add("stem", green, cylinder(0.075, high, 7).at(x, high / 2, z))
        rings = int(high / 0.35)
        for k in range(rings):
            draft.add("stem", green, cylinder(0.09, 0.05, 7).at(x, (k + 0.6) * high / rings, z))
        for k in range(4):
            blade = leaf_blade(0.45, 0.12, 0.7).turned("y", 90 * k + 30 * i).at(x, high * (0.55 + 0.13 * k), z)
            draft.add("leaves", draft.pick(LEAF[:3]), blade)
    draft.nouns = ["bamboo plant", "bamboo plant"]


def _lily(draft: Draft, green: RGB) -> None:
    angles = np.radians(np.linspace(15, 345, 16))
    outline = np.concatenate([[(0.0, 0.0)], np.stack([np.cos(angles), np.sin(angles)], axis=1)])
    draft.add("leaf", green, extrude(outline, 0.08).turned("x", -90))
    if draft.chance(0.5):
        petal = draft.tint(((236, 170, 196), WHITE, (240, 204, 70)))
        for i in range(8):
            leaf = ball(0.16, 0.1, 0.4, 6, 4).turned("x", -35).at(0, 0.14, 0.2).turned("y", 45 * i)
            draft.add("flower", petal, leaf.at(-0.3, 0, 0.1))
        draft.features.append("with a flower")


def _hay(draft: Draft, _green: RGB) -> None:
    straw = draft.tint(((226, 190, 90), (214, 176, 80), (204, 170, 96)))
    rope = draft.other(((150, 102, 64), (176, 120, 66)), straw)
    if draft.chance(0.5):
        draft.add("hay", straw, cylinder(0.6, 0.9, 14).turned("z", 90).at(y=0.6))
        for x in (-0.25, 0.25):
            draft.add("rope", rope, cylinder(0.615, 0.06, 14).turned("z", 90).at(x, 0.6, 0))
        draft.adjectives.append("round")
    else:
        draft.add("hay", straw, box(1.3, 0.6, 0.7).at(y=0.3))
        for x in (-0.34, 0.34):
            draft.add("rope", rope, box(0.07, 0.625, 0.725).at(x, 0.3, 0))


def _wheat(draft: Draft, _green: RGB) -> None:
    straw = draft.tint(((226, 190, 90), (214, 170, 70)))
    number = draft.count(6, 10)
    for i in range(number):
        lean, turn = draft.between(4, 18), 137.5 * i
        high = draft.between(0.8, 1.1)
        ear = lathe([(0.0, 0.0), (0.07, 0.06), (0.08, 0.22), (0.0, 0.42)], 5).at(y=high)
        for part, solid in (("stem", cylinder(0.022, high, 5).at(y=high / 2)), ("ear", ear)):
            draft.add(
                part, straw, solid.turned("x", lean).turned("y", turn).at(0.08 * np.sin(turn), 0, 0.08 * np.cos(turn))
            )
    draft.nouns = ["wheat", "bundle of wheat"]


def _cattail(draft: Draft, green: RGB) -> None:
    for i in range(draft.count(3, 5)):
        high, x, z = draft.between(1.0, 1.5), 0.2 * np.sin(2.4 * i), 0.2 * np.cos(2.4 * i)
        draft.add("stem", green, cylinder(0.03, high, 5).at(x, high / 2, z))
        draft.add("head", (110, 70, 44), cylinder(0.075, 0.34, 7).at(x, high, z))
        blade = lathe([(0.06, 0.0), (0.05, 0.5), (0.0, 1.0)], 4).scaled(1, 1, 0.4).bent(draft.between(10, 35))
        draft.add("leaves", green, blade.turned("y", 137 * i).at(x * 0.6, 0, z * 0.6))
