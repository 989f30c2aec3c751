"""Requests of different lengths that join and leave, under every kind of layout."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scenario import layouts_of, source_of
from texts import SIZES, alone, prompt, requests, run_texts

from helicube.engine.helix_runner import HelixRunner
from helicube.engine.sampling import SamplingConfig
from helicube.engine.text import TextEngine, TextRequest, TextResult
from helicube.errors import DeviceError
from helicube.models.loading import load_part
from helicube.models.loading_open import language_config
from helicube.models.tiny import TINY, random_source, tiny_config
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.collectives_threads import ThreadPool
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout

# Every layout of these sizes.
SHARDED = [
    ("tiny-mqa", 2),
    ("tiny-uneven", 1),
    ("tiny-uneven", 3),
    ("tiny-uneven", 6),
    ("tiny-gqa-moe", 4),
    ("tiny-mla-moe", 4),
]


def run(
    model: str, layout: HelixLayout, asked: list[TextRequest], slots: int = 80, num_slots: int = 3
) -> list[TextResult]:
    per_rank = ThreadPool(layout.num_ranks).run(
        lambda c: run_texts(model, layout, c, asked, slots=slots, num_slots=num_slots)
    )
    assert all([r.ids for r in other] == [r.ids for r in per_rank[0]] for other in per_rank[1:])
    return per_rank[0]


@pytest.mark.parametrize(("model", "size"), SHARDED)
def test_every_request_gets_what_it_would_get_alone(model: str, size: int) -> None:
    for layout in layouts_of(model, size):
        results = run(model, layout, requests())
        assert [r.ids for r in results] == alone(model), layout
        assert {r.finish for r in results} == {"length"}
        assert all(0 < r.first_s <= r.last_s for r in results)


def test_sampled_ids_depend_on_the_seed_and_not_on_layout_or_neighbours() -> None:
    hot = SamplingConfig(guidance_scale=0, temperature=1.0, top_p=0.9, seed=7)
    one = run("tiny-uneven", HelixLayout(), requests(hot))
    pool = run("tiny-uneven", HelixLayout(kvp=3, tpf=3), requests(hot), num_slots=7, slots=200)
    assert [r.ids for r in one] == [r.ids for r in pool]
    assert [r.ids for r in one] != alone("tiny-uneven")


def test_a_stop_id_ends_a_text_and_is_not_part_of_it() -> None:
    ids = alone("tiny-uneven")[0]
    stop = ids[4]
    first = ids.index(stop)
    asked = [TextRequest(ids=prompt(5), num_tokens=14, stop_ids=frozenset({stop})), *requests()[1:3]]
    results = run("tiny-uneven", HelixLayout(kvp=3, tpf=3), asked)
    assert (results[0].ids, results[0].finish) == (ids[:first], "stop")
    assert [r.ids for r in results[1:]] == alone("tiny-uneven")[1:3]


def test_a_request_beyond_the_cache_or_the_context_fails_alone() -> None:
    asked = requests()
    asked.insert(1, TextRequest(ids=prompt(50), num_tokens=40))
    asked.insert(3, TextRequest(ids=prompt(40), num_tokens=24))
    # 15 slots on each of 3 shards hold 36 + 3 tokens at the most.
    results = run("tiny-uneven", HelixLayout(kvp=3, tpf=3), asked, slots=15)
    assert "exceed the context of 64 tokens" in results[1].error
    assert "63 tokens do not fit the cache, which holds 39 (15 on each of 3 shards)" in results[3].error
    fitting = [r for i, r in enumerate(results) if i not in (1, 3)]
    wanted = alone("tiny-uneven")
    for result, ids, (length, count) in zip(fitting, wanted, SIZES, strict=True):
        if length + count - 1 > 39:
            assert result.finish == "error"
        else:
            assert result.ids == ids


def test_requests_wait_for_room_in_the_cache() -> None:
    """Slots for all, room for few: the others wait their turn, and none fails."""
    results = run("tiny-uneven", HelixLayout(kvp=3, tpf=3), requests(), slots=24, num_slots=7)
    assert [r.ids for r in results] == alone("tiny-uneven")


def test_a_long_decode_crosses_many_blocks() -> None:
    """300 tokens over four shards: each block boundary and every shard many times over."""
    config = replace(tiny_config("tiny-uneven"), max_context=0)
    asked = [TextRequest(ids=prompt(3), num_tokens=300)]

    def rank(collectives: Collectives) -> tuple[int, ...]:
        layout = HelixLayout(kvp=collectives.size, tpf=collectives.size)
        options = HelixOptions(layout=layout, cache_slots=304, block=4)
        decoder = HelixDecoder(config, source_of("tiny-uneven"), options, collectives)
        return TextEngine(HelixRunner(decoder)).run(asked)[0].ids

    assert ThreadPool(4).run(rank)[3] == tuple(uncached("tiny-uneven", prompt(3), 300))


@torch.inference_mode()
def uncached(model: str, ids: tuple[int, ...], count: int) -> list[int]:
    """Greedy ids of the whole model without a cache."""
    whole, found = load_part(tiny_config(model), source_of(model)), list(ids)
    for _ in range(count):
        found.append(int(whole(torch.tensor([found]))[0, -1].argmax()))
    return found[len(ids) :]


def test_angles_that_stretch_with_the_text_have_no_longest_one() -> None:
    """Dynamic scaling: a text beyond the configured context, against the whole model with the same angles."""
    config = language_config(
        {**TINY["tiny-uneven"], "max_position_embeddings": 32, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
        "tiny-dynamic",
    )
    source, asked, capacity = random_source(config), [TextRequest(ids=prompt(37), num_tokens=20)], 37 + 20 - 1

    def rank(collectives: Collectives) -> tuple[int, ...]:
        layout = HelixLayout(kvp=collectives.size, tpf=collectives.size)
        options = HelixOptions(layout=layout, cache_slots=60, block=4)
        return TextEngine(HelixRunner(HelixDecoder(config, source, options, collectives), chunk=8)).run(asked)[0].ids

    found = ThreadPool(3).run(rank)[0]
    assert len(found) == 20
    whole = load_part(config, source)
    with torch.inference_mode():
        ids = torch.tensor([(*prompt(37), *found[:-1])])
        x = whole.embed(ids)
        for layer in whole.layers:
            x = layer(x, whole.rotary(torch.arange(capacity), capacity)[None])
        assert whole.head(x)[0, 36:].argmax(-1).tolist() == list(found)
        plain = load_part(tiny_config("tiny-uneven"), source)(ids)[0, 36:]
        assert (whole.head(x)[0, 36:] - plain).abs().max() > 1e-2, "the angles make no difference"


def test_room_for_a_text_beyond_the_context_is_made_where_angles_stretch() -> None:
    plain = tiny_config("tiny-uneven")
    assert plain.most_tokens == plain.max_context == 64
    assert replace(plain, rotary=replace(plain.rotary, kind="dynamic")).most_tokens == 0


@pytest.mark.parametrize("step", [0, 3])
def test_logits_that_are_not_finite_end_their_request_alone(step: int) -> None:
    """On all ranks alike, as they choose by themselves; its neighbours and those that wait go on."""
    asked = requests()

    def rank(collectives: Collectives) -> tuple[list[TextResult], int]:
        layout = HelixLayout(kvp=collectives.size, tpf=collectives.size)
        decoder = HelixDecoder(
            tiny_config("tiny-uneven"), source_of("tiny-uneven"), HelixOptions(layout=layout, cache_slots=80, block=4),
            collectives,
        )  # fmt: skip
        runner = HelixRunner(decoder, num_slots=3, chunk=8)

        def damage(logits: torch.Tensor) -> None:
            # The first request is alone, and in the first slot, until the third step at least.
            if runner.num_steps == step + 1:
                logits[0] = torch.nan

        runner.on_logits = damage
        return TextEngine(runner).run(asked), decoder.cache.free_slots

    per_rank = ThreadPool(3).run(rank)
    for results, free in per_rank:
        assert free == 80
        assert results[0].finish == "error"
        assert f"not finite at step {step}" in results[0].error
        assert results[0].ids == alone("tiny-uneven")[0][:step]
        assert [r.ids for r in results[1:]] == alone("tiny-uneven")[1:]


@pytest.mark.parametrize("at", ["prefill", "step"])
def test_a_device_that_fails_is_an_error_and_all_room_is_given_back(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = HelixOptions(layout=HelixLayout(), cache_slots=80)
    decoder = HelixDecoder(tiny_config("tiny-uneven"), source_of("tiny-uneven"), options, SoloCollectives())
    engine = TextEngine(HelixRunner(decoder, num_slots=3, chunk=8))
    calls = []

    def failing(*_: object) -> torch.Tensor:
        calls.append(at)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with monkeypatch.context() as patch:
        patch.setattr(decoder, "take_in" if at == "prefill" else "step", failing)
        with pytest.raises(DeviceError, match="illegal memory access"):
            engine.run(requests())
    assert calls == [at]
    assert decoder.cache.free_slots == 80
    assert [r.ids for r in engine.run(requests())] == alone("tiny-uneven")
