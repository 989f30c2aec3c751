"""Colour words in captions: finding them, and other words for the same colour."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from helicube.train.color_names import COLOR_NAMES

__all__ = ["COLOR_SYNONYMS", "color_words", "replace_colors"]

# Catalogue name -> words for a colour that it would name so. No word stands for two colours.
COLOR_SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "black": ("jet black", "pitch black", "ebony", "coal black"),
        "white": ("snow white", "ivory", "bright white", "pure white", "off-white"),
        "light gray": ("light grey", "silver gray", "pale gray", "silvery"),
        "gray": ("grey", "slate gray", "ash gray", "medium gray"),
        "dark gray": ("dark grey", "charcoal", "graphite", "gunmetal"),
        "brown": ("chestnut", "walnut brown", "umber", "medium brown"),
        "light brown": ("tan", "caramel", "sandy brown", "pale brown"),
        "dark brown": ("chocolate brown", "espresso brown", "deep brown", "coffee brown"),
        "beige": ("cream", "cream-colored", "sand-colored", "ecru", "off-white beige"),
        "red": ("crimson", "scarlet", "ruby red", "vermilion", "bright red", "blood red"),
        "dark red": ("maroon", "burgundy", "wine red", "deep red", "oxblood"),
        "pink": ("salmon pink", "hot pink", "fuchsia", "blush pink"),
        "orange": ("amber", "bright orange", "burnt orange", "deep orange"),
        "yellow": ("canary yellow", "golden yellow", "mustard yellow", "bright yellow"),
        "olive green": ("olive", "khaki", "army green", "moss green"),
        "green": ("emerald", "kelly green", "leaf green", "bright green"),
        "light green": ("lime green", "mint green", "pale green", "pastel green"),
        "dark green": ("forest green", "bottle green", "hunter green", "deep green"),
        "teal": ("turquoise", "cyan", "aquamarine", "sea green"),
        "light blue": ("sky blue", "baby blue", "pale blue", "powder blue"),
        "blue": ("azure", "cobalt blue", "royal blue", "sapphire blue", "bright blue"),
        "dark blue": ("navy", "navy blue", "midnight blue", "deep blue"),
        "purple": ("violet", "lavender purple", "plum purple", "lilac", "indigo"),
    }
)

_NAMES = "|".join(sorted(COLOR_NAMES, key=len, reverse=True))
# A colour word qualifies something: another word follows that is no preposition. "an orange with a leaf" is a fruit.
_COLOR = re.compile(rf"\b({_NAMES})\b(?= (?!with\b|of\b|on\b|in\b|without\b)\S)")

_ANY = "|".join(sorted({*COLOR_NAMES, *(w for words in COLOR_SYNONYMS.values() for w in words)}, key=len, reverse=True))
# Both as whole names: "dark red and red" are two.
_PAIR = re.compile(rf"\b({_ANY}) and (?=({_ANY})\b)")


def color_words(caption: str) -> list[str]:
    """Catalogue colour names that a caption uses as adjectives, in order."""
    return [match.group(1) for match in _COLOR.finditer(caption)]


def replace_colors(caption: str, change: Callable[[str], str]) -> str:
    """The caption with every colour adjective replaced by `change(name)`; "X and X" becomes "X"."""
    changed = _COLOR.sub(lambda match: change(match.group(1)), caption)
    return _PAIR.sub(lambda match: "" if match[1] == match[2] else match[0], changed)
