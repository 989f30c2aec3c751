"""Small facts of English that captions need."""

from __future__ import annotations

import re

__all__ = ["article", "with_article"]

_AN_SOUNDS = ("a", "e", "i", "o", "u", "hour", "8", "x-ray", "xmas")
# Nouns that take no article.
_BARE = frozenset(
    (
        "stairs", "fries", "scissors", "glasses", "shoes", "boots", "headphones", "chopsticks", "corn", "wheat",
        "grass", "meat", "ribs", "bones", "grapes", "armor", "bread", "pants",
        "jewelry", "clothing", "food",
    )
)  # fmt: skip
_A_SOUNDS = ("uni", "use", "util", "eu", "one", "ufo", "uto")


def article(phrase: str) -> str:
    """ "a" or "an", by the sound that the phrase begins with."""
    word = phrase.lower()
    if word.startswith("suv "):
        return "an"
    return "an" if word.startswith(_AN_SOUNDS) and not word.startswith(_A_SOUNDS) else "a"


def with_article(phrase: str) -> str:
    """The phrase after its indefinite article; nouns in the plural and mass nouns ("stairs") stay bare."""
    head = re.split(r" (?:with|without|of|on|in|full|lying|from) ", phrase, maxsplit=1)[0]
    if head.rsplit(" ", 1)[-1] in _BARE:
        return phrase
    return f"{article(phrase)} {phrase}"
