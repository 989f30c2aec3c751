"""An object in the making: random choices, named coloured parts, and the words that are true of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from helicube.train.color_names import color_name
from helicube.train.procedural.palette import RGB
from helicube.train.procedural.solid import Solid
from helicube.train.words import with_article

__all__ = ["NUMBER_WORDS", "Draft", "Piece", "drawn_from", "plural"]

T = TypeVar("T")

NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class Piece:
    """One closed solid of one colour that belongs to a part."""

    part: str
    solid: Solid
    color: RGB


@dataclass(slots=True)
class Draft:
    """What a class function fills in. Any unit of length; +Y up, front towards +Z."""

    rng: np.random.Generator
    pieces: list[Piece] = field(default_factory=list)
    # Noun of the captions ("office chair"), then broader ones that are also true ("chair").
    nouns: list[str] = field(default_factory=list)
    subclass: str = ""
    # Proportion or shape words that are true: "tall", "round".
    adjectives: list[str] = field(default_factory=list)
    # Material adjective of most of the surface: "wooden".
    material: str = ""
    # Phrases after the noun: "with three legs".
    features: list[str] = field(default_factory=list)
    # The finished object is stretched along each axis by up to this share: for makers with few sizes of their own.
    wobble: float = 0.0
    # False where captions must not name colours (people).
    name_colors: bool = True

    def add(self, part: str, color: RGB, *solids: Solid) -> None:
        """Add solids of one colour to a named part."""
        self.pieces += [Piece(part, solid, color) for solid in solids]

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def tint(self, options: Sequence[RGB], spread: int = 7) -> RGB:
        """A colour near one of a palette that still has that entry's name."""
        base = self.pick(options)
        shift = int(self.rng.integers(-spread, spread + 1))
        red, green, blue = (min(255, max(0, channel + shift)) for channel in base)
        return (red, green, blue) if color_name((red, green, blue)) == color_name(base) else base

    def other(self, options: Sequence[RGB], *taken: RGB) -> RGB:
        """A colour of a palette whose name differs from those of `taken`, if there is one."""
        names = {color_name(color) for color in taken}
        free = [color for color in options if color_name(color) not in names]
        return self.tint(free or options)

    def between(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def count(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def proportion(self, low: float, high: float, words: tuple[str, str]) -> float:
        """A length between low and high; its lower and upper quarter add words[0] and words[1] to the adjectives."""
        share = float(self.rng.random())
        word = words[0] if share < 0.25 else words[1] if share > 0.75 else ""
        if word:
            self.adjectives.append(word)
        return low + share * (high - low)

    def call(self, *nouns: str, subclass: str = "") -> None:
        """Set the nouns, the most specific first."""
        self.nouns = list(nouns)
        self.subclass = subclass

    def having(self, number: int, noun: str) -> None:
        """Record the feature "with <number> <noun>"."""
        self.features.append(f"with {NUMBER_WORDS[number]} {plural(noun) if number > 1 else noun}")

    def having_colored(self, noun: str, color: RGB) -> None:
        """Record the feature "with <colour> <noun>"; the noun is a plural or a mass noun."""
        self.features.append(f"with {color_name(color)} {noun}")

    def having_one_colored(self, noun: str, color: RGB) -> None:
        """Record the feature "with a <colour> <noun>"."""
        self.features.append("with " + with_article(f"{color_name(color)} {noun}"))


def drawn_from(color: RGB, palette: Sequence[RGB], spread: int = 7) -> bool:
    """Whether `Draft.tint` may have made a colour from a palette."""
    return any(max(abs(a - b) for a, b in zip(color, entry, strict=True)) <= spread for entry in palette)


def plural(noun: str) -> str:
    """The plural of a common noun."""
    if noun.endswith(("shelf", "leaf")):
        return noun[:-1] + "ves"
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"
