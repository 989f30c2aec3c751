"""Captions of procedural objects name colours, counts and nouns that are true of the geometry."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helicube.train.color_names import COLOR_NAMES, color_name
from helicube.train.color_words import color_words
from helicube.train.objects import TrainingObject
from helicube.train.part_objects import part_noun
from helicube.train.procedural import CLASSES, generate
from helicube.train.procedural import palette as palettes
from helicube.train.procedural.draft import NUMBER_WORDS, plural
from helicube.train.words import article

# Parts that are one solid each, by class: the claim "with four legs" is a number of solids.
COUNTED = {
    "chair": ("leg", "wheel"), "table": ("leg",), "stool": ("leg",), "shelf": ("shelf",),
    "bookcase": ("shelf",), "cabinet": ("door", "drawer"), "desk": ("drawer",), "nightstand": ("drawer",),
    "fridge": ("door",), "sofa": ("cushion",), "barrel": ("hoop",), "cannon": ("wheel",),
}  # fmt: skip


def shares(item: TrainingObject, *, without_wheels: bool) -> dict[str, float]:
    """Share of the surface by colour name, measured on the finished mesh."""
    rolling = np.array([name.startswith("wheel") for name in item.part_names])[item.face_parts]
    a, b, c = (item.vertices[item.faces[:, i]].astype(np.float64) for i in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    if without_wheels and areas[~rolling].sum() > 0.1 * areas.sum():
        areas = np.where(rolling, 0, areas)
    found: dict[str, float] = {}
    for color, area in zip(item.face_colors, areas / areas.sum(), strict=True):
        found[color_name(color)] = found.get(color_name(color), 0.0) + float(area)
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_colour_words_are_measured_colours_the_largest_first(name: str) -> None:
    for seed in range(4):
        item = generate(name, seed)
        everything, body = shares(item, without_wheels=False), shares(item, without_wheels=True)
        largest = max(body, key=lambda key: body[key])
        for caption in item.captions:
            head = re.split(r" with | of | on | in ", caption)[0]
            assert all(everything.get(word, 0) > 0 for word in color_words(caption)), (item.id, caption, everything)
            named = color_words(head)
            if not named:
                continue
            assert item.captions_name_colors
            assert named[0] == largest or body[named[0]] == pytest.approx(body[largest], abs=1e-3), (item.id, caption)
            assert all(body[word] >= 0.149 for word in named[1:]), (item.id, caption, body)


@pytest.mark.parametrize("name", CLASSES)
def test_captions_begin_plainly_and_use_the_right_article(name: str) -> None:
    for seed in range(4):
        item = generate(name, seed)
        assert 3 <= len(item.captions) <= 6, item.captions
        assert len(set(item.captions)) == len(item.captions)
        assert not color_words(item.captions[0])
        for caption in item.captions:
            assert caption == " ".join(caption.split())
            for used, word in re.findall(r"\b(an?) (\S+)", caption):
                assert used == article(word), (item.id, caption)


def pieces_named(item: TrainingObject, noun: str) -> int:
    """Connected solids of the parts with this noun; a pedestal's post counts as a leg."""
    nouns = {noun, "post"} if noun == "leg" else {noun}
    wanted = np.array([part_noun(part) in nouns for part in item.part_names])
    faces = item.faces[wanted[item.face_parts]]
    used, local = np.unique(faces, return_inverse=True)
    local = local.reshape(-1, 3)
    ends = np.concatenate([local[:, [0, 1]], local[:, [1, 2]]])
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(used), len(used)))
    return int(connected_components(graph, directed=False)[0]) if len(used) else 0


@pytest.mark.parametrize("name", [name for name in COUNTED if name in CLASSES])
def test_counts_agree_with_the_solids(name: str) -> None:
    checked = 0
    for seed in range(40):
        item = generate(name, seed)
        for caption in item.captions:
            for number, word in enumerate(NUMBER_WORDS):
                for noun in COUNTED[name]:
                    claim = f"with {word} {plural(noun) if number > 1 else noun}"
                    if caption.endswith(claim) and not (name == "cannon" and "two" in claim):
                        assert pieces_named(item, noun) == number, (item.id, caption)
                        checked += 1
    assert checked > 3


def test_wheels_are_counted_as_parts_on_vehicles() -> None:
    checked = 0
    for name in ("car", "truck", "race car", "tractor", "emergency vehicle"):
        for seed in range(25):
            item = generate(name, seed)
            claims = [re.search(r"with (\w+) wheels$", caption) for caption in item.captions]
            for claim in filter(None, claims):
                if claim.group(1) in NUMBER_WORDS:
                    wheels = [part for part in item.part_names if part.startswith("wheel ")]
                    assert len(wheels) == NUMBER_WORDS.index(claim.group(1)), (item.id, item.captions)
                    checked += 1
    assert checked > 20


def test_front_wheels_are_in_front_and_left_is_plus_x() -> None:
    item = generate("car", 3)
    for number, part in enumerate(item.part_names):
        if part.startswith("wheel "):
            _, end, side = part.split()
            x, _, z = item.vertices[item.faces[item.face_parts == number]].reshape(-1, 3).mean(axis=0)
            assert (z > 0) == (end == "front")
            assert (x > 0) == (side == "left")


def test_palettes_cover_the_colour_names_and_people_are_described_without() -> None:
    named = {color_name(color) for color in palettes.PAINT}
    assert {"red", "blue", "green", "yellow", "orange", "purple", "pink", "white", "black", "gray", "teal"} <= named
    assert named <= set(COLOR_NAMES)
    for seed in range(10):
        for name in ("man", "woman"):
            item = generate(name, seed)
            assert not item.captions_name_colors
            assert not any(color_words(caption) for caption in item.captions)
