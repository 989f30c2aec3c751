"""Dogs, horses and other animals; their heads at +Z."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from helicube.train.procedural import critters, swimmers
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.primitives import ball, bevel_box, blob, cone, icosphere, link
from helicube.train.procedural.quadrupeds import (
    BEAR,
    CAT,
    COW,
    DEER,
    DOG,
    HORSE,
    LLAMA,
    PIG,
    RAT,
    SHEEP,
    Build,
    add_quadruped,
)

__all__ = ["animal", "dog", "horse"]

_FUR: tuple[RGB, ...] = (
    (150, 102, 64), (118, 76, 46), (196, 144, 92), (84, 56, 38), (222, 190, 146), (238, 236, 230), (52, 48, 46),
    (150, 150, 152), (206, 130, 66), (100, 96, 94),
)  # fmt: skip


def _coat(draft: Draft, options: tuple[RGB, ...] = _FUR) -> tuple[RGB, RGB]:
    fur = draft.tint(options)
    return fur, fur if draft.chance(0.5) else draft.other(_FUR, fur)


def dog(draft: Draft) -> None:
    """Dogs and foxes."""
    if draft.chance(0.25):
        draft.call("fox", subclass="fox")
        add_quadruped(draft, DOG, (draft.tint(((214, 112, 44), (206, 104, 52), (150, 150, 152))), (238, 236, 230)))
        return
    draft.call(*draft.pick((("dog",), ("dog",), ("puppy", "dog"))), subclass="dog")
    floppy = draft.chance(0.5)
    build = replace(
        DOG,
        leg=draft.between(0.25, 0.6),
        muzzle=draft.between(0.1, 0.26),
        ears="flop" if floppy else "point",
        tail=draft.pick(("brush", "curl", "thin")),
    )
    add_quadruped(draft, build, _coat(draft))


def horse(draft: Draft) -> None:
    """Horses, donkeys and unicorns with manes."""
    kind = draft.pick(("horse", "horse", "horse", "donkey", "unicorn", "pony"))
    draft.call(kind, *(() if kind in {"horse", "donkey"} else ("horse",)), subclass="horse")
    colors = _coat(draft) if kind != "unicorn" else ((238, 236, 230), (238, 236, 230))
    y, z = add_quadruped(draft, HORSE, colors)
    mane = draft.other((*_FUR, (236, 140, 176), (142, 88, 190)) if kind == "unicorn" else _FUR, colors[0])
    neck = next(piece.solid.vertices for piece in draft.pieces if piece.part == "neck")
    low = float(neck[:, 1].min())
    for i in range(4):
        t = (i + 0.5) / 4
        at = (0.0, low + 0.14 + (y - low) * t, float(neck[:, 2].min()) + 0.06 + (z - float(neck[:, 2].min()) - 0.1) * t)
        draft.add("mane", mane, ball(0.09, 0.2, 0.2, 6, 4).at(*at))
    draft.having_one_colored("mane", mane)
    if kind == "unicorn":
        draft.add("horn", (240, 196, 64), cone(0.05, 0.36, 6).turned("x", 28).at(0, y + 0.24, z + 0.16))
        draft.features.append("with a horn")
    elif draft.chance(0.2):
        saddle = draft.other(((118, 76, 46), (150, 40, 38), (52, 78, 132)), colors[0])
        body = draft.pieces[0].solid.vertices
        draft.add("saddle", saddle, bevel_box(0.3, 0.1, 0.36, 0.03).at(0, float(body[:, 1].max()), -0.02))
        draft.features.append("with a saddle")


_CREATURES: Mapping[str, Callable[[Draft], None]] = MappingProxyType(
    {
        "frog": critters.frog,
        "snake": critters.snake,
        "turtle": critters.turtle,
        "rabbit": critters.rabbit,
        "spider": critters.spider,
        "elephant": critters.elephant,
        "crab": swimmers.crab,
    }
)
_BUILDS: Mapping[str, Build] = MappingProxyType(
    {"cow": COW, "cat": CAT, "pig": PIG, "sheep": SHEEP, "deer": DEER, "llama": LLAMA, "bear": BEAR, "rat": RAT}
)
_COATS: Mapping[str, tuple[RGB, ...]] = MappingProxyType(
    {
        "pig": ((232, 160, 164), (226, 150, 150), (206, 140, 130)),
        "sheep": ((238, 236, 230), (222, 214, 200), (52, 48, 46)),
        "rat": ((150, 150, 152), (110, 108, 108), (118, 86, 62)),
        "deer": ((150, 102, 64), (176, 120, 76)),
        "bear": ((104, 70, 46), (52, 48, 46), (238, 236, 230), (150, 102, 64)),
    }
)
_MUZZLE: tuple[RGB, ...] = ((52, 48, 46), (222, 190, 146), (232, 206, 190))


def animal(draft: Draft) -> None:
    """Cows, cats, pigs, sheep, deer, llamas, bears, rats, elephants and smaller creatures."""
    kind = draft.pick(("cat", *_BUILDS, *_CREATURES))
    draft.call(kind, "animal", subclass=kind)
    draft.wobble = 0.06
    if kind in _CREATURES:
        _CREATURES[kind](draft)
        return
    fur, second = _coat(draft, _COATS.get(kind, _FUR))
    if kind in {"sheep", "cow"}:
        second = draft.other(_MUZZLE, fur)
    elif kind != "cat":
        second = fur
    head = add_quadruped(draft, _BUILDS[kind], (fur, second))
    {"sheep": _wool, "cow": _horns, "deer": _antlers, "bear": _round_ears, "rat": _round_ears}.get(kind, _plain)(
        draft, head
    )


def _plain(draft: Draft, head: tuple[float, float]) -> None:
    """Nothing more than the common body."""


def _wool(draft: Draft, _head: tuple[float, float]) -> None:
    for _ in range(7):
        at = (draft.between(-0.14, 0.14), 0.62 + draft.between(-0.05, 0.18), draft.between(-0.36, 0.32))
        draft.add("wool", draft.pieces[0].color, blob(draft.rng, 0.34, 0.32, 0.36, rough=0.08).at(*at))


def _horns(draft: Draft, head: tuple[float, float]) -> None:
    y, z = head
    for side in (-1, 1):
        horn = cone(0.045, 0.2, 6).turned("z", -50 * side).at(side * 0.17, y + 0.17, z - 0.02)
        draft.add("horn", (232, 222, 196), horn)
    draft.having(2, "horn")


def _antlers(draft: Draft, head: tuple[float, float]) -> None:
    y, z = head
    if draft.chance(0.4):
        return
    bone: RGB = (196, 160, 112)
    for side in (-1, 1):
        base = np.array([side * 0.06, y + 0.1, z])
        tip = base + np.array([side * 0.2, 0.4, -0.06])
        draft.add("antlers", bone, link(base, tip, 0.025, 5, top=0.015))
        for t in (0.4, 0.7):
            start = base + (tip - base) * t
            draft.add("antlers", bone, link(start, start + np.array([side * 0.02, 0.15, 0.14]), 0.02, 5, top=0.01))
    draft.features.append("with antlers")


def _round_ears(draft: Draft, head: tuple[float, float]) -> None:
    y, z = head
    for side in (-1, 1):
        draft.add("ears", draft.pieces[0].color, icosphere(0.15, 0.15, 0.08, 1).at(side * 0.12, y + 0.13, z - 0.02))
