"""Requests of different lengths that join and leave, under every kind of layout."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenario import layouts_of, source_of
from texts import SIZES, alone, prompt, requests, run_texts

from helicube.engine.helix_runner import HelixRunner
from helicube.engine.sampling import SamplingConfig
from helicube.engine.text import TextEngine, TextRequest, TextResult
from helicube.models.tiny import tiny_config
from helicube.parallel.collectives import Collectives
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

    assert ThreadPool(4).run(rank)[3] == ThreadPool(1).run(rank)[0]
