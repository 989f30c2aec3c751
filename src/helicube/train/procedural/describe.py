"""Captions of a draft, true of its measured colours, counts and proportions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from helicube.train.color_names import color_name
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.solid import Floats
from helicube.train.words import with_article

__all__ = ["color_shares", "describe"]

# A second colour is named from this share of the surface on, as in the catalogue.
_SECOND_SHARE = 0.15
_SIZES = {"tall", "short", "long", "low", "wide", "narrow", "small", "flat", "deep", "shallow"}


def color_shares(colors: Sequence[tuple[int, int, int]], areas: Floats) -> list[tuple[str, float]]:
    """Colour names with their share of the total area, largest first; colors and areas are one per face or piece."""
    totals: dict[str, float] = {}
    for color, area in zip(colors, areas, strict=True):
        name = color_name(color)
        totals[name] = totals.get(name, 0.0) + float(area)
    whole = sum(totals.values())
    return sorted(((name, area / whole) for name, area in totals.items()), key=lambda item: -item[1])


def describe(draft: Draft, shares: Sequence[tuple[str, float]]) -> tuple[str, ...]:
    """Three to six captions, the plain noun first."""
    rng = draft.rng
    noun = draft.nouns[0]
    plain = noun if rng.random() < 0.25 else with_article(noun)
    named = [name for name, share in shares if share >= _SECOND_SHARE] or [shares[0][0]]
    color = named[0] if draft.name_colors else ""
    both = f"{named[0]} and {named[1]}" if draft.name_colors and len(named) > 1 else ""
    # English puts size before shape: "a tall round tower".
    size = " ".join(sorted(draft.adjectives, key=lambda word: word not in _SIZES)[:2])
    feature = str(rng.choice(draft.features)) if draft.features else ""
    options = [
        ((size, color), noun, ""),
        ((both,), noun, ""),
        ((draft.material,), noun, ""),
        ((), noun, feature),
        ((color,), noun, feature),
        ((size, color, draft.material), noun, feature),
        ((size if rng.random() < 0.5 else color,), draft.nouns[-1], ""),
        ((color, draft.material), noun, ""),
    ]
    captions = [plain, _phrase((color,), noun, "")]
    captions += [_phrase(*options[i]) for i in rng.permutation(len(options))]
    unique = list(dict.fromkeys(captions))[: 4 + int(rng.integers(3))]
    spare = (noun, with_article(noun), f"a 3d model of {with_article(noun)}")
    unique += [caption for caption in spare if caption not in unique][: max(0, 3 - len(unique))]
    return tuple(unique)


def _phrase(adjectives: Sequence[str], noun: str, feature: str) -> str:
    words = " ".join(part for part in (*adjectives, noun, feature) if part)
    return with_article(words)


def face_areas(vertices: Floats, faces: np.ndarray) -> Floats:
    """(F,) areas of triangles."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    areas: Floats = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    return areas
