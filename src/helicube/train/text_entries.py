"""Which words, phrases and word pieces the table of text vectors holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from helicube.models.cube.text_vocab import MAX_PHRASE_WORDS, content_words
from helicube.train.class_words import CLASS_OF_WORD, CLASS_WORDS
from helicube.train.extra_nouns import EXTRA_NOUNS
from helicube.train.sense_vectors import THINGS
from helicube.train.teacher import SentenceTeacher
from helicube.train.wordnet import Sense, WordNet

__all__ = ["add_own_words", "choose_entries", "is_thing", "own_words"]

_WORD = re.compile(r"[a-z0-9]+")
_PIECE = re.compile(r"(##)?[a-z0-9]+")
_PHRASE = re.compile(r"[a-z0-9]+( [a-z0-9]+){1,2}")
# Of these also the rare words are held; of other things only those met in WordNet's annotated text.
_SHAPED = frozenset({"animal", "artifact", "food", "object", "plant"})
# Phrases that begin with one of these, or with a colour, stay two words: "yellow jacket" is asked for as a jacket.
_LOOKS = frozenset(
    {"big", "small", "large", "little", "long", "short", "wide", "flat", "low", "tall", "old", "new", "dark", "light"}
)


def own_words() -> frozenset[str]:
    """Words and phrases that the dictionary is taught, as the vocabulary looks them up."""
    return frozenset(map(_plain, (*CLASS_OF_WORD, *EXTRA_NOUNS)))


def add_own_words(dictionary: WordNet) -> None:
    """Teach the dictionary the words of the catalogue's classes, and things that it is too old to know."""
    for word, (kind, gloss) in EXTRA_NOUNS.items():
        parents = [sense.key for sense in dictionary.of(kind, "n") if sense.category in THINGS][:1]
        key = f"n+{word}"
        plain = _plain(word)
        dictionary.insert(
            plain, Sense(key=key, category="artifact", lemmas=(plain,), gloss=gloss, parents=tuple(parents))
        )
    for noun, words in CLASS_WORDS.items():
        lemmas = tuple(map(_plain, (noun, *words)))
        # The class tells which thing is meant: a bat that is an animal, a tank that is a vehicle.
        kind = CLASS_OF_WORD[noun]
        gloss = noun if kind == noun else f"{noun}, {kind}"
        sense = Sense(key=f"n={noun}", category="artifact", lemmas=lemmas, gloss=gloss, parents=())
        for lemma in dict.fromkeys(lemmas):
            dictionary.insert(lemma, sense)


def choose_entries(
    encoder: SentenceTeacher, dictionary: WordNet, *, num_commonest: int, max_pieces: int
) -> tuple[list[str], list[str]]:
    """Words and word pieces that the table holds, and phrases that it may hold.

    Args:
        encoder: gives the word pieces, which are in the order of their frequency.
        dictionary: gives the rest, our own words included (`add_own_words`).
        num_commonest: pieces that are held whether or not they are words of the dictionary.
        max_pieces: words that are read as more pieces than this are rare, and left out.
    """
    own = own_words()
    pieces = [piece for piece in encoder.word_pieces() if _PIECE.fullmatch(piece)]
    words = dict.fromkeys(
        piece
        for rank, piece in enumerate(pieces)
        if piece.startswith("##") or len(piece) < 3 or rank < num_commonest or _is_inflected(piece, dictionary)
    )
    named = sorted(word for word in dictionary.words() if word in own or _is_shaped(dictionary, word))
    rare = [word for word in named if _WORD.fullmatch(word)]
    counts = encoder.count_pieces(rare)
    words.update(dict.fromkeys(w for w, n in zip(rare, counts, strict=True) if n <= max_pieces or w in own))
    colors = {word for word in words if any(map(dictionary.is_color, dictionary.of(word, "n")))}
    skipped = colors | _LOOKS

    def is_phrase(entry: str) -> bool:
        parts = entry.split(" ")
        if parts != content_words(entry):  # "jack a lantern": prompts are read without articles
            return False
        if entry in own:
            return 1 < len(parts) <= MAX_PHRASE_WORDS
        return bool(_PHRASE.fullmatch(entry)) and parts[0] not in skipped and words.keys() >= set(parts)

    return list(words), [entry for entry in named if is_phrase(entry)]


def is_thing(dictionary: WordNet, word: str) -> bool:
    """Whether a plain word is the common name of something with a shape."""
    return any(sense.category in THINGS and word in sense.lemmas for sense in dictionary.of(word, "n"))


def _is_shaped(dictionary: WordNet, word: str) -> bool:
    senses = [sense for sense in dictionary.of(word, "n") if word in sense.lemmas and sense.category in THINGS]
    return any(sense.category in _SHAPED for sense in senses) or (bool(senses) and dictionary.is_attested(word))


def _is_inflected(word: str, dictionary: WordNet) -> bool:
    """Whether the dictionary has a word or what it is a regular form of; names of people and places it has not."""
    return any(stem in dictionary for stem in _stems(word))


def _stems(word: str) -> Iterator[str]:
    yield word
    for ending in ("s", "es", "ed", "d", "ing", "er", "r", "est", "ly", "y"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            yield stem
            if ending in {"ing", "ed", "er", "est"}:
                yield stem + "e"
                yield stem[:-1]  # "running"


def _plain(word: str) -> str:
    """As the vocabulary will look it up."""
    return " ".join(content_words(word))
