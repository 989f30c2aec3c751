"""Distil a sentence encoder into the static table of the default text encoder.

Entries are the encoder's word pieces, the words and phrases that name things, and the words of the catalogue's classes.
Their vectors (sense_vectors.py) are centred, projected on principal components and quantised to 8 bits.

Shapes: V entries, N texts, C width of the sentence encoder, D width of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from helicube.train.sense_vectors import SenseVectors, SenseWeights, unit
from helicube.train.teacher import SentenceTeacher
from helicube.train.text_entries import add_own_words, choose_entries, is_thing, own_words
from helicube.train.wordnet import WordNet

__all__ = ["DistillConfig", "distill_static_vectors"]

Vectors = NDArray[np.float32]

_FUNCTION_WORDS = frozenset(
    (
        "with", "without", "of", "in", "on", "from", "for", "at", "by", "under", "over", "near", "beside", "made",
        "and", "or", "to", "as", "is", "are", "that", "which", "its", "it", "has", "have", "this", "these", "some", "s",
        "into", "very", "like", "please", "make", "create", "generate", "me", "i", "want", "3d", "model", "render",
        "picture", "image", "poly", "style", "kind", "type", "pair", "set",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillConfig:
    """Size of the table and weights."""

    # D, the width of the table.
    width: int = 128
    # Word pieces held whether or not the dictionary has them: the commonest words of all kinds.
    num_commonest: int = 4000
    # Words that the sentence encoder reads as more pieces are left out.
    max_pieces: int = 4
    # Phrases kept: those that their words say least about.
    num_phrases: int = 5000
    # Weight in the mean of words that name or describe nothing ("with", "of").
    function_weight: float = 0.15
    # How a word's vector is made.
    senses: SenseWeights = field(default_factory=SenseWeights)


def distill_static_vectors(
    out: Path,
    *,
    teacher: Path,
    wordnet: Path,
    config: DistillConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write `static.safetensors` and `vocab.txt` into `out` and return V.

    Args:
        out: folder to write to; made if need be.
        teacher: folder of all-MiniLM-L6-v2 (`SentenceTeacher`).
        wordnet: WordNet's dictionary folder (`WordNet`).
        config: sizes and weights.
        progress: told the number of texts embedded and their total.

    Raises:
        MissingExtraError, CheckpointError, InputError: see `SentenceTeacher` and `WordNet`.
    """
    config = config or DistillConfig()
    dictionary, encoder = WordNet(wordnet), SentenceTeacher(teacher)
    add_own_words(dictionary)
    words, phrases = choose_entries(
        encoder, dictionary, num_commonest=config.num_commonest, max_pieces=config.max_pieces
    )
    senses = SenseVectors(dictionary, frozenset(encoder.word_pieces()), config.senses)
    texts = senses.texts([*words, *phrases])
    report = (lambda done: progress(done, len(texts))) if progress is not None else None
    senses.learn(texts, encoder.embed(texts, report))
    vectors = {entry: senses.vector(entry) for entry in (*words, *phrases)}
    entries = [*words, *keep_phrases(vectors, words, phrases, config.num_phrases)]
    things = np.array([is_thing(dictionary, entry) for entry in entries])
    reduced = reduce_width(np.stack([vectors[entry] for entry in entries]), things, config.width)
    write_table(out, entries, reduced, entry_weights(entries, config.function_weight))
    return len(entries)


def keep_phrases(vectors: Mapping[str, Vectors], words: list[str], phrases: list[str], most: int) -> list[str]:
    """Our own phrases, and those of the others whose vector is least like the mean of their words' vectors."""
    own = own_words()
    known = set(words)

    def likeness(phrase: str) -> float:
        parts = [vectors[word] for word in phrase.split(" ") if word in known]
        return float(vectors[phrase] @ unit(np.sum([*parts, parts[-1]], axis=0)))

    kept = [phrase for phrase in phrases if phrase in own]
    others = sorted((phrase for phrase in phrases if phrase not in own), key=lambda p: (likeness(p), p))
    return kept + sorted(others[: max(0, most - len(kept))])


def reduce_width(vectors: Vectors, things: NDArray[np.bool_], width: int) -> Vectors:
    """Principal components (V, D) of unit vectors (V, C), centred and fitted on the rows that name things."""
    centre = vectors[things].mean(axis=0)
    spread = (vectors[things] - centre).astype(np.float64)
    _, axes = np.linalg.eigh(spread.T @ spread)
    axes = axes[:, : -width - 1 : -1]  # by falling variance
    # The sign of a component is arbitrary: make its largest entry positive, whatever the linear algebra library.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])
    return np.asarray((vectors - centre) @ axes, np.float32)


def entry_weights(entries: list[str], function_weight: float) -> NDArray[np.float16]:
    """Weight of each entry in the mean of a prompt, (V,)."""
    return np.array([function_weight if entry in _FUNCTION_WORDS else 1.0 for entry in entries], np.float16)


def write_table(out: Path, entries: list[str], vectors: Vectors, weights: NDArray[np.float16]) -> None:
    """Quantise each row to 8 bits and write both files, each whole or not at all."""
    codes = np.rint(vectors / np.abs(vectors).max(axis=1, keepdims=True) * 127).astype(np.int8)
    out.mkdir(parents=True, exist_ok=True)
    table, listing = out / "static.safetensors", out / "vocab.txt"
    table.with_suffix(".part").write_bytes(save({"codes": codes, "weights": weights}))
    table.with_suffix(".part").replace(table)
    listing.with_suffix(".part").write_text("\n".join(entries) + "\n", encoding="utf-8")
    listing.with_suffix(".part").replace(listing)
