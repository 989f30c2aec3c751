"""Round-robin placement and the shard that follows it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helicube.errors import DecodeError, LayoutError
from helicube.models.llm_config import whole
from helicube.models.tiny import tiny_config
from helicube.nn.gqa import GqaConfig, GroupedQueryAttention
from helicube.parallel.kv_shard import KVShard, Sequence
from helicube.parallel.round_robin import RoundRobin


@given(st.integers(1, 9), st.integers(1, 20), st.integers(0, 3000))
@settings(max_examples=200, deadline=None)
def test_shards_share_any_length_within_a_block(num_shards: int, block: int, length: int) -> None:
    placement = RoundRobin(num_shards=num_shards, block=block)
    held = [placement.held(length, s) for s in range(num_shards)]
    assert sum(held) == length
    assert max(held) - min(held) <= block
    assert placement.most_held(length) == max(held)
    assert placement.most_held(placement.capacity(max(held))) <= max(held)
    assert placement.capacity(max(held)) >= length
    assert placement.most_held(placement.capacity(max(held)) + 1) > max(held)


def test_thousands_of_steps_stay_balanced_and_in_order() -> None:
    placement = RoundRobin(num_shards=4, block=16)
    for length in range(5000):
        held = [placement.held(length, s) for s in range(4)]
        assert max(held) - min(held) <= 16
        owner = placement.owner(length)
        after = [placement.held(length + 1, s) for s in range(4)]
        assert [a - b for a, b in zip(after, held, strict=True)] == [int(s == owner) for s in range(4)]


@pytest.mark.parametrize("wrong", [{"num_shards": 0}, {"num_shards": 2, "block": 0}])
def test_impossible_placements(wrong: dict[str, int]) -> None:
    with pytest.raises(LayoutError, match="at least 1"):
        RoundRobin(**wrong)


def shard(slots: int, kvp: int = 1, index: int = 0, block: int = 4) -> KVShard:
    config = tiny_config("tiny-gqa")
    assert isinstance(config.attention, GqaConfig)
    layer = GroupedQueryAttention(config.attention, whole(config))
    return KVShard([layer], slots, RoundRobin(num_shards=kvp, block=block), index)


@pytest.mark.parametrize("chunk", [1, 3, 16, 50])
def test_tokens_lie_where_they_belong(chunk: int) -> None:
    """Keys that say their own position: each shard holds its own, in order, however they came."""
    shards = [shard(64, kvp=3, index=i) for i in range(3)]
    sequences = [s.allocate(100) for s in shards]
    positions = torch.arange(100.0)
    for start in range(0, 100, chunk):
        piece = positions[start : start + chunk, None, None].expand(-1, 4, 8)
        for one, sequence in zip(shards, sequences, strict=True):
            assert sequence is not None
            one.store(0, sequence, piece, -piece)
            sequence.length += len(piece)
    for index, (one, sequence) in enumerate(zip(shards, sequences, strict=True)):
        assert sequence is not None
        keys, values = one.view(0, sequence)
        mine = [p for p in range(100) if p // 4 % 3 == index]
        assert one.held(100) == len(mine)
        assert keys[2, : len(mine), 5].tolist() == mine
        assert values[2, : len(mine), 5].tolist() == [-p for p in mine]


def test_thousands_of_generated_tokens_stay_balanced_in_the_cache() -> None:
    """Not the formula but the buffers: a prompt in one piece, then 3,000 tokens one by one over three shards."""
    shards = [shard(1100, kvp=3, index=i, block=16) for i in range(3)]
    sequences = [s.allocate(3037) for s in shards]
    for first, count in [(0, 37), *((n, 1) for n in range(37, 3037))]:
        # Positions from 1 on, so that what was never written is 0.
        piece = torch.arange(first + 1.0, first + count + 1)[:, None, None].expand(-1, 4, 8)
        for one, sequence in zip(shards, sequences, strict=True):
            assert sequence is not None
            one.store(0, sequence, piece, piece)
            sequence.length += count
        if first % 50 == 0:
            written = [int(one.keys[0][0, :, 0].count_nonzero()) for one in shards]
            assert sum(written) == first + count
            assert max(written) - min(written) <= 16
    every = torch.cat([one.keys[0][3, :, 7] for one in shards])
    assert every[every > 0].sort().values.tolist() == list(range(1, 3038))


def test_a_sequence_too_long_for_the_cache_is_told_what_fits() -> None:
    one = shard(8, kvp=2)
    # 8 slots on each of two shards, but the 17th token is the first shard's ninth.
    assert one.allocate(16) is not None
    with pytest.raises(DecodeError, match=r"17 tokens do not fit the cache, which holds 16 \(8 on each of 2 shards\)"):
        one.allocate(17)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=60))
@settings(max_examples=100, deadline=None)
def test_room_is_neither_lost_nor_given_twice(steps: list[tuple[bool, int]]) -> None:
    one = shard(40)
    held: list[Sequence] = []
    for give_back, size in steps:
        if give_back and held:
            one.free(held.pop(size % len(held)))
        else:
            found = one.allocate(size)
            if found is not None:
                held.append(found)
        taken = [t for s in held for t in range(s.start, s.start + s.slots)]
        assert len(taken) == len(set(taken))
        assert one.free_slots == 40 - len(taken)
    for sequence in held:
        one.free(sequence)
    assert one.allocate(40) is not None, "what is free must be one run again"
