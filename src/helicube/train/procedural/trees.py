"""Trees, bushes and other plants with trunks or stems."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BARK, LEAF, RGB, WHITE
from helicube.train.procedural.primitives import arc, ball, bevel_box, blob, cone, cylinder, icosphere, link
from helicube.train.procedural.solid import Floats, Solid
from helicube.train.procedural.sweep import lathe, loft, tube

__all__ = ["bush", "cactus", "dead_tree", "palm_tree", "pine_tree", "tree"]

_AUTUMN: tuple[RGB, ...] = ((222, 130, 44), (206, 92, 40), (232, 180, 60), (176, 58, 44))
_BLOSSOM: tuple[RGB, ...] = ((236, 170, 190), (230, 140, 172))


def _crown_color(draft: Draft) -> RGB:
    kind = draft.rng.random()
    if kind < 0.78:
        return draft.tint(LEAF)
    if kind < 0.94:
        draft.adjectives.append("autumn")
        return draft.tint(_AUTUMN)
    return draft.tint(_BLOSSOM)


def _trunk(draft: Draft, height: float, thick: float) -> Solid:
    """A slightly bent round trunk that is wider at its foot."""
    y = np.linspace(0, 1, 4)
    sway = draft.between(-0.06, 0.06) * height
    path = np.stack([sway * y**2, height * y, np.zeros(4)], axis=1)
    return tube(path, [thick * 1.3, thick * 0.95, thick * 0.85, thick * 0.75], 7)


def tree(draft: Draft) -> None:
    """Broad-leaved trees with one round crown, several lumps, an egg, a block or tiers."""
    draft.call("tree")
    leaf, bark = _crown_color(draft), draft.tint(BARK)
    stem = draft.proportion(0.5, 1.3, ("short", "tall"))
    wide = draft.between(0.75, 1.3)
    thick = draft.between(0.06, 0.12)
    draft.add("trunk", bark, _trunk(draft, stem + 0.25, thick))
    style = draft.pick(("round", "lumps", "lumps", "egg", "block", "disks"))
    if style == "round":
        crown = blob(draft.rng, wide, wide * draft.between(0.8, 1.1), wide, rough=0.1, level=1)
        draft.add("leaves", leaf, crown.at(y=stem + wide * 0.4))
        draft.adjectives.append("round")
    elif style == "lumps":
        _lumps(draft, leaf, stem, wide)
    elif style == "egg":
        high = wide * draft.between(1.2, 1.8)
        shape = ((0, 0), (0.36, 0.08), (0.5, 0.32), (0.4, 0.62), (0.2, 0.88), (0, 1))
        profile = [(r * wide, y * high) for r, y in shape]
        draft.add("leaves", leaf, lathe(profile, draft.pick((6, 8, 10))).at(y=stem * 0.8))
    elif style == "block":
        draft.adjectives.append("blocky")
        draft.add("leaves", leaf, box_crown(wide, 0.9).at(y=stem + wide * 0.4))
        for _ in range(draft.count(1, 3)):
            x, z = draft.between(-0.4, 0.4) * wide, draft.between(-0.4, 0.4) * wide
            draft.add("leaves", leaf, box_crown(wide * 0.55, 0.8).at(x, stem + wide * draft.between(0.3, 0.8), z))
    else:
        _disks(draft, leaf, stem, wide)


def box_crown(wide: float, flat: float) -> Solid:
    return bevel_box(wide, wide * flat, wide, wide * 0.08)


def _lumps(draft: Draft, leaf: RGB, stem: float, wide: float) -> None:
    """A crown of several blobs about one in the middle, with branches into them."""
    middle = blob(draft.rng, wide * 0.85, wide * 0.75, wide * 0.85, rough=0.1)
    draft.add("leaves", leaf, middle.at(y=stem + wide * 0.45))
    number = draft.count(2, 5)
    start = draft.between(0, 2 * np.pi)
    for i in range(number):
        angle = start + 2 * np.pi * i / number
        x, z = wide * 0.38 * float(np.sin(angle)), wide * 0.38 * float(np.cos(angle))
        size = wide * draft.between(0.45, 0.65)
        y = stem + wide * draft.between(0.1, 0.5)
        draft.add("leaves", leaf, blob(draft.rng, size, size * 0.85, size, rough=0.1).at(x, y, z))


def _disks(draft: Draft, leaf: RGB, stem: float, wide: float) -> None:
    """Flat clouds of leaves one over another, as on acacias."""
    number = draft.count(2, 3)
    draft.add("trunk", draft.pieces[0].color, link((0, stem, 0), (0, stem + 0.3 * (number - 1), 0), 0.05, 6))
    for i in range(number):
        size = wide * (1 - 0.22 * i)
        x, z = draft.between(-0.15, 0.15) * (i > 0), draft.between(-0.15, 0.15)
        draft.add("leaves", leaf, icosphere(size, 0.3, size).at(x, stem + 0.2 + 0.3 * i, z))


def pine_tree(draft: Draft) -> None:
    """Conifers of stacked cones; some with snow, some dressed for Christmas."""
    dressed = draft.chance(0.1)
    name = "christmas tree" if dressed else "pine tree"
    draft.call(name, *(("pine tree",) if dressed else ()), subclass=name)
    leaf = draft.tint(LEAF[1:])
    draft.add("trunk", draft.tint(BARK), cylinder(0.09, 0.5, 7, top=0.07).at(y=0.25))
    tiers = draft.count(2, 5)
    high = draft.proportion(1.1, 2.2, ("short", "tall"))
    wide = draft.between(0.38, 0.56)
    sides = draft.pick((6, 7, 8, 10))
    each = high / (0.55 * (tiers - 1) + 1)
    snow = not dressed and draft.chance(0.15)
    for i in range(tiers):
        radius = wide * (1 - 0.62 * i / tiers)
        y = 0.35 + 0.55 * each * i + each / 2
        turn = draft.between(0, 60)
        draft.add("leaves", leaf, cone(radius, each, sides).turned("y", turn).at(y=y))
        if snow:
            cap = cone(radius * 0.62, each * 0.58, sides).turned("y", turn).scaled(1.08, 1.08, 1.08)
            draft.add("snow", WHITE, cap.at(y=y + each * 0.25))
    if snow:
        draft.adjectives.append("snowy")
    if dressed:
        _dress(draft, wide, high)


def _dress(draft: Draft, wide: float, high: float) -> None:
    """Baubles on the cones and a star on the tip."""
    bauble = draft.tint(((204, 48, 44), (240, 196, 64), (54, 104, 200)))
    for i in range(draft.count(8, 14)):
        share, angle = draft.between(0.1, 0.75), 2.4 * i
        radius = wide * (1 - share) * 0.8
        at = (radius * float(np.sin(angle)), 0.4 + share * high, radius * float(np.cos(angle)))
        draft.add("bauble", bauble, icosphere(0.09, 0.09, 0.09, 0).at(*at))
    draft.add("star", (240, 196, 64), icosphere(0.16, 0.2, 0.08, 0).at(y=0.4 + high))
    draft.features.append("with a star on top")


def palm_tree(draft: Draft) -> None:
    """A bent trunk and drooping fronds, perhaps with coconuts."""
    draft.call("palm tree")
    leaf, bark = draft.tint(LEAF), draft.tint(BARK)
    high = draft.proportion(1.0, 2.0, ("short", "tall"))
    lean = draft.between(-0.45, 0.45)
    y = np.linspace(0, 1, 7)
    path = np.stack([lean * y**2, high * y, np.zeros(7)], axis=1)
    draft.add("trunk", bark, tube(path, list(np.linspace(0.1, 0.055, 7)), 7))
    number = draft.count(5, 9)
    for i in range(number):
        frond = _frond(draft.between(0.65, 0.95), draft.between(0.35, 0.6))
        draft.add("leaves", leaf, frond.turned("y", 360 * i / number + draft.between(-8, 8)).at(lean, high, 0))
    nuts = draft.count(0, 4)
    for i in range(nuts):
        angle = 2 * np.pi * i / nuts
        at = (lean + 0.1 * float(np.sin(angle)), high - 0.08, 0.1 * float(np.cos(angle)))
        draft.add("coconut", (104, 70, 44), icosphere(0.14, 0.14, 0.14, 1).at(*at))
    if nuts > 1:
        draft.features.append("with coconuts")


def _frond(length: float, droop: float) -> Solid:
    """One leaf from the origin along +z that rises and then droops; a folded blade with a ridge."""
    t = np.linspace(0, 1, 6)
    z, y = length * np.sin(t * 1.25) / np.sin(1.25), 0.28 * length * np.sin(t * np.pi * 0.8) - droop * length * t**3
    half = 0.13 * length * np.array([0.35, 0.85, 1.0, 0.85, 0.55, 0.12])
    rings = np.empty((6, 4, 3))
    for k, (sx, dy) in enumerate(((1, -0.05), (0, 0.035), (-1, -0.05), (0, -0.02))):
        rings[:, k] = np.stack([sx * half, y + dy * length * half / half.max(), z], axis=1)
    return loft(rings)


def dead_tree(draft: Draft) -> None:
    """A leafless trunk that forks twice."""
    draft.call("dead tree")
    bark = draft.tint((*BARK, (96, 92, 90), (70, 62, 58)))
    high = draft.proportion(0.8, 1.5, ("short", "tall"))
    thick = draft.between(0.09, 0.15)
    trunk = np.array([[0, 0, 0], [draft.between(-0.08, 0.08), high * 0.5, 0], [draft.between(-0.1, 0.1), high, 0]])
    draft.add("trunk", bark, tube(trunk, [thick * 1.25, thick * 0.85, thick * 0.55], 7))
    number = draft.count(3, 5)
    for i in range(number):
        angle = 2 * np.pi * i / number + draft.between(-0.4, 0.4)
        start = trunk[1] + (trunk[2] - trunk[1]) * draft.between(0.1, 0.95)
        _branch(draft, bark, start, angle, draft.between(0.4, 0.7), thick * 0.5)


def _branch(draft: Draft, bark: RGB, start: Floats, angle: float, length: float, *rest: float) -> None:
    """A kinked branch with one or two twigs; `rest` holds its thickness."""
    thick = rest[0]
    out = np.array([np.sin(angle), 0, np.cos(angle)])
    bend = start + out * length * 0.5 + np.array([0, length * 0.25, 0])
    tip = bend + out * length * draft.between(0.1, 0.35) + np.array([0, length * 0.65, 0])
    draft.add("branch", bark, tube([start, bend, tip], [thick, thick * 0.7, thick * 0.25], 5))
    for _ in range(draft.count(1, 2)):
        turn = angle + draft.between(-1.2, 1.2)
        side = np.array([np.sin(turn), draft.between(0.3, 1.0), np.cos(turn)])
        base = bend + (tip - bend) * draft.between(0.0, 0.4)
        draft.add("branch", bark, link(base, base + side * length * 0.4, thick * 0.5, 5, top=thick * 0.18))


def bush(draft: Draft) -> None:
    """Low round shrubs, some with berries or flowers."""
    leaf = _crown_color(draft)
    berries = draft.chance(0.3)
    draft.call(*(("berry bush", "bush") if berries else ("bush",)), subclass="berry bush" if berries else "bush")
    number = draft.count(1, 5)
    flat = draft.proportion(0.6, 1.1, ("low", "tall"))
    centers = []
    for i in range(number):
        angle = 2 * np.pi * i / number
        spread = 0.0 if number == 1 else draft.between(0.25, 0.4)
        size = draft.between(0.65, 0.9)
        x, z = spread * float(np.sin(angle)), spread * float(np.cos(angle))
        draft.add("leaves", leaf, blob(draft.rng, size, size * flat, size, rough=0.14).at(x, size * flat * 0.42, z))
        centers.append((x, size * flat * 0.42, z, size * 0.5, flat))
    if berries:
        color = draft.other(((190, 40, 44), (70, 80, 180), (150, 60, 160)), leaf)
        for i in range(draft.count(10, 18)):
            x, y, z, r, f = centers[i % number]
            a, up = 2.4 * i, draft.between(-0.1, 0.85)
            out = r * float(np.sqrt(1 - up * up)) * 1.0
            at = (x + out * float(np.sin(a)), y + r * f * up, z + out * float(np.cos(a)))
            draft.add("berry", color, icosphere(0.1, 0.1, 0.1, 0).at(*at))
        draft.having_colored("berries", color)


def cactus(draft: Draft) -> None:
    """Saguaros with arms and round barrel cacti, some in flower."""
    draft.call("cactus")
    green = draft.tint(LEAF[:6])
    sides = draft.pick((6, 8, 10))
    flower = draft.tint(((226, 90, 140), (240, 200, 70), (204, 48, 44)))
    if draft.chance(0.25):
        size = draft.between(0.7, 0.9)
        draft.adjectives.append("round")
        draft.add("body", green, ball(size, size * 0.9, size, sides, 6).at(y=size * 0.43))
        top = size * 0.86
    else:
        top = draft.proportion(0.9, 1.7, ("short", "tall"))
        thick = draft.between(0.14, 0.2)
        draft.add("body", green, _finger(thick, top, sides))
        arms = draft.count(0, 3)
        for i in range(arms):
            _arm(draft, green, (thick, top, sides), 90 + 180 * i + (90 if i == 2 else 0))
        if arms:
            draft.having(arms, "arm")
    if draft.chance(0.35):
        for i in range(6):
            petal = ball(0.07, 0.05, 0.16, 6, 4).at(z=0.07).turned("x", -25).turned("y", 60 * i)
            draft.add("flower", flower, petal.at(y=top))
        draft.features.append("with a flower")


def _finger(thick: float, length: float, sides: int) -> Solid:
    """An upright stem on y = 0 with a round tip."""
    shape = ((thick * 0.9, 0.0), (thick, length * 0.3), (thick, length - thick), (thick * 0.7, length - thick * 0.3))
    return lathe([*shape, (0.0, length)], sides)


def _arm(draft: Draft, color: RGB, stem: tuple[float, float, int], turn: float) -> None:
    """An arm that leaves the stem sideways and turns up."""
    thick, top, sides = stem
    y, out = top * draft.between(0.3, 0.55), thick * draft.between(2.2, 2.8)
    bend = arc(out * 0.4, -90, 0, 3) + np.array([out * 0.6, y + out * 0.4, 0])
    rise = draft.between(0.25, 0.5) * top
    path = np.concatenate([[[0, y, 0]], bend, [[out, y + out * 0.4 + rise, 0]]])
    arm = tube(path, thick * 0.72, sides).turned("y", turn)
    draft.add("arm", color, arm)
    angle = np.radians(turn)
    at = (out * float(np.cos(angle)), y + out * 0.4 + rise, -out * float(np.sin(angle)))
    draft.add("arm", color, ball(thick * 1.44, thick * 1.2, thick * 1.44, sides, 4).at(*at))
