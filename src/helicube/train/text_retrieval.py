"""Does a prompt in other words than the captions' still reach the right class? By cosine, without the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helicube.models.cube.text_static import StaticTextEncoder
from helicube.models.cube.text_vocab import content_words
from helicube.train.class_words import CLASS_OF_WORD, CLASS_WORDS, DATA_CLASSES

__all__ = ["TextPair", "load_pairs", "nearest_names", "rank_names"]

# What a prompt is compared with: the nouns of all classes and subclasses.
NAMES: tuple[str, ...] = tuple(sorted({*CLASS_WORDS, *DATA_CLASSES}))
_NOUN_OF_WORD = {" ".join(content_words(word)): noun for noun, words in CLASS_WORDS.items() for word in (noun, *words)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPair:
    """A prompt and the nouns that are right for it."""

    prompt: str
    # Nouns of `NAMES`; a class stands for all its nouns.
    right: frozenset[str]
    # Whether nobody looked at this pair while the table's weights were chosen.
    blind: bool

    @property
    def foreign(self) -> bool:
        """Whether no word or phrase of the prompt is one that the table was taught for a right class."""
        words = content_words(self.prompt)
        spans = (" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1))
        return not any(self.accepts(_NOUN_OF_WORD[span]) for span in spans if span in _NOUN_OF_WORD)

    @property
    def is_phrase(self) -> bool:
        """Whether the prompt describes the thing with more than its name."""
        return self.prompt.startswith(("a ", "an "))

    def accepts(self, name: str) -> bool:
        """Whether `name` or its class is right."""
        return name in self.right or CLASS_OF_WORD.get(name) in self.right


def load_pairs(path: Path) -> list[TextPair]:
    """Lines of origin, prompt and right nouns, separated by tabs; nouns by bars."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [
        TextPair(prompt=prompt, right=frozenset(right.split("|")), blind=origin == "blind")
        for origin, prompt, right in rows
    ]


def rank_names(encoder: StaticTextEncoder, pairs: Sequence[TextPair]) -> NDArray[np.int64]:
    """For each pair how many names are nearer to the prompt than the nearest right one, (P,): 0 is a hit."""
    similarity = encoder.pooled([pair.prompt for pair in pairs]) @ encoder.pooled(NAMES).T
    right = np.array([[pair.accepts(name) for name in NAMES] for pair in pairs])
    best = np.where(right, similarity, -np.inf).max(axis=1, keepdims=True)
    return np.asarray((similarity > best).sum(axis=1), np.int64)


def nearest_names(encoder: StaticTextEncoder, prompts: Sequence[str], count: int) -> list[list[str]]:
    """The `count` names nearest to each prompt."""
    similarity = encoder.pooled(prompts) @ encoder.pooled(NAMES).T
    return [[NAMES[i] for i in row[:count]] for row in np.argsort(-similarity, axis=1, kind="stable")]
