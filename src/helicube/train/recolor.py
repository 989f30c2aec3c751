"""Recoloured copies of training objects whose captions stay true."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from helicube.train.color_names import COLOR_NAMES, color_name
from helicube.train.color_words import color_words, replace_colors
from helicube.train.words import fix_articles

__all__ = ["PAINTED_CLASSES", "recolor"]

# Classes whose things come in any paint, cloth or plastic, so that a recoloured one is still a plausible one.
PAINTED_CLASSES: frozenset[str] = frozenset(
    (
        "airplane", "armchair", "astronaut", "bag", "barrel", "bed", "bench", "boat", "book", "bookcase", "bottle",
        "bowl", "box", "building", "cabinet", "can", "candle", "cannon", "car", "chair", "clothing", "computer",
        "container", "crate", "crystal", "cup", "desk", "door", "farm", "fence", "flag", "flower", "fridge", "gadget",
        "house", "kitchen appliance", "lamp", "machine", "market stall", "mill", "monitor", "monster", "mushroom",
        "nightstand", "ornament", "oven", "pillow", "pistol", "planet", "plate", "pot", "potion", "potted plant",
        "race car", "rifle", "robot", "rug", "shelf", "shield", "ship", "sign", "sink", "sofa", "space base",
        "spaceship", "stairs", "stool", "street furniture", "table", "tent", "toilet", "tool", "tower", "toy",
        "tractor", "train", "train car", "trash can", "treasure chest", "truck", "tv", "vehicle", "washing machine",
        "weapon", "wheel", "window",
    )
)  # fmt: skip

# Words that say a colour without naming it.
_IMPLIED = frozenset(
    (
        "gold", "golden", "silver", "bronze", "copper", "brass", "snowy", "snow", "mossy", "grassy", "leafy", "autumn",
        "ice", "icy", "lava", "fire", "burning", "police", "ambulance", "rainbow", "zebra", "colorful", "hologram",
        "rusty", "iron", "steel", "cherry", "lemon", "emerald", "ruby", "taxi", "soccer", "water", "grass", "moon",
    )
)  # fmt: skip

# "red-roofed".
_COMPOUND = re.compile(rf"\b(?:{'|'.join(COLOR_NAMES)})-\w")

# Typical (hue in degrees, saturation, value) of the colours to paint with.
_PAINTS: dict[str, tuple[float, float, float]] = {
    "red": (2, 0.78, 0.8), "orange": (27, 0.8, 0.92), "yellow": (47, 0.74, 0.94), "green": (130, 0.6, 0.63),
    "dark green": (140, 0.58, 0.34), "teal": (178, 0.72, 0.62), "light blue": (206, 0.38, 0.93),
    "blue": (219, 0.7, 0.78), "dark blue": (222, 0.66, 0.36), "purple": (275, 0.58, 0.7), "pink": (338, 0.38, 0.93),
    "white": (60, 0.02, 0.95),
    "black": (0, 0.0, 0.15), "gray": (210, 0.04, 0.55), "brown": (26, 0.58, 0.5), "dark red": (356, 0.72, 0.42),
    "beige": (38, 0.28, 0.86), "light green": (100, 0.38, 0.84), "light brown": (29, 0.52, 0.8),
}  # fmt: skip

# Grays that shade into each other.
_GRAYS: tuple[frozenset[str], ...] = (
    frozenset({"white", "light gray"}),
    frozenset({"gray", "light gray", "dark gray"}),
)
# Chromatic colours whose hues are nearer than this, in turns, are tones of one material and are repainted together.
_SAME_HUE = 0.045
# So are colours nearer than this in sRGB: a speckled texture is gray here and brown there.
_NEAR = 0.16
# How likely a colour is chosen for repainting; gray and black are mostly metal, glass and tires.
_NEUTRAL_CHANCE = {"black": 0.15, "dark gray": 0.15, "gray": 0.3, "light gray": 0.4, "white": 0.6}


def recolor(
    face_colors: NDArray[np.uint8],
    captions: Sequence[str],
    rng: np.random.Generator,
    captions_name_colors: bool,
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Repaint one to three of the dominant colours and rewrite the colour words of the captions.

    Faces whose colours shade into each other move together and keep their differences in value and saturation.

    Args:
        face_colors: (F, 3) sRGB.
        captions: descriptions of the object.
        rng: source of every choice; equal states give equal results.
        captions_name_colors: False leaves the captions as they are.

    Returns:
        New (F, 3) colours and captions; both unchanged where a caption names a colour that no face has, or implies one
        ("golden", "snowy"), since a rewritten caption might then be false.
    """
    palette, inverse = np.unique(face_colors, axis=0, return_inverse=True)
    counts = np.bincount(inverse.reshape(-1))
    names = [color_name(color) for color in palette]
    shares: dict[str, float] = {}
    for name, count in zip(names, counts, strict=True):
        shares[name] = shares.get(name, 0.0) + float(count) / len(face_colors)
    if _implied(captions) or (captions_name_colors and not _said(captions) <= set(shares)):
        return face_colors, tuple(captions)
    painted = palette.copy()
    taken = {name for name, share in shares.items() if share >= 0.02}
    for group in _groups(shares, _means(names, palette, counts), rng):
        target = _target(taken, group, rng)
        taken.add(target)
        rows = [i for i, name in enumerate(names) if name in group]
        painted[rows] = _paint(palette[rows], counts[rows], target)
    fresh = painted[inverse.reshape(-1)]
    if not captions_name_colors:
        return fresh, tuple(captions)
    renamed = _renamed(names, painted, counts)
    return fresh, tuple(dict.fromkeys(fix_articles(replace_colors(text, renamed.__getitem__)) for text in captions))


def _implied(captions: Sequence[str]) -> bool:
    text = " ".join(captions).lower()
    return bool(_COMPOUND.search(text)) or any(word in _IMPLIED for word in text.replace(",", " ").split())


def _said(captions: Sequence[str]) -> set[str]:
    return {name for caption in captions for name in color_words(caption)}


def _groups(shares: dict[str, float], means: dict[str, list[float]], rng: np.random.Generator) -> list[set[str]]:
    """One to three disjoint sets of colour names to repaint, the commonest first."""
    wanted = int(rng.integers(1, 4))
    groups: list[set[str]] = []
    used: set[str] = set()
    for name in sorted(shares, key=lambda key: (-shares[key], key)):
        chosen = rng.random() < _NEUTRAL_CHANCE.get(name, 0.95)
        if name in used or shares[name] < 0.05 or not chosen or len(groups) == wanted:
            continue
        group = {other for other in means if _shade(name, other, means)} - used
        used |= group
        groups.append(group)
    return groups


def _means(names: list[str], palette: NDArray[np.uint8], counts: NDArray[np.int64]) -> dict[str, list[float]]:
    """Mean sRGB in 0 … 1 of the faces of every name, in the order of first appearance."""
    means: dict[str, list[float]] = {}
    for name in dict.fromkeys(names):
        rows = [i for i, other in enumerate(names) if other == name]
        means[name] = np.average(palette[rows] / 255.0, axis=0, weights=counts[rows]).tolist()
    return means


def _shade(name: str, other: str, means: dict[str, list[float]]) -> bool:
    """Whether two colours are tones of one material: near in sRGB, of one hue, or grays next to each other."""
    if name == other or float(np.linalg.norm(np.subtract(means[name], means[other]))) < _NEAR:
        return True
    if name in _NEUTRAL_CHANCE or other in _NEUTRAL_CHANCE:
        return any(name in grays and other in grays for grays in _GRAYS)
    hue, other_hue = (colorsys.rgb_to_hsv(*means[key])[0] for key in (name, other))
    return abs((hue - other_hue + 0.5) % 1 - 0.5) < _SAME_HUE


def _target(taken: set[str], group: set[str], rng: np.random.Generator) -> str:
    """A paint that the object does not show yet."""
    free = [name for name in _PAINTS if name not in taken and name not in group] or list(_PAINTS)
    return free[int(rng.integers(len(free)))]


def _paint(colors: NDArray[np.uint8], counts: NDArray[np.int64], target: str) -> NDArray[np.uint8]:
    """(K, 3) colours moved so that their commonest becomes the paint; the others keep their distance from it."""
    hsv = np.array([colorsys.rgb_to_hsv(*(channel / 255 for channel in color)) for color in colors.tolist()])
    h0, s0, v0 = hsv[int(np.argmax(counts))]
    hue, saturation, value = _PAINTS[target]
    near = ((hsv[:, 0] - h0 + 0.5) % 1.0 - 0.5) * 0.25
    h = (hue / 360 + near) % 1.0
    s = np.clip(saturation + 0.5 * (hsv[:, 1] - s0) * saturation, 0, 1)
    v = np.clip(value * np.clip(hsv[:, 2] / max(v0, 0.05), 0.5, 1.6), 0.03, 1)
    rgb = [colorsys.hsv_to_rgb(*row) for row in np.stack([h, s, v], axis=1).tolist()]
    return np.round(np.array(rgb) * 255).astype(np.uint8)


def _renamed(names: list[str], painted: NDArray[np.uint8], counts: NDArray[np.int64]) -> dict[str, str]:
    """Old colour name -> name that most of its faces have now."""
    votes: dict[str, dict[str, int]] = {name: {} for name in COLOR_NAMES}
    for name, color, count in zip(names, painted, counts, strict=True):
        now = color_name(color)
        votes[name][now] = votes[name].get(now, 0) + int(count)
    return {name: max(fresh, key=lambda key: fresh[key]) if fresh else name for name, fresh in votes.items()}
