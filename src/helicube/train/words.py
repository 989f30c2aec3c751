"""Small facts of English that captions need."""

from __future__ import annotations

__all__ = ["article", "with_article"]

_AN_SOUNDS = ("a", "e", "i", "o", "u", "hour", "8", "x-ray", "xmas")
_A_SOUNDS = ("uni", "use", "util", "eu", "one", "ufo", "uto")


def article(phrase: str) -> str:
    """ "a" or "an", by the sound that the phrase begins with."""
    word = phrase.lower()
    if word.startswith("suv "):
        return "an"
    return "an" if word.startswith(_AN_SOUNDS) and not word.startswith(_A_SOUNDS) else "a"


def with_article(phrase: str) -> str:
    """The phrase after its indefinite article."""
    return f"{article(phrase)} {phrase}"
