"""Text to rows of the static encoder's table: phrases, then words, then word pieces, longest first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["MAX_PHRASE_WORDS", "TokenizedPrompt", "Vocabulary", "content_words", "plain_words"]

MAX_PHRASE_WORDS = 4  # of an entry; longer ones would never be found
_WORD = re.compile(r"\w+")
_APOSTROPHE_S = re.compile(r"['’]s\b")
# Articles say nothing about shape; without them "chair", "a chair" and "the chair" are one prompt.
_ARTICLES = frozenset({"a", "an", "the"})
# What follows one of these tells more about the thing named before it.
_PREPOSITIONS = frozenset(
    {"with", "without", "of", "in", "on", "from", "for", "at", "by", "under", "over", "near", "beside", "made"}
)
# "a model of a car" is about the car.
_TRANSPARENT = frozenset(
    {"model", "pair", "picture", "image", "set", "piece", "bunch", "pile", "stack", "kind", "type"}
)
# A noun's modifiers stand before it in English: the last word before a preposition says what the thing is.
_HEAD_EMPHASIS, _TAIL_EMPHASIS = 2.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizedPrompt:
    """Rows of one prompt, in order, and what the reader of the prompt should know."""

    rows: tuple[int, ...]
    # How much each row counts for what the whole prompt is, relative to its own weight.
    emphasis: tuple[float, ...]
    # Words that have no row and no pieces: other scripts, symbols without a name.
    ignored: tuple[str, ...]
    # Words that are not in the vocabulary, and the pieces they were read as.
    pieces: tuple[tuple[str, tuple[str, ...]], ...]


def plain_words(text: str) -> list[str]:
    """Words in lower case without accents; symbols and emoji become their Unicode names ("🚗" is "automobile")."""
    named = "".join(f" {_symbol_name(c)} " if unicodedata.category(c) == "So" else c for c in text)
    folded = unicodedata.normalize("NFKD", _APOSTROPHE_S.sub("", unicodedata.normalize("NFKC", named)).casefold())
    bare = "".join(c for c in folded if not unicodedata.combining(c))
    return _WORD.findall(bare.replace("_", " "))


def content_words(text: str) -> list[str]:
    """`plain_words` without articles; joined by spaces they are the form that entries have."""
    return [word for word in plain_words(text) if word not in _ARTICLES]


def _symbol_name(symbol: str) -> str:
    return unicodedata.name(symbol, "").replace("-", " ")


class Vocabulary:
    """Entries of the table: "chair", "washing machine" (a phrase), "##ing" (a piece inside or at the end of a word)."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._row = dict(zip(entries, range(len(entries)), strict=True))
        self._max_chars = max(map(len, entries), default=1)

    def __len__(self) -> int:
        return len(self._row)

    def tokenize(self, text: str) -> TokenizedPrompt:
        """Rows of the longest entries from left to right, articles left out.

        A plural that is not an entry is read as its singular; a word that is not an entry either way is read as pieces.
        """
        words = content_words(text)
        rows: list[int] = []
        units: list[tuple[str, int]] = []  # text and number of rows of each word or phrase
        ignored: list[str] = []
        pieces: list[tuple[str, tuple[str, ...]]] = []
        start = 0
        while start < len(words):
            row, used = self._longest_phrase(words, start)
            word = words[start]
            start += used
            parts = None if row is not None else self._pieces(word)
            if parts is not None:
                pieces.append((word, parts))
            found = [self._row[part] for part in parts or ()] if row is None else [row]
            if not found:
                ignored.append(word)
                continue
            rows += found
            units.append((word, len(found)))
        emphasis = _emphasis(units, listed="," in text or ";" in text)
        return TokenizedPrompt(rows=tuple(rows), emphasis=emphasis, ignored=tuple(ignored), pieces=tuple(pieces))

    def closest_word(self, word: str) -> str | None:
        """The whole word that is spelt most alike, if any is close: a remedy for typing errors.

        Of three letters ("sci-fi"), too many words are close to mean anything.
        """
        if len(word) < 4:
            return None
        import difflib  # 10 ms that only a note on an unknown word needs

        same_start = [e for e in self._row if e[0] == word[0] and abs(len(e) - len(word)) <= 2]
        letters = sorted(word)
        swapped = [e for e in same_start if len(e) == len(word) and sorted(e) == letters]  # "chiar"
        if swapped:
            return swapped[0]
        return next(iter(difflib.get_close_matches(word, same_start, n=1, cutoff=0.75)), None)

    def _longest_phrase(self, words: list[str], start: int) -> tuple[int | None, int]:
        """Row of the longest entry that begins at `start` and the number of its words; (None, 1) if there is none."""
        for used in range(min(MAX_PHRASE_WORDS, len(words) - start), 0, -1):
            phrase = " ".join(words[start : start + used])
            for form in (phrase, *_singulars(phrase)):
                if form in self._row:
                    return self._row[form], used
        return None, 1

    def _pieces(self, word: str) -> tuple[str, ...] | None:
        """Greedy longest word pieces (Schuster and Nakajima 2012, as in BERT); None if a character is unknown."""
        parts: list[str] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            stop = min(len(word), start + self._max_chars)
            while stop > start and mark + word[start:stop] not in self._row:
                stop -= 1
            if stop == start:
                return None
            parts.append(mark + word[start:stop])
            start = stop
        return tuple(parts)


def _emphasis(units: list[tuple[str, int]], listed: bool) -> tuple[float, ...]:
    """One factor for each row: the head noun counts more, what follows a preposition less.

    In a list ("chair, red, wooden") no place tells the head.
    """
    words = [word for word, _ in units]
    stops = [i for i, word in enumerate(words) if word in _PREPOSITIONS]
    first = 0
    if stops and stops[0] > 0 and words[stops[0]] == "of" and words[stops[0] - 1] in _TRANSPARENT:
        first = stops.pop(0) + 1
    end = next((stop for stop in stops if stop > first), len(units))
    factors = [_TAIL_EMPHASIS if i < first or i >= end else 1.0 for i in range(len(units))]
    if end > first and not listed:
        factors[end - 1] = _HEAD_EMPHASIS
    return tuple(factor for factor, (_, count) in zip(factors, units, strict=True) for _ in range(count))


def _singulars(phrase: str) -> Iterator[str]:
    """Singular forms that a plural may stand for, the likeliest first."""
    if not phrase.endswith("s") or phrase.endswith("ss"):
        return
    if phrase.endswith("ies"):
        yield phrase[:-3] + "y"
    if phrase.endswith("ves"):
        yield phrase[:-3] + "f"
        yield phrase[:-3] + "fe"
    yield phrase[:-1]
    if phrase.endswith("es"):
        yield phrase[:-2]
