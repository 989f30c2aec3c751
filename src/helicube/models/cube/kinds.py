"""Closer nouns for words that name many unlike things: "a weapon" is drawn as a sword, an axe or a knife, by the seed.

What such a word's objects have in common has no shape, and what is drawn for it is nothing that anyone would name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["KINDS", "NO_KINDS", "closer"]

# Collective classes of the training objects, and the kinds of which people made two or more, the commonest first.
KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "animal": ("cow", "deer", "llama", "snake", "bee"),
        "bones": ("skull", "bone"),
        "clothing": ("armor", "helmet"),
        "dessert": ("cupcake", "candy", "cake", "donut", "cookie", "pie", "pancakes"),
        "emergency vehicle": ("police car", "ambulance"),
        "fast food": ("burger", "hot dog", "sandwich"),
        "food": ("bread", "sushi", "egg", "cheese"),
        "fruit": ("apple", "coconut", "watermelon", "avocado", "lemon", "orange"),
        "gadget": ("speaker", "battery", "telescope", "phone"),
        "household item": (
            "picture frame", "vase", "mirror", "shower", "radiator", "towel", "bathtub", "ceiling fan", "coat rack",
            "curtain", "first aid kit", "umbrella",
        ),
        "jewelry": ("ring", "gem", "crown"),
        "kitchen appliance": ("blender", "coffee machine"),
        "kitchen utensil": ("cutting board", "spoon", "chopsticks", "salt shaker"),
        "machine": ("satellite dish", "antenna", "crane", "solar panel"),
        "ornament": ("heart", "star"),
        "sea animal": ("fish", "shark", "whale"),
        "street furniture": ("street light", "traffic light", "traffic cone"),
        "tool": ("ladder", "bear trap", "shovel", "bucket", "paddle", "pen", "scissors", "wheelbarrow"),
        "vegetable": ("lettuce", "carrot", "pumpkin", "tomato"),
        "vehicle": ("tank", "bicycle", "bus", "rover"),
        "weapon": ("sword", "axe", "knife", "bow", "hammer", "staff", "bomb", "crossbow"),
    }
)  # fmt: skip

# What may stand before: anything else may make it another thing ("a washing machine", "a space vehicle").
_BEFORE = (
    "a", "an", "the", "some", "one", "my", "black", "white", "gray", "grey", "brown", "beige", "red", "pink", "orange",
    "yellow", "green", "blue", "teal", "purple", "violet", "golden", "gold", "silver", "light", "dark", "bright",
    "pale", "small", "tiny", "little", "big", "large", "huge", "giant", "tall", "short", "long", "wide", "narrow",
    "thin", "thick", "old", "new", "ancient", "modern", "simple", "cute", "funny", "wooden", "metal", "stone",
    "plastic", "glass", "steel", "iron", "low-poly",
)  # fmt: skip
_PROMPT = re.compile(
    rf"((?:(?:{'|'.join(_BEFORE)})\s+)*)({'|'.join(sorted(KINDS, key=len, reverse=True))})", re.IGNORECASE
)


NO_KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def closer(prompt: str, seed: int, kinds: Mapping[str, tuple[str, ...]] = KINDS) -> tuple[str, str | None]:
    """The prompt with a closer noun where its own is a collective one, and that noun; else the prompt, and None.

    Seeds that follow each other go through the kinds, so that variants differ.
    """
    found = _PROMPT.fullmatch(prompt)
    known = kinds.get(found[2].lower()) if found else None
    if found is None or known is None:
        return prompt, None
    kind = known[seed % len(known)]
    return found[1] + kind, kind
