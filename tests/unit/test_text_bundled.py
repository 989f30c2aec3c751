"""The table that ships in the package: size, speed, and whether foreign words reach the right class."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from helicube.models.cube.text_static import BUNDLED_TEXT_WEIGHTS, StaticTextEncoder
from helicube.models.cube.text_vocab import Vocabulary
from helicube.train.class_words import CLASS_OF_WORD
from helicube.train.text_retrieval import NAMES, load_pairs, nearest_names, rank_names

# What is left of a vocabulary that cannot be asked for: articles are dropped from prompts.
ARTICLES = ["a", "an", "the"]
PAIRS = load_pairs(Path(__file__).resolve().parents[1] / "data" / "text_pairs.tsv")


@pytest.fixture(scope="module")
def encoder() -> StaticTextEncoder:
    return StaticTextEncoder.load()


def test_it_is_small_and_whole(encoder: StaticTextEncoder) -> None:
    files = sorted(path.name for path in BUNDLED_TEXT_WEIGHTS.iterdir())
    assert files == ["static.safetensors", "vocab.txt"]
    assert sum(path.stat().st_size for path in BUNDLED_TEXT_WEIGHTS.iterdir()) <= 6_000_000
    entries = (BUNDLED_TEXT_WEIGHTS / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(entries)) == len(entries) == len(encoder)
    # Every word in ASCII can be read, whatever it is.
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    assert {*letters, *(f"##{c}" for c in letters)} <= set(entries)


def test_every_entry_is_found_by_its_own_text() -> None:
    entries = (BUNDLED_TEXT_WEIGHTS / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = Vocabulary(entries)
    found = [(entry, vocabulary.tokenize(entry).rows) for entry in entries if not entry.startswith("##")]
    lost = [entry for entry, rows in found if [entries[r] for r in rows] != [entry]]
    assert sorted(lost) == ARTICLES


def share(ranks: np.ndarray, chosen: list[bool], within: int) -> float:
    return float((ranks[np.array(chosen)] < within).mean())


def test_foreign_words_reach_the_right_class(encoder: StaticTextEncoder) -> None:
    # Floors just below what was measured when the table was made; benchmarks/text_retrieval.py prints the figures.
    ranks = rank_names(encoder, PAIRS)
    every = [True for _ in PAIRS]
    blind = [pair.blind and pair.foreign for pair in PAIRS]
    assert sum(blind) > 150
    assert share(ranks, every, 1) >= 0.92
    assert share(ranks, every, 3) >= 0.96
    assert share(ranks, blind, 1) >= 0.77
    assert share(ranks, blind, 3) >= 0.90


@pytest.mark.parametrize(
    ("prompt", "noun"),
    [
        ("settee", "sofa"),
        ("a crimson settee", "sofa"),
        ("automobile", "car"),
        ("puppy", "dog"),
        ("crimson armchair", "armchair"),
        ("kitty", "cat"),
        ("lorry", "truck"),
        ("footstool", "stool"),
        ("goblet", "cup"),
        ("handgun", "pistol"),
        ("cottage", "house"),
        ("🐶", "dog"),
        ("A SETTEE!", "sofa"),
        ("settees", "sofa"),
    ],
)
def test_the_class_of_the_nearest_noun(encoder: StaticTextEncoder, prompt: str, noun: str) -> None:
    [[nearest]] = nearest_names(encoder, [prompt], 1)
    assert CLASS_OF_WORD[nearest] == CLASS_OF_WORD[noun]


def test_colors_are_near_their_kind(encoder: StaticTextEncoder) -> None:
    basic = ["red", "green", "blue", "yellow", "brown", "black", "white", "gray", "purple", "pink", "orange"]
    shades = {"crimson": "red", "scarlet": "red", "azure": "blue", "emerald green": "green", "violet": "purple"}
    similarity = encoder.pooled(list(shades)) @ encoder.pooled(basic).T
    assert [basic[i] for i in similarity.argmax(axis=1)] == list(shades.values())


def test_each_noun_is_nearest_to_itself(encoder: StaticTextEncoder) -> None:
    near = nearest_names(encoder, [f"a {name}" for name in NAMES], 1)
    assert [names[0] for names in near] == list(NAMES)


def test_same_prompt_same_states(encoder: StaticTextEncoder) -> None:
    prompts = ["A red Chair", "a RED chair", "red chair", "ｒｅｄ ｃｈａｉｒ", "the red\tchair!"]
    states = encoder.encode(prompts).states
    assert all(torch.equal(states[0], other) for other in states[1:])
    assert torch.equal(StaticTextEncoder.load().encode(prompts).states, states)


def test_it_is_fast(encoder: StaticTextEncoder) -> None:
    # Processor time, best of several: others use the machine too. The targets are 60 ms to load and 2 ms to encode.
    loads, encodes = [], []
    for _ in range(5):
        start = time.process_time()
        StaticTextEncoder.load()
        loads.append(time.process_time() - start)
    for _ in range(50):
        start = time.process_time()
        encoder.encode(["a tall red wooden chair with three legs and a crimson cushion"])
        encodes.append(time.process_time() - start)
    assert min(loads) < 0.06
    assert min(encodes) < 0.002
