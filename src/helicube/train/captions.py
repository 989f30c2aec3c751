"""Variety of training captions: synonyms, colour words, adjectives and prompt templates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from helicube.train.class_words import CLASS_WORDS
from helicube.train.color_names import COLOR_NAMES
from helicube.train.color_words import COLOR_SYNONYMS, replace_colors
from helicube.train.objects import Named
from helicube.train.recolor import recolor
from helicube.train.words import fix_articles, with_article

__all__ = ["CLASS_WORDS", "augment_caption", "recolor"]

_SYNONYM_CHANCE = 0.45
_COLOR_CHANCE = 0.3
_DROP_CHANCE = 0.2
_SWAP_CHANCE = 0.12

# Words that may stand before a noun without changing what it names.
_ADJECTIVES = frozenset(
    (
        "tall", "short", "long", "low", "wide", "narrow", "small", "big", "large", "medium", "little", "thin", "thick",
        "flat", "deep", "shallow", "slim", "fat", "round", "square", "oval", "rectangular", "triangular", "rounded",
        "curved", "blocky", "arched", "wooden", "metal", "stone", "plastic", "glass", "painted", "leather", "leafy",
        "open", "closed", "empty", "full", "simple", "old", "modern", "vintage", "broken", "damaged", "decorated",
        "detailed", "fancy", "classic", "snowy", "mossy", "grassy", "autumn", "burning", "lit", "golden", "single",
        "double", "flat-screen", "half", "shiny",
    )
)  # fmt: skip
_FRAME = re.compile(r"^(?:an? )?(?:low[- ]poly )?3d (?:model|character) of ")
_REST = re.compile(r" (?:with|without|of|on|in|full|lying|from|standing)\b|,")
_COLORS = "|".join(sorted(COLOR_NAMES, key=len, reverse=True))
_UNIT = re.compile(rf"(?:{_COLORS})(?: and (?:{_COLORS}))?(?= )|\S+")

# Prompt templates and their weights; {a} is the phrase with its article, {} without.
_TEMPLATES: tuple[tuple[str, float], ...] = (
    ("{a}", 10), ("{}", 4), ("a low-poly {}", 1.5), ("a low poly {}", 1), ("3d model of {a}", 1.2),
    ("a 3d model of {a}", 1), ("{}, game asset", 1), ("{}, low poly", 0.7), ("a simple {}", 0.5),
    ("a stylized {}", 0.5), ("a game-ready {}", 0.4), ("{a}, 3d render", 0.4), ("a cartoon {}", 0.3),
)  # fmt: skip


def augment_caption(caption: str, item: Named, rng: np.random.Generator) -> str:
    """Another caption that is as true of the object.

    The noun of the object's class or subclass may become one of its `CLASS_WORDS`, adjectives may be dropped or change
    places, colours may become synonyms, and the phrase may be set in a template of prompts. Captions that are framed
    already ("a 3d model of ...") keep their frame.
    """
    frame = _FRAME.match(caption)
    body = caption[frame.end() :] if frame else caption
    if "," in body:
        return fix_articles(_other_colors(caption, rng))
    cut = _REST.search(body)
    head, rest = (body[: cut.start()], body[cut.start() :]) if cut else (body, "")
    bare = re.sub(r"^an? ", "", head)
    adjectives, noun = _split(bare, item)
    swapped = _synonym(noun, rng)
    adjectives = _shuffle(adjectives, rng)
    phrase = _other_colors(" ".join([*adjectives, swapped]) + rest, rng)
    if frame:
        return caption[: frame.end()] + fix_articles(with_article(phrase))
    if head == bare and swapped == noun:
        return fix_articles(phrase) if rng.random() < 0.5 else _in_template(phrase, rng, article=False)
    return _in_template(phrase, rng, article=True)


def _split(bare: str, item: Named) -> tuple[list[str], str]:
    """Leading adjectives, one unit each ("light brown and red"), and the rest of a noun phrase."""
    own = [noun for noun in (item.subclass, item.class_name) if bare == noun or bare.endswith(f" {noun}")]
    end = len(bare) - len(max(own, key=len)) if own else len(bare)
    adjectives: list[str] = []
    at = 0
    for unit in _UNIT.finditer(bare):
        plain = unit.group(0).split(" and ")[0]
        if unit.end() > end or (plain not in _ADJECTIVES and plain not in COLOR_NAMES):
            break
        adjectives.append(unit.group(0))
        at = unit.end() + 1
    return adjectives, bare[at:] or adjectives.pop()


def _synonym(noun: str, rng: np.random.Generator) -> str:
    """Another word for a noun that has any; phrases such as "kitchen chair" stay."""
    words = CLASS_WORDS.get(noun)
    if not words or rng.random() >= _SYNONYM_CHANCE:
        return noun
    return words[int(rng.integers(len(words)))]


def _shuffle(adjectives: Sequence[str], rng: np.random.Generator) -> list[str]:
    kept = list(adjectives)
    if kept and rng.random() < _DROP_CHANCE:
        del kept[int(rng.integers(len(kept)))]
    if len(kept) > 1 and rng.random() < _SWAP_CHANCE:
        i = int(rng.integers(len(kept) - 1))
        kept[i], kept[i + 1] = kept[i + 1], kept[i]
    return kept


def _other_colors(text: str, rng: np.random.Generator) -> str:
    def change(name: str) -> str:
        words = COLOR_SYNONYMS[name]
        return words[int(rng.integers(len(words)))] if rng.random() < _COLOR_CHANCE else name

    return replace_colors(text, change)


def _in_template(phrase: str, rng: np.random.Generator, *, article: bool) -> str:
    weights = np.array([weight for _, weight in _TEMPLATES])
    template = _TEMPLATES[int(rng.choice(len(_TEMPLATES), p=weights / weights.sum()))][0]
    if template.startswith("a ") and "{}" in template:
        return fix_articles(with_article(template[2:].format(phrase)))
    whole = with_article(phrase) if article else phrase
    return fix_articles(template.replace("{a}", whole).replace("{}", phrase))
