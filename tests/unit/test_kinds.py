"""Collective nouns are drawn as one of the kinds of things that they name."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import Words, tiny_weights

from helicube.engine.sampling import SamplingConfig
from helicube.models.cube.kinds import KINDS, closer
from helicube.models.cube.text_static import StaticTextEncoder
from helicube.pipelines.object_steps import ObjectSteps, fingerprint
from helicube.pipelines.shape_model import DefaultModel, load_model
from helicube.pipelines.text_to_shape import TextToShape
from helicube.train.class_words import COLLECTIVE_CLASSES


@pytest.fixture(scope="module")
def pipeline() -> TextToShape:
    return TextToShape(DefaultModel(tiny_weights(), Words(), kinds=KINDS))


def test_kinds_are_those_that_people_made_twice(shared_dir: Path) -> None:
    lines = (shared_dir / "data" / "objects" / "catalog.jsonl").read_text(encoding="utf-8").splitlines()
    counts: dict[str, Counter[str]] = {name: Counter() for name in COLLECTIVE_CLASSES}
    for entry in map(json.loads, lines):
        if entry["split"] == "train" and entry["class"] in counts:
            counts[entry["class"]][entry["subclass"]] += 1
    for name, kinds in KINDS.items():
        found = [kind for kind, count in counts[name].most_common() if count > 1 and kind not in {name, "vegetable"}]
        assert set(kinds) == set(found), name
        assert [counts[name][kind] for kind in kinds] == sorted((counts[name][kind] for kind in kinds), reverse=True)


def test_seeds_that_follow_each_other_go_through_the_kinds() -> None:
    drawn = [closer("a weapon", seed)[0] for seed in range(9)]
    assert drawn == [f"a {kind}" for kind in (*KINDS["weapon"], KINDS["weapon"][0])]


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("Weapon", "sword"),
        ("a red weapon", "a red sword"),
        ("a small old wooden household item", "a small old wooden picture frame"),
        ("an animal", "an cow"),
        ("a sea animal", "a fish"),
        ("fast food", "burger"),
    ],
)
def test_words_before_that_say_how_it_looks_stay(prompt: str, asked: str) -> None:
    # Articles are not read, so "an cow" is as good.
    assert closer(prompt, 0)[0] == asked


@pytest.mark.parametrize(
    "prompt",
    [
        "a washing machine",
        "a weapon rack",
        "a space vehicle",
        "a weapon with a red handle",
        "animals",
        "a chair",
        "foody",
        "fruit and vegetable",
        "not a weapon",
    ],
)
def test_what_may_be_another_thing_stays(prompt: str) -> None:
    assert closer(prompt, 3) == (prompt, None)


def test_the_text_encoder_knows_every_kind() -> None:
    kinds = [kind for some in KINDS.values() for kind in some]
    assert StaticTextEncoder.load().encode(kinds).notes == ((),) * len(kinds)


def test_all_candidates_of_an_object_are_of_its_kind_and_the_user_is_told(pipeline: TextToShape) -> None:
    drawn = [SamplingConfig(temperature=1.0, seed=seed) for seed in (0, 1)]
    made = pipeline.decode_many(["a weapon"] * 2, drawn, best_of=3)
    plain = TextToShape(DefaultModel(tiny_weights(), Words()))
    for one, kind in zip(made, ("sword", "axe"), strict=True):
        [same] = plain.decode_many([f"a {kind}"], [replace(drawn[0], seed=one.seed)], best_of=3)
        np.testing.assert_array_equal(one.ids, same.ids)
        assert one.prompt == "a weapon"
        assert f"with seed {one.seed} it is: {kind}" in one.notes[0]


def test_the_service_asks_as_the_command_does(pipeline: TextToShape) -> None:
    steps = ObjectSteps(pipeline)
    request, notes = steps.request("a weapon", SamplingConfig(seed=1), None)
    same, none = steps.request("a axe", SamplingConfig(seed=1), None)
    assert request.prompt.cond.equal(same.prompt.cond)
    assert "it is: axe" in notes[0]
    assert none == ()


def test_stored_objects_do_not_outlive_a_change_of_kinds(pipeline: TextToShape) -> None:
    others = DefaultModel(tiny_weights(), Words(), kinds={"weapon": ("bow",)})
    none = DefaultModel(tiny_weights(), Words())
    assert len({fingerprint(one) for one in (pipeline, TextToShape(others), TextToShape(none))}) == 3


def test_models_of_ones_own_take_the_word_as_it_is(tmp_path: Path) -> None:
    from helicube.models.cube.default import load_default, save_default

    save_default(load_default(), tmp_path)
    own, bundled = load_model(str(tmp_path)), load_model(None)
    assert own.closer("a weapon", 0) == ("a weapon", ())
    assert bundled.closer("a weapon", 0)[0] == "a sword"
