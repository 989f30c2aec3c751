"""One-query attention over a cache, and what happens to a new token before it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from cpu_libraries import TARGETS, library
from torch import Tensor

from helicube.kernels.cpu import attention, twins
from helicube.kernels.cpu.attention import NewToken
from helicube.nn.merge import merge_partials
from helicube.nn.prefix_attention import attend_prefix
from helicube.nn.rotary import apply_rotary, rotary_table

# Rows, heads, key-value heads, slots, key size, value size.
SIZES = [
    (1, 1, 1, 1, 1, 1),
    (2, 4, 4, 78, 64, 64),
    (1, 12, 12, 600, 128, 128),
    (3, 4, 2, 1103, 32, 32),
    (2, 6, 3, 77, 40, 24),
    (1, 18, 1, 1500, 96, 48),
]


def rand(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 1009 * len(shape) + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def cached(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    """Keys or values as a cache of that type holds them."""
    x = rand(*shape, seed=seed)
    return twins.round_slots(x) if dtype == torch.int8 else x.to(dtype)


def assert_near(got: Tensor, want: Tensor) -> None:
    # Sums of up to 1,500 terms of size 1 in float32, and exp to about 1 ulp.
    torch.testing.assert_close(got, want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", TARGETS)
def test_equal_to_its_twin(target: str, size: tuple[int, ...], dtype: torch.dtype) -> None:
    rows, heads, kv_heads, slots, d, v = size
    q = rand(rows, heads, d) * 3
    keys = cached(rows, kv_heads, slots, d, seed=1, dtype=dtype)
    values = cached(rows, kv_heads, slots, v, seed=2, dtype=dtype)
    for lengths in (None, torch.tensor([slots, 0, slots // 2][:rows])):
        o, lse = attention.attend_one(library(target), q, keys, values, lengths_B=lengths)
        want_o, want_lse = twins.attend_one(q, keys, values, lengths)
        assert_near(o, want_o)
        assert_near(lse, want_lse)


def test_equal_to_pytorch_and_to_the_prefix_attention() -> None:
    q, k, v = rand(2, 4, 64), rand(2, 4, 600, 64, seed=1), rand(2, 4, 600, 64, seed=2)
    o, lse = attention.attend_one(library(), q, k, v)
    assert_near(o, F.scaled_dot_product_attention(q[:, :, None], k, v)[:, :, 0])
    # Several queries of one sequence: the batch axis of the cache is expanded, not copied.
    limits = torch.tensor([3, 300])
    o, lse = attention.attend_one(
        library(), q, k[:1].expand(2, -1, -1, -1), v[:1].expand(2, -1, -1, -1), lengths_B=limits
    )
    want_o, want_lse = attend_prefix(q, k[0], v[0], limits.tolist(), 1 / 8)
    assert_near(o, want_o)
    assert_near(lse, want_lse)


def test_parts_merge_to_the_whole() -> None:
    """The LSE is natural: with a base-2 one the weights of the parts would be wrong."""
    q, k, v = rand(2, 4, 64), rand(2, 4, 1300, 64, seed=1), rand(2, 4, 1300, 64, seed=2)
    whole, whole_lse = attention.attend_one(library(), q, k, v)
    parts = [
        attention.attend_one(library(), q, k[:, :, at], v[:, :, at])
        for at in (slice(0, 0), slice(0, 700), slice(700, None))
    ]
    o, lse = merge_partials(*(torch.stack(t) for t in zip(*parts, strict=True)))
    assert_near(o, whole)
    assert_near(lse, whole_lse)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_a_row_depends_neither_on_its_neighbours_nor_on_the_threads(dtype: torch.dtype) -> None:
    q, k, v = rand(9, 4, 64), cached(9, 2, 1200, 64, seed=1, dtype=dtype), cached(9, 2, 1200, 64, seed=2, dtype=dtype)
    lengths = torch.tensor([1200, 1, 0, 600, 511, 512, 513, 1024, 1199])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = [
            attention.attend_one(library(), *(t[i : i + 1] for t in (q, k, v)), lengths_B=lengths[i : i + 1])
            for i in range(9)
        ]
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            for rows in (1, 2, 9):
                o, lse = attention.attend_one(library(), q[:rows], k[:rows], v[:rows], lengths_B=lengths[:rows])
                assert torch.equal(o, torch.cat([a for a, _ in alone[:rows]])), f"{count} threads, {rows} rows"
                assert torch.equal(lse, torch.cat([b for _, b in alone[:rows]])), f"{count} threads, {rows} rows"
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("where", ["q", "k", "v"])
def test_what_is_not_finite_stays_so(where: str) -> None:
    tensors = {"q": rand(2, 2, 64), "k": rand(2, 2, 600, 64, seed=1), "v": rand(2, 2, 600, 64, seed=2)}
    clean, _ = attention.attend_one(library(), *tensors.values())
    tensors[where][1, 0].view(-1)[7] = torch.nan
    o, lse = attention.attend_one(library(), *tensors.values())
    assert bool(o[1, 0].isnan().any())
    assert bool(lse[1, 0].isnan()) == (where != "v")
    assert torch.equal(o[0], clean[0])
    assert torch.equal(o[1, 1], clean[1, 1])


def test_slots_beyond_the_length_are_never_read() -> None:
    q, k, v = rand(1, 2, 64), rand(1, 2, 100, 64, seed=1), rand(1, 2, 100, 64, seed=2)
    k[:, :, 50:], v[:, :, 50:] = torch.nan, torch.nan
    o, _ = attention.attend_one(library(), q, k, v, lengths_B=torch.tensor([50]))
    want, _ = attention.attend_one(library(), q, k[:, :, :50], v[:, :, :50])
    assert torch.equal(o, want)


def test_large_scores() -> None:
    q, k, v = torch.full((1, 1, 64), 30.0), rand(1, 1, 600, 64, seed=1), rand(1, 1, 600, 64, seed=2)
    o, lse = attention.attend_one(library(), q, k * 30, v, scale=1.0)
    want_o, want_lse = twins.attend_one(q.double(), k.double() * 30, v.double(), scale=1.0)
    # Scores of 10⁴ are rounded to 10⁻³.
    torch.testing.assert_close(o, want_o, rtol=0, atol=1e-2)
    torch.testing.assert_close(lse, want_lse, rtol=1e-6, atol=0)


@pytest.mark.parametrize("length", [-1, 101])
def test_a_length_beyond_the_cache_is_refused(length: int) -> None:
    q, k = rand(1, 2, 64), rand(1, 2, 100, 64)
    with pytest.raises(IndexError, match="beyond"):
        attention.attend_one(library(), q, k, k, lengths_B=torch.tensor([length]))


def token_case(
    rows: int, heads: int, kv_heads: int, d: int, dtype: torch.dtype
) -> tuple[attention.Projections, NewToken, tuple[Tensor, Tensor]]:
    token = NewToken(
        q_norm=rand(d, seed=5),
        k_norm=rand(d, seed=6),
        norm_eps=1e-5,
        rotary="pairs",
        table=rotary_table(50, d, 10000.0),
        positions=torch.arange(rows) * 7 + 3,
        prefix=5,
    )
    keys = cached(rows + 2, kv_heads, 60, d, seed=7, dtype=dtype)
    values = cached(rows + 2, kv_heads, 60, d, seed=8, dtype=dtype)
    projections = rand(rows, heads * d), rand(rows, kv_heads * d, seed=1), rand(rows, kv_heads * d, seed=2)
    return projections, token, (keys, values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("rotary", ["pairs", "halves", "none"])
@pytest.mark.parametrize("shape", [(1, 4, 4, 64), (3, 6, 2, 24), (2, 12, 12, 128)])
def test_a_new_token(shape: tuple[int, int, int, int], rotary: str, dtype: torch.dtype) -> None:
    rows = shape[0]
    projections, token, cache = token_case(*shape, dtype)
    token = replace(token, rotary=rotary, cache_rows=torch.arange(rows) + 2)
    want_cache = tuple(t.clone() for t in cache)
    q = twins.store_token(projections, token, (want_cache[0], want_cache[1]))
    o = attention.attend_token(library(), projections, token, cache)
    # bf16 and int8 may round to the neighbour where norm and rotation differ in the last bit.
    rtol, atol = {torch.float32: (1e-5, 1e-5), torch.bfloat16: (2.0**-7, 1e-5), torch.int8: (1e-5, 4 / 127)}[dtype]
    for got, want in zip(cache, want_cache, strict=True):
        torch.testing.assert_close(attention.widen_slots(got), attention.widen_slots(want), rtol=rtol, atol=atol)
    torch.testing.assert_close(projections[0].view_as(q), q, rtol=1e-5, atol=1e-5)
    lengths = token.positions + token.prefix + 1
    want, _ = twins.attend_one(q, cache[0][2:], cache[1][2:], lengths)
    assert_near(o.view_as(want), want)


@pytest.mark.parametrize("size", [1, 24, 64, 100])
def test_rounding_to_int8_keeps_within_half_a_step(size: int) -> None:
    x = rand(2, 3, 7, size)
    x[0, 0, 0], x[1, 1, 1, 0] = 0, torch.nan
    slots = twins.round_slots(x)
    assert slots.shape == (2, 3, 7, size + attention.SCALE_BYTES)
    back = attention.widen_slots(slots)
    assert bool(back[1, 1, 1].isnan().all()), "a number that is none reaches whoever attends to it"
    x, back = x.nan_to_num(0), back.nan_to_num(0)
    x[1, 1, 1] = 0
    # Half a step, and the rounding of the scale.
    assert bool(((back - x).abs() <= x.abs().amax(dim=-1, keepdim=True) * (0.5 / 127 + 1e-6)).all())


def test_storing_alone_leaves_what_attending_leaves() -> None:
    projections, token, cache = token_case(3, 6, 2, 64, torch.float32)
    copies = tuple(t.clone() for t in projections)
    other = tuple(t.clone() for t in cache)
    attention.attend_token(library(), projections, token, cache)
    attention.store_token(library(), (copies[0], copies[1], copies[2]), token, (other[0], other[1]))
    assert torch.equal(copies[0], projections[0])
    assert torch.equal(other[0], cache[0])
    assert torch.equal(other[1], cache[1])
    table = token.table[token.positions][:, None, None]
    normed = F.rms_norm(token_case(3, 6, 2, 64, torch.float32)[0][0].view(3, 6, 1, 64), (64,), token.q_norm, 1e-5)
    torch.testing.assert_close(copies[0].view(3, 6, 1, 64), apply_rotary(normed, table), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("positions", [[0, -1], [0, 50], [0, 55]])
def test_a_position_beyond_the_cache_is_refused(positions: list[int]) -> None:
    projections, token, cache = token_case(2, 4, 4, 64, torch.float32)
    with pytest.raises(IndexError, match="beyond"):
        attention.attend_token(library(), projections, replace(token, positions=torch.tensor(positions)), cache)
    elsewhere = replace(token, cache_rows=torch.tensor([0, 4]))
    with pytest.raises(IndexError, match="beyond"):
        attention.attend_token(library(), projections, elsewhere, cache)


def test_scale_is_one_over_the_root_of_the_size() -> None:
    q, k, v = rand(1, 2, 64), rand(1, 2, 30, 64, seed=1), rand(1, 2, 30, 64, seed=2)
    got = attention.attend_one(library(), q, k, v)
    for a, b in zip(got, attention.attend_one(library(), q, k, v, scale=1 / math.sqrt(64)), strict=True):
        assert torch.equal(a, b)
