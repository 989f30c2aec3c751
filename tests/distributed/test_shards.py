"""What a rank holds and what it sends."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest
import torch
from scenario import layouts_of, source_of
from torch import Tensor

from helicube.errors import PoolError
from helicube.models.loading import load_part
from helicube.models.loading_sources import DictSource
from helicube.models.tiny import tiny_config, tiny_spec
from helicube.parallel.collectives_threads import ThreadCollectives, ThreadPool
from helicube.parallel.grid import RankGrid, part_of
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout

MODELS = ["tiny-gqa", "tiny-uneven", "tiny-gqa-moe", "tiny-mla-moe"]


class CountingSource(DictSource):
    """How often each element of each tensor has been read."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.reads = {name: torch.zeros(t.shape, dtype=torch.int32) for name, t in tensors.items()}

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        region = self.reads[name][rows.start : rows.stop]
        region = region if columns is None else region[:, columns.start : columns.stop]
        region += 1
        return super().read(name, rows, columns)


def copies_allowed(name: str, layout: HelixLayout, is_mla: bool) -> int:
    """How many ranks hold each element, by the layout."""
    if re.search(r"o_proj|gate_proj|up_proj|down_proj|embed_tokens|lm_head", name):
        return 1
    if not is_mla and re.search(r"[qkv]_proj", name):
        return layout.kvp
    return layout.num_ranks


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_every_weight_is_held_as_often_as_the_layout_says(model: str, size: int) -> None:
    """Also prints the bytes per rank (pytest -rP)."""
    config, spec = tiny_config(model), tiny_spec(model)
    for layout in layouts_of(model, size):
        source = CountingSource(dict(source_of(model).tensors))
        parts = [load_part(config, source, part_of(config, layout, rank)) for rank in range(size)]
        held = [sum(p.nbytes for p in m.parameters()) for m in parts]
        sys.stdout.write(f"{model} {layout}: bytes per rank {held}\n")
        # What is read is what is held, so that counting reads counts copies.
        assert sum(held) == 4 * sum(int(reads.sum()) for reads in source.reads.values())
        for name, reads in source.reads.items():
            if name.endswith("kv_b_proj.weight"):
                # The key half by all ranks, as TPA is 1; the value half is cut like W_O.
                a = config.attention
                halves = reads.view(a.num_query_heads, -1, reads.shape[1])
                assert (halves[:, : a.nope_size] == size).all()  # type: ignore[union-attr]
                assert (halves[:, a.nope_size :] == 1).all()  # type: ignore[union-attr]
            else:
                assert (reads == copies_allowed(name, layout, spec.attention.is_mla)).all(), (name, layout)


@pytest.mark.parametrize("model", MODELS)
def test_no_kv_head_of_a_token_is_cached_twice(model: str) -> None:
    config = tiny_config(model)
    for layout in layouts_of(model, 4) + layouts_of(model, 8):
        held: Counter[tuple[int, int]] = Counter()
        for rank in range(layout.num_ranks):
            grid = RankGrid(layout=layout, rank=rank)
            for head in part_of(config, layout, rank).kv_heads:
                held[head, grid.kvp] += 1
        assert set(held.values()) == {1}
        assert len(held) == config.num_kv_heads * layout.kvp


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        ("tiny-gqa", HelixLayout(kvp=4, tpf=4)),
        ("tiny-gqa", HelixLayout(kvp=2, tpa=2, tpf=4)),
        ("tiny-uneven", HelixLayout(kvp=4, tpf=4)),
        ("tiny-uneven", HelixLayout(kvp=2, tpa=3, tpf=6)),
        ("tiny-mla", HelixLayout(kvp=2, tpf=2)),
        ("tiny-mla", HelixLayout(kvp=4, tpf=4)),
    ],
)
def test_what_a_step_sends_does_not_depend_on_the_context(model: str, layout: HelixLayout) -> None:
    config = tiny_config(model)

    def sent(collectives: ThreadCollectives) -> list[tuple[dict[str, int], dict[str, int]]]:
        decoder = HelixDecoder(config, source_of(model), HelixOptions(layout=layout, cache_slots=4096), collectives)
        sequences = [s for _ in range(3) if (s := decoder.cache.allocate(2000)) is not None]
        found = []
        for length in (0, 5, 1990):
            for sequence in sequences:
                sequence.length = length
            collectives.traffic.reset()
            decoder.step(sequences, torch.ones(3, 1, dtype=torch.long))
            found.append((dict(collectives.traffic.bytes_sent), dict(collectives.traffic.calls)))
        return found

    heads = -(-config.attention.num_query_heads // layout.tpa // layout.kvp)
    width = config.attention.kv_rank if model == "tiny-mla" else config.attention.head_dim  # type: ignore[union-attr]
    # Per layer: to each peer 3 rows of the heads that it merges, each with its LSE, in float32.
    exchange = config.num_layers * (layout.kvp - 1) * 3 * heads * (width + 1) * 4
    for per_rank in ThreadPool(layout.num_ranks).run(sent):
        assert per_rank[0] == per_rank[1] == per_rank[2]
        bytes_sent, calls = per_rank[0]
        assert (bytes_sent["all_to_all"], calls["all_to_all"]) == (exchange, config.num_layers)
        # Two per layer and one of the embedding. Their bytes, and those of experts, test_gloo weighs on the wire.
        assert calls["all_reduce"] == 2 * config.num_layers + 1


def test_cache_memory_falls_with_kvp_and_tpa() -> None:
    config = tiny_config("tiny-gqa")

    def cache_bytes(layout: HelixLayout) -> int:
        from helicube.parallel.round_robin import RoundRobin

        slots = RoundRobin(num_shards=layout.kvp, block=16).most_held(8192)
        options = HelixOptions(layout=layout, cache_slots=slots)
        return ThreadPool(layout.num_ranks).run(
            lambda c: HelixDecoder(config, source_of("tiny-gqa"), options, c).cache.num_bytes
        )[0]

    whole = cache_bytes(HelixLayout())
    assert whole == 2 * 2 * 4 * 8 * 8192 * 4
    assert cache_bytes(HelixLayout(kvp=4, tpf=4)) == whole // 4
    assert cache_bytes(HelixLayout(kvp=2, tpa=2, tpf=4)) == whole // 4
    assert cache_bytes(HelixLayout(tpa=4, tpf=4)) == whole // 4


@pytest.mark.parametrize("layout", [HelixLayout(tpa=2, tpf=2), HelixLayout(kvp=2, tpf=1, ep=2)])
def test_a_layout_that_was_not_validated_is_not_run(layout: HelixLayout) -> None:
    """Two ranks on 3 KV heads, or experts of a dense model: half of the heads would silently be lost."""
    with pytest.raises(AssertionError, match="validate the layout"):
        part_of(tiny_config("tiny-uneven"), layout, 0)


def test_a_part_keeps_nothing_else_alive() -> None:
    """Parameters are copies of their own size, not views of what was read."""
    config = tiny_config("tiny-gqa-moe")
    for rank in range(4):
        part = load_part(config, source_of("tiny-gqa-moe"), part_of(config, HelixLayout(kvp=4, tpf=2, ep=2), rank))
        for name, parameter in part.named_parameters():
            assert parameter.untyped_storage().nbytes() == parameter.nbytes, name


def test_threads_that_call_different_collectives_do_not_meet() -> None:
    """As with a real backend, where it would hang or mix up bytes."""

    def rank(collectives: ThreadCollectives) -> None:
        if collectives.rank == 0:
            collectives.all_reduce(torch.ones(2), (0, 1))
        else:
            collectives.all_gather(torch.ones(2), (0, 1))

    with pytest.raises(PoolError, match=r"rank [01] of 2 did not answer within 0\.3 s in an all-(reduce|gather)"):
        ThreadPool(2, timeout_s=0.3).run(rank)
