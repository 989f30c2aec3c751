"""Word vectors from a sentence encoder that know what things are.

A small sentence encoder reads rare words as pieces ("set ##tee") and has no idea of them. So the vector of a word is a
mean of what the encoder makes of the word, of the words that share its meaning, of its definition in WordNet, and of
the more general meanings above it, over the senses that name things.

Related: Tissier et al., "Dict2vec", EMNLP 2017 (definitions); Faruqui et al., "Retrofitting word vectors to semantic
lexicons", NAACL 2015 (relations).

Shapes: N texts, C width of the sentence encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.train.wordnet import Sense, WordNet

__all__ = ["THINGS", "SenseVectors", "SenseWeights", "unit"]

Vectors = NDArray[np.float32]

# How much a sense counts, by its category: prompts name things and say how they look. Other senses do not count.
_CATEGORY_WEIGHT = {
    "animal": 1.0,
    "artifact": 1.0,
    "food": 1.0,
    "object": 1.0,
    "plant": 1.0,
    "person": 0.8,
    "body": 0.7,
    "substance": 0.5,
    "adjective": 0.7,
    "color": 1.0,
}
THINGS = frozenset({"animal", "artifact", "food", "object", "plant", "person", "body", "substance"})
# Too general to say anything about shape: the way up ends below them.
_TOP = frozenset(
    (
        "entity", "physical entity", "object", "whole", "artifact", "artefact", "instrumentality", "organism", "thing",
        "living thing", "abstraction", "causal agent", "structure", "covering", "device", "unit", "matter", "substance",
        "container", "vertebrate", "chordate", "person", "food", "solid", "vascular plant", "plant", "animal",
        "conveyance", "natural object", "commodity", "consumer goods", "durables", "equipment", "implement",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SenseWeights:
    """How much each part of a word's vector counts."""

    # The word by itself; a sense's words, definition and more general senses.
    word: float = 0.5
    lemmas: float = 1.0
    gloss: float = 1.0
    parents: float = 0.7
    # Steps up from a sense.
    depth: int = 2
    # Weight of each further sense of a word relative to the one before, and how many are read.
    sense_decay: float = 0.7
    num_noun_senses: int = 5
    num_adjective_senses: int = 3


class SenseVectors:
    """Vectors of words from their senses; texts are collected first and embedded in one go.

    Args:
        wordnet: the dictionary.
        known: words that the sentence encoder has a row for.
        weights: of the parts.
    """

    def __init__(self, wordnet: WordNet, known: frozenset[str], weights: SenseWeights) -> None:
        self._wordnet = wordnet
        self._known = known
        self._weights = weights
        self._texts: dict[str, Vectors] = {}
        self._vectors: dict[tuple[str, int], Vectors] = {}

    def texts(self, words: Sequence[str]) -> list[str]:
        """All texts that the vectors of these words need, without repeats."""
        found: dict[str, None] = {}
        done: set[tuple[str, int]] = set()

        def visit(sense: Sense, depth: int) -> None:
            if (sense.key, depth) in done:
                return
            done.add((sense.key, depth))
            found.update(dict.fromkeys(self._sense_texts(sense)))
            for parent in self._parents(sense, depth):
                visit(parent, depth + 1)

        for word in words:
            found[self._own_text(word)] = None
            for sense, _ in self._senses(word):
                visit(sense, 0)
        return list(found)

    def learn(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Take the sentence encoder's unit vectors (N, C) of these texts."""
        self._texts.update(zip(texts, vectors, strict=True))

    def vector(self, word: str) -> Vectors:
        """Unit vector (C,) of a word, phrase or word piece."""
        own = self._texts[self._own_text(word)]
        senses = self._senses(word)
        if not senses:
            return own
        total = sum(weight for _, weight in senses)
        meaning = sum((weight / total * self._sense(sense, 0) for sense, weight in senses), np.zeros_like(own))
        return unit(self._weights.word * own + meaning)

    def _senses(self, word: str) -> list[tuple[Sense, float]]:
        """The senses that count, with their weights."""
        weights, found = self._weights, []
        for part, most in (("n", weights.num_noun_senses), ("a", weights.num_adjective_senses)):
            for rank, sense in enumerate(self._wordnet.of(word, part)[:most]):
                category = "color" if self._wordnet.is_color(sense) else sense.category
                if category in _CATEGORY_WEIGHT:
                    found.append((sense, weights.sense_decay**rank * _CATEGORY_WEIGHT[category]))
        return found

    def _parents(self, sense: Sense, depth: int) -> list[Sense]:
        if depth >= self._weights.depth:
            return []
        parents = (self._wordnet.senses[key] for key in sense.parents)
        return [parent for parent in parents if not _TOP.intersection(parent.lemmas)]

    def _own_text(self, word: str) -> str:
        if word.startswith("##"):
            return word[2:]
        names_a_thing = any(sense.category in THINGS for sense in self._wordnet.of(word, "n"))
        return f"{'an' if word[0] in 'aeiou' else 'a'} {word}" if names_a_thing else word

    def _sense_texts(self, sense: Sense) -> list[str]:
        """The definition, led by those words of the sense that the encoder knows, and all its words."""
        known = [lemma for lemma in sense.lemmas if all(word in self._known for word in lemma.split())][:4]
        gloss = f"{', '.join(known)}: {sense.gloss}" if known else sense.gloss
        return [gloss, ", ".join(sense.lemmas[:4])] if sense.lemmas else [gloss]

    def _sense(self, sense: Sense, depth: int) -> Vectors:
        if (sense.key, depth) not in self._vectors:
            parts = [self._texts[text] for text in self._sense_texts(sense)]
            vector = self._weights.gloss * parts[0]
            if len(parts) > 1:
                vector = vector + self._weights.lemmas * parts[1]
            parents = self._parents(sense, depth)
            if parents:
                vector = vector + self._weights.parents * np.mean([self._sense(p, depth + 1) for p in parents], axis=0)
            self._vectors[sense.key, depth] = unit(vector)
        return self._vectors[sense.key, depth]


def unit(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1 along the last axis."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)
