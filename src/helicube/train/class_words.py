"""The classes of the catalogue and the words that people type for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from helicube.train.vocabulary_indoor import INDOOR
from helicube.train.vocabulary_nature import NATURE
from helicube.train.vocabulary_outdoor import OUTDOOR

__all__ = ["CLASS_OF_WORD", "CLASS_WORDS", "COLLECTIVE_CLASSES", "DATA_CLASSES"]

_ALL = {**INDOOR, **NATURE, **OUTDOOR}

# The 131 classes of the catalogue.
DATA_CLASSES: frozenset[str] = frozenset(_ALL)

# Noun of a class or subclass -> synonyms and usual kinds. No word belongs to two classes.
CLASS_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {noun: words for nouns in _ALL.values() for noun, words in nouns.items()}
)

# Every such noun and word -> its class.
CLASS_OF_WORD: Mapping[str, str] = MappingProxyType(
    {word: class_name for class_name, nouns in _ALL.items() for noun, words in nouns.items() for word in (noun, *words)}
)

# Classes that collect unlike things, so that the subclass says more.
COLLECTIVE_CLASSES: frozenset[str] = frozenset(
    (
        "animal", "bag", "bones", "clothing", "container", "dessert", "emergency vehicle", "fast food", "food", "fruit",
        "gadget", "household item", "jewelry", "kitchen appliance", "kitchen utensil", "machine", "meat", "ornament",
        "plant", "sea animal", "street furniture", "tool", "toy", "vegetable", "vehicle", "weapon",
    )
)  # fmt: skip
