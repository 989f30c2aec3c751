"""Candidates of one object: which is kept, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny import Words, tiny_weights

from helicube.cli.generate import command
from helicube.engine.sampling import SamplingConfig
from helicube.errors import InputError
from helicube.models.cube.lattice_code import Shape
from helicube.pipelines import text_to_shape
from helicube.pipelines.generate_files import GenerateOptions
from helicube.pipelines.shape_model import DefaultModel
from helicube.pipelines.soundness import USUAL_CANDIDATES, candidate_seed, solid_share
from helicube.pipelines.text_to_shape import TextToShape

SMALL = (-0.5, 0.2)


@pytest.fixture(scope="module")
def pipeline() -> TextToShape:
    return TextToShape(DefaultModel(tiny_weights(), Words()))


def balls(*places_radii: tuple[float, float]) -> Shape:
    """Balls along x: (x of the middle, radius) of each."""

    def field(points: NDArray[np.float32]) -> NDArray[np.float32]:
        inside = [r - np.linalg.norm(points - np.array([x, 0, 0]), axis=1) for x, r in places_radii]
        return np.asarray(np.max(inside, axis=0) * 10, dtype=np.float32)

    return Shape(sizes=np.ones(3, dtype=np.float32), field=field, colors=None)


def test_the_share_is_that_of_the_largest_piece() -> None:
    assert solid_share(balls((0, 0.6))) == 1.0
    # By volume: 0.4³ of 0.4³ + 0.2³.
    assert solid_share(balls((0.4, 0.4), SMALL)) == pytest.approx(0.4**3 / (0.4**3 + 0.2**3), abs=0.01)
    assert solid_share(balls((0.2, 0.6), SMALL)) == 1.0, "they overlap"
    assert solid_share(balls((0, -1.0))) == 0.0, "no surface"


def test_a_candidate_that_cannot_be_made_a_mesh_is_the_last_choice() -> None:
    broken = Shape(
        sizes=np.ones(3, np.float32), field=lambda points: np.full(len(points), np.nan, np.float32), colors=None
    )
    assert solid_share(broken) == 0.0


def test_candidates_have_seeds_of_their_own_and_the_first_that_of_the_request() -> None:
    seeds = {candidate_seed(seed, k) for seed in (0, 1, 2, 2**63 - 1) for k in range(16)}
    assert len(seeds) == 64
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert candidate_seed(7, 0) == 7


def test_the_soundest_candidate_is_kept_and_the_earliest_of_equals(
    pipeline: TextToShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, drawn = ["a chair", "a table"], [SamplingConfig(temperature=1.0, seed=s) for s in (3, 4)]
    every = [
        [pipeline.decode_many([p], [replace(c, seed=candidate_seed(c.seed, k))], best_of=1)[0].ids for k in range(3)]
        for p, c in zip(prompts, drawn, strict=True)
    ]
    shares = iter([0.5, 0.9, 0.9, 0.1, 1.0])
    monkeypatch.setattr(text_to_shape, "solid_share", lambda _: next(shares))
    found = pipeline.decode_many(prompts, drawn, best_of=3)
    # The third of the second prompt is not looked at: the second is whole.
    assert next(shares, None) is None
    assert [one.ids.tolist() for one in found] == [every[0][1].tolist(), every[1][1].tolist()]
    assert [one.seed for one in found] == [3, 4]


def test_greedy_requests_have_one_candidate(pipeline: TextToShape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_to_shape, "solid_share", lambda _: pytest.fail("there is nothing to choose from"))
    greedy = SamplingConfig(temperature=0)
    assert len(pipeline.decode_many(["a chair", "a table"], [greedy, greedy], best_of=3)) == 2


def test_the_command_draws_the_usual_number() -> None:
    [option] = [p for p in command.params if p.name == "best_of"]
    assert option.default == USUAL_CANDIDATES == GenerateOptions(prompts=("a chair",)).best_of


def test_a_number_out_of_range_is_told(pipeline: TextToShape) -> None:
    for wrong in (0, 17):
        with pytest.raises(InputError, match=f"best_of={wrong} is out of range; choose 1 to 16"):
            pipeline.decode_many(["a chair"], [SamplingConfig()], best_of=wrong)


def test_the_field_of_a_candidate_that_was_judged_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = TextToShape(DefaultModel(tiny_weights(), Words()))
    [one] = pipeline.decode_many(["a chair"], [SamplingConfig(temperature=1.0, seed=3)], best_of=1)
    decoded: list[int] = []
    decode = pipeline.model.decode

    def counted(ids: NDArray[np.int64]) -> Shape:
        decoded.append(len(ids))
        return decode(ids)

    monkeypatch.setattr(pipeline.model, "decode", counted)
    first, second = pipeline.shape(one), pipeline.shape(replace(one, sizes=np.array([1, 0.5, 1], np.float32)))
    assert len(decoded) == 1
    np.testing.assert_array_equal(second.sizes, [1, 0.5, 1])
    assert not np.array_equal(first.sizes, second.sizes), "what is kept is not changed"


def test_the_seconds_of_a_batch_are_shared_by_its_objects(
    pipeline: TextToShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More candidates than are decoded side by side: they wait for a place.
    monkeypatch.setattr(pipeline, "slots_for", lambda num_objects, guided: min(num_objects, 2))  # noqa: ARG005 - as there
    drawn = [SamplingConfig(temperature=1.0, seed=seed) for seed in range(3)]
    made = pipeline.decode_many(["a chair"] * 3, drawn, best_of=2)
    assert [(one.batch, one.num_requests, one.best_of) for one in made] == [(2, 6, 2)] * 3
    assert sum(one.own_tokens_s for one in made) == pytest.approx(made[0].tokens_s)
