"""Single parts as training objects."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from helicube.train.objects import TrainingObject
from helicube.train.part_objects import part_noun, part_objects
from helicube.train.procedural import CLASSES, generate


@pytest.mark.parametrize(
    ("name", "noun"),
    [("wheel front left", "wheel"), ("wheels back", "wheel"), ("front wheels 2", "wheel"), ("door freezer", "door"),
     ("bun top", "bun top"), ("legs", "leg"), ("sail 3", "sail"), ("left", "left")],
)  # fmt: skip
def test_nouns_of_part_names(name: str, noun: str) -> None:
    assert part_noun(name) == noun


def made_from(item: TrainingObject, noun: str) -> list[TrainingObject]:
    return [part for part in part_objects(item) if part.class_name == noun]


def test_a_car_gives_one_wheel_with_its_hub() -> None:
    item = generate("car", 4)
    (wheel,) = made_from(item, "wheel")
    count = sum(
        int((item.face_parts == k).sum()) for k, name in enumerate(item.part_names) if name == "wheel front left"
    )
    assert len(wheel.faces) == count
    assert wheel.subclass == "wheel of car"
    assert {"wheel of a car", "a car wheel", "a wheel"} <= set(wheel.captions)
    assert any(caption.startswith("a dark gray wheel of a ") for caption in wheel.captions)
    assert wheel.split == item.split
    assert wheel.part_names == ("wheel",)


def test_four_equal_legs_give_one_leg() -> None:
    for seed in range(20):
        item = generate("table", seed)
        if "leg" in item.part_names:
            assert len(made_from(item, "leg")) == 1
            (leg,) = made_from(item, "leg")
            assert "table leg" in " ".join(leg.captions)


@pytest.mark.parametrize("name", CLASSES)
def test_parts_fill_their_own_box_and_are_distinct(name: str) -> None:
    for seed in range(2):
        item = generate(name, seed)
        parts = part_objects(item)
        assert len({part.id for part in parts}) == len(parts)
        for part in parts:
            extents = np.ptp(part.vertices, axis=0)
            assert extents.max() == pytest.approx(1.92, abs=1e-5)
            assert extents.min() >= 0.0099 * extents.max()
            assert np.abs(part.vertices.min(axis=0) + part.vertices.max(axis=0)).max() < 1e-5
            assert 8 <= len(part.faces) < len(item.faces)
            assert np.array_equal(np.unique(part.faces), np.arange(len(part.vertices)))
            edges = np.concatenate([part.faces[:, [0, 1]], part.faces[:, [1, 2]], part.faces[:, [2, 0]]])
            there, back = (edges @ weights for weights in ([1_000_000, 1], [1, 1_000_000]))
            assert np.array_equal(np.sort(there), np.sort(back)), f"{part.id} is open"


def test_objects_of_one_part_and_flat_parts_give_nothing() -> None:
    item = generate("car", 1)
    single = dataclasses.replace(item, part_names=("body",), face_parts=np.zeros_like(item.face_parts))
    assert part_objects(single) == []
    flat = dataclasses.replace(item, vertices=item.vertices * np.array([1, 1, 0.001], dtype=np.float32))
    assert all(np.ptp(part.vertices, axis=0).min() > 0.019 for part in part_objects(flat))


def test_people_s_parts_name_no_colours() -> None:
    for part in part_objects(generate("man", 2)):
        assert len(part.captions) == 2
