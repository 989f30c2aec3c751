"""Books, keys, ornaments and bones."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, CLOTH, DARK_METAL, GOLD, METAL, PAINT, RGB, WHITE, WOOD
from helicube.train.procedural.primitives import arc, bevel_box, box, cylinder, frustum, icosphere, link, torus
from helicube.train.procedural.solid import Floats, Solid
from helicube.train.procedural.sweep import extrude, lathe, loft, tube

__all__ = ["bones", "book", "key", "ornament", "star_outline"]

_PAGE: RGB = (240, 232, 208)


def star_outline(points: int, outer: float, inner: float) -> Floats:
    """(2 * points, 2) outline of a star with one tip up."""
    angle = np.pi / 2 + np.arange(2 * points) * np.pi / points
    radius = np.where(np.arange(2 * points) % 2 == 0, outer, inner)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def book(draft: Draft) -> None:
    """Closed, open and stacked books, and scrolls."""
    kind = draft.pick(("closed", "closed", "open", "stack", "scroll"))
    cover = draft.tint((*CLOTH, *PAINT[:8]))
    draft.call("book")
    draft.wobble = 0.06
    {"closed": _single, "stack": _stack, "scroll": _scroll}.get(kind, _open)(draft, cover)


def _single(draft: Draft, cover: RGB) -> None:
    _closed(draft, cover, 0.0, 0.0)
    if draft.chance(0.5):
        badge = draft.other((*GOLD, WHITE, BLACK), cover)
        draft.add(
            "badge",
            badge,
            extrude(star_outline(5, 0.2, 0.1), 0.03)
            .turned("x", -90)
            .at(0.02, draft.pieces[0].solid.vertices[:, 1].max(), 0),
        )
        draft.features.append("with a star on the cover")
    if draft.chance(0.5):
        draft.pieces[:] = [type(p)(p.part, p.solid.turned("x", 90), p.color) for p in draft.pieces]


def _stack(draft: Draft, cover: RGB) -> None:
    number = draft.count(2, 5)
    y = 0.0
    for i in range(number):
        color = draft.tint((*CLOTH, *PAINT[:8])) if i else cover
        y += _closed(draft, color, y, draft.between(-25, 25))
    draft.nouns = [f"stack of {('two', 'three', 'four', 'five')[number - 2]} books", "stack of books"]


def _scroll(draft: Draft, _cover: RGB) -> None:
    draft.call("scroll", "book", subclass="scroll")
    paper = draft.tint((_PAGE, (222, 206, 160), (206, 180, 130)))
    draft.add("paper", paper, cylinder(0.16, 1.3, 10).turned("z", 90).at(y=0.16))
    for side in (-1, 1):
        draft.add(
            "rod",
            draft.tint(WOOD),
            cylinder(0.06, 0.22, 8).turned("z", 90).at(side * 0.74, 0.16),
            icosphere(0.17, 0.17, 0.17, 1).at(side * 0.88, 0.16, 0),
        )
    draft.add("seal", (190, 40, 44), cylinder(0.18, 0.3, 10).turned("z", 90).at(y=0.16))


def _open(draft: Draft, cover: RGB) -> None:
    draft.adjectives.append("open")
    for side in (-1, 1):
        page = frustum((0.62, -0.42, 0.42), (0.6, -0.42, 0.42), 0.03, 0.13).at(side * 0.31)
        draft.add("pages", _PAGE, page.turned("z", side * 8))
        draft.add("cover", cover, box(0.68, 0.05, 0.94).at(side * 0.34, 0.0, 0).turned("z", side * 8))
        for i in range(4):
            line = box(0.4, 0.012, 0.03).at(side * 0.32, 0.135, (i - 1.5) * 0.16).turned("z", side * 8)
            draft.add("text", (110, 100, 92), line)


def _closed(draft: Draft, cover: RGB, y: float, turn: float) -> float:
    """A lying book on height y; returns its thickness."""
    wide, deep, thick = draft.between(0.62, 0.8), draft.between(0.9, 1.05), draft.between(0.14, 0.26)
    boards = [box(wide, 0.035, deep).at(y=0.0175), box(wide, 0.035, deep).at(y=thick - 0.0175)]
    spine = box(0.05, thick, deep).at(-wide / 2 + 0.025, thick / 2, 0)
    pages = box(wide * 0.93, thick - 0.06, deep * 0.94).at(0.0, thick / 2, 0)
    draft.add("cover", cover, *[solid.turned("y", turn).at(y=y) for solid in (*boards, spine)])
    draft.add("pages", _PAGE, pages.turned("y", turn).at(y=y))
    return thick


def key(draft: Draft) -> None:
    """Keys with a ring or a trefoil bow, and padlocks."""
    metal = draft.tint((*GOLD, *GOLD, *METAL, *DARK_METAL))
    draft.material = "metal"
    draft.wobble = 0.08
    if draft.chance(0.15):
        draft.call("padlock", subclass="padlock")
        draft.add("body", metal, bevel_box(0.9, 0.8, 0.34, 0.05).at(y=0.4))
        steel = draft.other(METAL, metal)
        path = np.concatenate([[(0.28, 0.7, 0)], arc(0.28, 0, 180, 8) + np.array([0, 1.0, 0]), [(-0.28, 0.7, 0)]])
        draft.add("shackle", steel, tube(path, 0.08, 6))
        draft.add(
            "keyhole",
            BLACK,
            cylinder(0.1, 0.06, 10).turned("x", 90).at(0, 0.46, 0.16),
            box(0.08, 0.24, 0.06).at(0, 0.32, 0.16),
        )
        return
    draft.call("key")
    long = draft.proportion(1.0, 1.6, ("short", "long"))
    style = draft.pick(("ring", "trefoil", "square"))
    if style == "ring":
        draft.add("bow", metal, torus(0.3, 0.16, 14, 6).turned("x", 90))
    elif style == "trefoil":
        for i in range(3):
            draft.add(
                "bow", metal, torus(0.17, 0.12, 10, 5).turned("x", 90).at(0, 0.24, 0).turned("z", 120 * i + 60 - 60)
            )
    else:
        for side in (-1, 1):
            draft.add(
                "bow", metal, box(0.6, 0.14, 0.14).at(0, side * 0.24, 0), box(0.14, 0.6, 0.14).at(side * 0.24, 0, 0)
            )
    draft.add("shaft", metal, cylinder(0.075, long, 8).at(y=-0.25 - long / 2))
    draft.add("shaft", metal, cylinder(0.12, 0.1, 8).at(y=-0.4))
    teeth = draft.count(2, 3)
    for i in range(teeth):
        draft.add("bit", metal, box(draft.between(0.2, 0.34), 0.12, 0.1).at(0.14, -0.2 - long + 0.05 + 0.18 * i, 0))
    draft.features.append(f"with {('two', 'three')[teeth - 2]} teeth")


def ornament(draft: Draft) -> None:
    """Hearts, stars, snowflakes, baubles and snowmen."""
    kind = draft.pick(("heart", "heart", "star", "star", "snowflake", "bauble", "snowman"))
    draft.call(
        kind,
        *(("ornament",) if kind in {"bauble", "snowman"} else ()),
        subclass=kind if kind in {"heart", "star", "snowflake"} else "ornament",
    )
    draft.wobble = 0.06
    color = draft.tint((*PAINT, *GOLD))
    thick = draft.between(0.3, 0.55)
    makers = {"heart": _heart, "star": _star, "snowflake": _snowflake, "bauble": _bauble}
    if kind in makers:
        makers[kind](draft, color, thick)
    else:
        _snowman(draft)


def _heart(draft: Draft, _color: RGB, thick: float) -> None:
    color = draft.tint(((204, 40, 50), (172, 30, 44), (236, 110, 150), *PAINT[:3]))
    t = np.linspace(0, 2 * np.pi, 21)[:-1] + 0.01
    heart = (
        np.stack([16 * np.sin(t) ** 3, 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)], axis=1)
        / 17
    )
    draft.add("heart", color, _puffed(heart, thick))


def _star(draft: Draft, _color: RGB, thick: float) -> None:
    color = draft.tint((*GOLD, *GOLD, *PAINT))
    points = draft.pick((5, 5, 6))
    draft.add("star", color, _puffed(star_outline(points, 1.0, draft.between(0.45, 0.55)), thick))
    draft.having(points, "point")


def _snowflake(draft: Draft, _color: RGB, _thick: float) -> None:
    color = draft.tint((WHITE, (190, 220, 240), (148, 198, 236)))
    for i in range(3):
        draft.add("snowflake", color, box(0.14, 2.0, 0.16).turned("z", 60 * i))
    for i in range(6):
        for side in (-1, 1):
            twig = box(0.1, 0.42, 0.14).at(y=0.2).turned("z", side * 45).at(y=0.55)
            draft.add("snowflake", color, twig.turned("z", 60 * i))


def _bauble(draft: Draft, color: RGB, _thick: float) -> None:
    draft.add("ball", color, icosphere(1.0, 1.0, 1.0, 2))
    draft.add(
        "band",
        draft.other((WHITE, *GOLD, *PAINT), color),
        lathe([(0.5, -0.1), (0.515, 0.0), (0.5, 0.1)], 16).scaled(1.005, 1, 1.005),
    )
    draft.add("cap", GOLD[0], cylinder(0.14, 0.14, 10).at(y=0.54), torus(0.09, 0.04, 10, 5).turned("x", 90).at(y=0.66))


def _puffed(outline: Floats, thick: float) -> Solid:
    """A plate that swells to a point in the middle of both faces; the outline must be visible from there."""
    size = len(outline)
    rings = np.zeros((4, size, 3))
    rings[1:3, :, :2] = outline
    rings[:, :, 2] = np.array([-0.5, -0.15, 0.15, 0.5])[:, None] * thick
    return loft(rings)


def _snowman(draft: Draft) -> None:
    y = 0.0
    for size in (1.0, 0.74, 0.52):
        draft.add("body", WHITE, icosphere(size, size * 0.94, size, 2).at(y=y + size * 0.44))
        y += size * 0.76
    top = y + 0.08
    for side in (-1, 1):
        draft.add("eyes", BLACK, icosphere(0.08, 0.08, 0.06, 0).at(side * 0.1, top - 0.2, 0.24))
        draft.add("arm", (110, 76, 48), link((side * 0.3, 1.0, 0), (side * 0.85, 1.25, 0.05), 0.035, 5))
    draft.add("nose", (236, 130, 40), cylinder(0.06, 0.32, 6, top=0.0).turned("x", 90).at(0, top - 0.28, 0.4))
    scarf = draft.tint(CLOTH[:8])
    draft.add("scarf", scarf, torus(0.24, 0.14, 12, 5).at(y=1.28), box(0.14, 0.4, 0.08).at(0.14, 1.08, 0.32))
    draft.having_one_colored("scarf", scarf)
    if draft.chance(0.7):
        draft.add("hat", BLACK, cylinder(0.34, 0.05, 12).at(y=top), cylinder(0.22, 0.34, 12).at(y=top + 0.18))
        draft.features.append("with a hat")


def bones(draft: Draft) -> None:
    """Bones and skulls."""
    color = draft.tint(((236, 230, 214), (222, 208, 180), (206, 196, 170)))
    draft.wobble = 0.08
    if draft.chance(0.45):
        draft.call("bone", subclass="bone")
        for i in range(draft.pick((1, 1, 2))):
            turn = 65 * i
            parts = [cylinder(0.11, 1.3, 8).turned("z", 90)]
            parts += [icosphere(0.32, 0.3, 0.28, 1).at(sx * 0.68, sy * 0.13, 0) for sx in (-1, 1) for sy in (-1, 1)]
            draft.add("bone", color, *[part.turned("x", 90).turned("y", turn).at(y=0.15 + 0.2 * i) for part in parts])
        if len(draft.pieces) > 5:
            draft.nouns = ["pair of crossed bones", "pair of bones"]
        return
    draft.call("skull", subclass="skull")
    dark: RGB = (54, 46, 42)
    draft.add("skull", color, icosphere(1.0, 0.95, 1.15, 2).at(0, 0.75, 0))
    draft.add("skull", color, bevel_box(0.6, 0.42, 0.5, 0.08).at(0, 0.3, 0.3))
    for side in (-1, 1):
        draft.add("eye", dark, icosphere(0.28, 0.28, 0.2, 1).at(side * 0.22, 0.68, 0.47))
    draft.add("nose", dark, frustum((0.14, -0.05, 0.05), (0.02, -0.05, 0.05), 0.42, 0.56).at(z=0.54))
    for i in range(5):
        draft.add("teeth", WHITE, box(0.08, 0.13, 0.08).at((i - 2) * 0.1, 0.15, 0.54))
    if draft.chance(0.4):
        draft.add("jaw", color, bevel_box(0.5, 0.14, 0.46, 0.05).at(0, 0.0, 0.28))
