"""Princeton WordNet's dictionary files: words, their senses, definitions and more general senses.

Fellbaum (ed.), "WordNet: An Electronic Lexical Database", MIT Press 1998; format: the manual page wndb(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helicube.errors import InputError

__all__ = ["Sense", "WordNet", "plain_lemma"]

# Lexicographer files 3 to 28 hold the nouns, 0 the adjectives (lexnames(5)); those named here are told apart.
_CATEGORIES = {
    0: "adjective",
    5: "animal",
    6: "artifact",
    7: "attribute",
    8: "body",
    13: "food",
    17: "object",
    18: "person",
    20: "plant",
    27: "substance",
}
_MARKER = re.compile(r"\([a-z]+\)$")  # "(p)": where an adjective may stand
_COLORS = frozenset({"chromatic color", "achromatic color"})
_HYPERNYM, _SIMILAR = "@", "&"


def plain_lemma(word: str) -> str:
    """WordNet's spelling as a prompt would have it: spaces for underscores and hyphens, lower case, no apostrophes."""
    return word.replace("_", " ").replace("-", " ").replace("'s", "").replace("'", "").replace(".", "").lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sense:
    """One meaning."""

    # Part of speech and byte offset, unique: "n04177820".
    key: str
    # "artifact", "adjective", … or "other".
    category: str
    # Words that carry this meaning, plain, the commonest first; proper names are left out.
    lemmas: tuple[str, ...]
    # Definition without the examples.
    gloss: str
    # Keys of the next more general nouns, or of the adjective that this one shades.
    parents: tuple[str, ...]


class WordNet:
    """Senses of nouns and adjectives; of verbs and adverbs only which there are.

    Args:
        folder: holds data.noun, index.noun and so on (Debian: package wordnet-base, /usr/share/wordnet).

    Raises:
        InputError: a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.senses: dict[str, Sense] = {}
        self._by_word: dict[str, list[str]] = {}
        self._attested: set[str] = set()
        for part, suffix in (("n", "noun"), ("a", "adj"), ("v", "verb"), ("r", "adv")):
            try:
                self._read(folder, part, suffix)
            except (ValueError, IndexError) as error:
                raise InputError(
                    f"{folder} holds no WordNet, or a damaged one ({suffix}: {error}); get wordnet-base again"
                ) from None

    def _read(self, folder: Path, part: str, suffix: str) -> None:
        for sense in _read_senses(folder / f"data.{suffix}", part) if part in "na" else ():
            self.senses[sense.key] = sense
        for word, keys, count in _read_index(folder / f"index.{suffix}", part):
            self._by_word.setdefault(word, []).extend(keys if part in "na" else ())
            self._attested.update({word} if count else ())

    def __contains__(self, word: str) -> bool:
        """Whether a plain word is in the dictionary, as any part of speech."""
        return word in self._by_word

    def words(self) -> Iterator[str]:
        """All words and phrases, plain."""
        return iter(self._by_word)

    def is_attested(self, word: str) -> bool:
        """Whether WordNet's makers met a plain word in the text that they annotated (a hint of its frequency)."""
        return word in self._attested

    def of(self, word: str, part: str) -> list[Sense]:
        """Senses of a plain word as a noun ("n") or an adjective ("a"), the commonest first."""
        return [self.senses[key] for key in self._by_word.get(word, ()) if key[0] == part]

    def insert(self, word: str, sense: Sense) -> None:
        """Make `sense` the commonest meaning of a plain word, as a noun."""
        assert sense.key.startswith("n"), f"{sense.key} is not a noun's"
        self.senses[sense.key] = sense
        self._by_word.setdefault(word, []).insert(0, sense.key)

    def is_color(self, sense: Sense) -> bool:
        """Whether a noun's meaning is a colour."""
        if sense.category != "attribute":
            return False
        parents = [self.senses[key] for key in sense.parents]
        return not _COLORS.isdisjoint(sense.lemmas) or any(self.is_color(parent) for parent in parents)


def _lines(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise InputError(f"{path} is missing; --wordnet needs WordNet's folder (Debian: package wordnet-base)")
    with path.open(encoding="utf-8") as lines:
        yield from (line for line in lines if not line.startswith(" "))  # the licence is indented


def _read_senses(path: Path, part: str) -> Iterator[Sense]:
    for line in _lines(path):
        head, _, gloss = line.partition("|")
        fields = head.split()
        num_words = int(fields[3], 16)
        words = [_MARKER.sub("", word) for word in fields[4 : 4 + 2 * num_words : 2]]
        first = 5 + 2 * num_words
        pointers = [fields[first + 4 * i : first + 4 * i + 3] for i in range(int(fields[first - 1]))]
        wanted = _HYPERNYM if part == "n" else _SIMILAR
        yield Sense(
            key=part + fields[0],
            category=_CATEGORIES.get(int(fields[1]), "other"),
            lemmas=tuple(plain_lemma(word) for word in words if word.islower()),
            gloss=gloss.split('; "', 1)[0].strip(),
            # Only a satellite ("s") shades another adjective; a head is similar to all its satellites.
            parents=tuple(
                part + offset
                for symbol, offset, kind in pointers
                if symbol == wanted and (part == "n" or fields[2] == "s") and kind in {"n", "a", "s"}
            ),
        )


def _read_index(path: Path, part: str) -> Iterator[tuple[str, list[str], int]]:
    """Word, keys of its senses, number of senses met in annotated text."""
    for line in _lines(path):
        fields = line.split()
        num_senses = int(fields[2])
        keys = [part + offset for offset in fields[-num_senses:]]
        yield plain_lemma(fields[0]), keys, int(fields[-num_senses - 1])
