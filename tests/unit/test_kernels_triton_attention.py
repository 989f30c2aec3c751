"""Split attention and its merge equal one softmax over all keys, at every length and with any garbage beyond it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from helicube.kernels.triton.attention import (
    CachedKeys,
    attend,
    attend_plain,
    attend_split,
    attend_split_plain,
    split_count,
)
from helicube.kernels.triton.merge import merge, merge_plain
from helicube.nn.merge import merge_partials
from helicube.nn.prefix_attention import attend_prefix
from triton_cases import DEVICE, TOLERANCE, error, normal

PREFIX = 20


def cache(rows: int, heads: int, slots: int, size: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    return normal(rows, heads, slots, size, seed=seed), normal(rows, heads, slots, size, seed=seed + 1)


def whole(numbers: list[int]) -> Tensor:
    return torch.tensor(numbers, device=DEVICE, dtype=torch.int32)


def test_every_length_equals_one_softmax() -> None:
    lengths = [0, 1, 43, 44, 45, 555, 1083]
    q, (k, v) = normal(len(lengths), 2, 16), cache(len(lengths), 1, PREFIX + 1083, 16)
    o, lse = attend(q, CachedKeys(keys=k, values=v, lengths=whole(lengths), prefix_slots=PREFIX))
    for row, length in enumerate(lengths):
        end = PREFIX + length
        wanted, wanted_lse = attend_prefix(q[row][None], k[row], v[row], [end], 1 / math.sqrt(16))
        assert error(o[row], wanted[0]) < TOLERANCE
        assert torch.allclose(lse[row], wanted_lse[0], rtol=0, atol=1e-5)
        sdpa = F.scaled_dot_product_attention(q[row][:, None], k[row, :, :end], v[row, :, :end], enable_gqa=True)
        assert error(o[row], sdpa[:, 0]) < TOLERANCE


@pytest.mark.parametrize(("heads", "kv_heads", "size"), [(2, 2, 64), (3, 1, 48), (4, 2, 24)])
def test_split_attention_equals_its_twin(heads: int, kv_heads: int, size: int) -> None:
    lengths, prefix = whole([0, 0, 100, 130]), whole([0, 5, 20, 11])
    q, (k, v) = normal(4, heads, size), cache(4, kv_heads, PREFIX + 140, size)
    cached = CachedKeys(keys=k, values=v, lengths=lengths, prefix_slots=PREFIX, prefix=prefix)
    got = attend_split(q, cached, num_splits=3)
    wanted = attend_split_plain(q, cached, num_splits=3)
    assert error(got[0], wanted[0]) < TOLERANCE
    assert torch.allclose(got[1], wanted[1], rtol=0, atol=1e-5)
    assert (got[0][:, 0] == 0).all()
    assert (got[1][:, 0] == -torch.inf).all()


def test_slots_beyond_the_length_may_hold_anything() -> None:
    q, (k, v) = normal(2, 2, 16), cache(2, 2, PREFIX + 90, 16)
    cached = CachedKeys(keys=k, values=v, lengths=whole([30, 70]), prefix_slots=PREFIX, prefix=whole([20, 7]))
    clean, _ = attend(q, cached)
    for t in (k, v):
        t[0, :, PREFIX + 30 :] = torch.nan
        t[1, :, 7:PREFIX] = torch.nan
        t[1, :, PREFIX + 70 :] = torch.inf
    poisoned, _ = attend(q, cached)
    assert torch.equal(clean, poisoned)


def test_large_scores_do_not_overflow() -> None:
    q, (k, v) = 200 * normal(1, 1, 16), cache(1, 1, 100, 16)
    cached = CachedKeys(keys=k, values=v, lengths=whole([100]))
    o, lse = attend(q, cached)
    wanted, wanted_lse = attend_plain(q, cached)
    # Scores of some hundreds, of which float32 keeps 1e-5 each.
    assert error(o, wanted) < 1e-4
    assert error(lse, wanted_lse) < TOLERANCE


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    lengths = [3, 200, 64]
    q, (k, v) = normal(3, 2, 16), cache(3, 2, 256, 16)
    together, _ = attend(q, CachedKeys(keys=k, values=v, lengths=whole(lengths)))
    for row, length in enumerate(lengths):
        mine = CachedKeys(keys=k[row : row + 1], values=v[row : row + 1], lengths=whole([length]))
        alone, _ = attend(q[row : row + 1], mine)
        assert torch.equal(alone[0], together[row])


def test_runs_of_a_shared_buffer() -> None:
    # Helix keeps all sequences of a rank in one buffer (K, T, d), each from a slot of its own.
    q, (k, v) = normal(2, 4, 16), cache(1, 2, 300, 16)
    cached = CachedKeys(keys=k[0], values=v[0], lengths=whole([50, 129]), starts=whole([250, 10]))
    o, lse = attend(q, cached)
    for row, (start, length) in enumerate([(250, 50), (10, 129)]):
        mine = slice(start, start + length)
        wanted, wanted_lse = attend_prefix(q[row][None], k[0, :, mine], v[0, :, mine], [length], 0.25)
        assert error(o[row], wanted[0]) < TOLERANCE
        assert torch.allclose(lse[row], wanted_lse[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("num_runs", [1, 5, 64])
def test_merge_equals_its_twin_and_helix(num_runs: int) -> None:
    o, lse = normal(num_runs, 2, 2, 24), 3 * normal(num_runs, 2, 2, seed=5)
    lse[: num_runs // 2, 0] = -torch.inf
    lse[:, 1, 1] = -torch.inf
    o[:, 1, 1] = 0
    got, got_lse = merge(o, lse)
    for wanted, wanted_lse in (merge_plain(o, lse), merge_partials(o, lse)):
        assert error(got, wanted) < TOLERANCE
        assert torch.allclose(got_lse, wanted_lse, rtol=0, atol=1e-5)
    assert (got[1, 1] == 0).all()
    assert got_lse[1, 1] == -torch.inf


def test_splits_depend_on_the_cache_alone() -> None:
    assert [split_count(keys) for keys in (0, 1, 128, 129, 1102, 10**6)] == [1, 1, 1, 2, 9, 64]
