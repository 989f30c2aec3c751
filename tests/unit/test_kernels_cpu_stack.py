"""A decode step in one call gives what the decoder gives layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from cpu_libraries import TARGETS, library
from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.kernels.cpu.stack import DecodeStack
from helicube.models.cube.decode_stack import decode_stack
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.nn.linear import convert

NUM_TEXT, MAX_TOKENS = 5, 24


def tiny_decoder() -> CubeDecoder:
    torch.manual_seed(0)
    config = DecoderConfig(
        n_layer=3, n_single_layer=2, n_head=4, n_embd=96, shape_model_vocab_size=200, text_model_embed_dim=16,
        num_positions=MAX_TOKENS,
    )  # fmt: skip
    return CubeDecoder(config).eval().requires_grad_(False)


def caches(decoder: CubeDecoder, rows: int, dtype: torch.dtype = torch.float32) -> tuple[KVCache, KVCache]:
    """Two with the same conditioning tokens."""
    generator = torch.Generator().manual_seed(rows)
    cond = decoder.condition(torch.randn(rows, NUM_TEXT, 16, generator=generator))
    pairs = decoder.prefill(cond)
    spec = decoder.cache_spec(NUM_TEXT, MAX_TOKENS)
    made = KVCache(spec, rows, dtype=dtype), KVCache(spec, rows, dtype=dtype)
    for cache in made:
        cache.fill_prefix(0, pairs)
    return made


def bound_stack(stack: DecodeStack, cache: KVCache) -> DecodeStack:
    stack.bind(cache.keys, cache.values, [layer.num_prefix for layer in cache.spec.layers])
    return stack


def layer_by_layer(decoder: CubeDecoder, ids_R: Tensor, lengths: Sequence[int], cache: KVCache) -> Tensor:
    places = decoder.places(MAX_TOKENS).rows(torch.tensor(lengths))
    return decoder.decode(ids_R[:, None], places, cache.layers(lengths))[:, 0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 130])
def test_equal_to_the_decoder(target: str, rows: int) -> None:
    decoder = tiny_decoder()
    plain, fused = caches(decoder, rows)
    stack = bound_stack(decode_stack(library(target), decoder, MAX_TOKENS), fused)
    ids = torch.randint(0, 203, (MAX_TOKENS, rows), generator=torch.Generator().manual_seed(1))
    for step in range(MAX_TOKENS if rows < 130 else 3):
        want = layer_by_layer(decoder, ids[step], [step] * rows, plain)
        got = stack.step(ids[step], torch.full((rows,), step), ids_range=(0, 203))
        # Two orders of summation in float32 through five layers.
        torch.testing.assert_close(got, want, rtol=0, atol=1e-5)
        part = stack.step(ids[step], torch.full((rows,), step), ids_range=(70, 131))
        assert torch.equal(part, got[:, 70:131])
    for got, want in zip(fused.keys + fused.values, plain.keys + plain.values, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


def test_rows_at_different_positions_and_in_other_rows_of_the_cache() -> None:
    decoder = tiny_decoder()
    plain, fused = caches(decoder, 4)
    stack = bound_stack(decode_stack(library(), decoder, MAX_TOKENS), fused)
    lengths = [3, 0, 7, 1]
    for step in range(7):
        for row in range(4):
            if step < lengths[row]:
                ids = torch.tensor([step + row])
                stack.step(ids, torch.tensor([step]), ids_range=(0, 1), cache_rows_R=torch.tensor([row]))
    for new, old in zip(fused.keys + fused.values, plain.keys + plain.values, strict=True):
        old.copy_(new)
    ids = torch.tensor([9, 8, 7, 6])
    want = layer_by_layer(decoder, ids, lengths, plain)
    order = torch.tensor([2, 0, 3, 1])
    got = stack.step(ids[order], torch.tensor(lengths)[order], ids_range=(0, 203), cache_rows_R=order)
    torch.testing.assert_close(got, want[order], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "int4"])
def test_a_row_depends_neither_on_its_neighbours_nor_on_the_threads(name: str) -> None:
    decoder = tiny_decoder()
    convert(decoder, name)
    stack = decode_stack(library(), decoder, MAX_TOKENS)
    ids = torch.randint(0, 200, (5, 17), generator=torch.Generator().manual_seed(2))
    threads = torch.get_num_threads()
    seen: list[Tensor] = []
    try:
        for count, rows in ((1, 17), (2, 17), (3, 17), (2, 1), (2, 6)):
            torch.set_num_threads(count)
            bound_stack(stack, caches(decoder, 17)[0])
            logits = [
                stack.step(row[:rows].contiguous(), torch.full((rows,), i), ids_range=(0, 203))
                for i, row in enumerate(ids)
            ]
            seen.append(torch.stack(logits)[:, :1])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(logits, seen[0]) for logits in seen)


@pytest.mark.parametrize(("name", "near"), [("bfloat16", 1e-5), ("int8", 0.02), ("int4", 0.02)])
def test_weight_formats(name: str, near: float) -> None:
    """As layer by layer: to rounding, or to the few activations that round to another whole number."""
    decoder = tiny_decoder()
    convert(decoder, name, lambda layer, _: "transformer" in layer or "head" in layer)
    plain, fused = caches(decoder, 2)
    stack = bound_stack(decode_stack(library(), decoder, MAX_TOKENS), fused)
    for step in range(6):
        ids = torch.tensor([step, step + 50])
        want = layer_by_layer(decoder, ids, [step] * 2, plain)
        got = stack.step(ids, torch.full((2,), step), ids_range=(0, 203))
        assert float((got - want).norm() / want.norm()) < near


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
def test_a_short_cache(dtype: torch.dtype) -> None:
    decoder = tiny_decoder()
    plain, fused = caches(decoder, 2, dtype)
    exact, _ = caches(decoder, 2)
    stack = bound_stack(decode_stack(library(), decoder, MAX_TOKENS), fused)
    for step in range(6):
        ids = torch.tensor([step, step + 50])
        want = layer_by_layer(decoder, ids, [step] * 2, exact)
        got = stack.step(ids, torch.full((2,), step), ids_range=(0, 203))
        # Keys and values are rounded to about 8 bits.
        torch.testing.assert_close(got, want, rtol=0, atol=2e-2)
        assert not torch.equal(got, want)
    del plain


def test_numbers_beyond_their_tensors_are_refused() -> None:
    decoder = tiny_decoder()
    stack = bound_stack(decode_stack(library(), decoder, MAX_TOKENS), caches(decoder, 2)[0])
    good = torch.tensor([0, 1])
    for ids, positions, rows in (
        ([0, 203], [0, 0], None),
        ([-1, 0], [0, 0], None),
        ([0, 0], [0, MAX_TOKENS], None),
        ([0, 0], [0, -1], None),
        ([0, 0], [0, 0], [0, 2]),
        ([0, 0, 0], [0, 0, 0], None),
    ):
        cache_rows = None if rows is None else torch.tensor(rows)
        with pytest.raises(IndexError, match="beyond"):
            stack.step(torch.tensor(ids), torch.tensor(positions), ids_range=(0, 203), cache_rows_R=cache_rows)
    assert bool(stack.step(good, good, ids_range=(0, 203)).isfinite().all())


def test_what_is_not_finite_reaches_its_row_alone() -> None:
    decoder = tiny_decoder()
    stack = decode_stack(library(), decoder, MAX_TOKENS)
    cache, other = caches(decoder, 2)
    ids, positions = torch.tensor([1, 2]), torch.tensor([0, 0])
    clean = bound_stack(stack, other).step(ids, positions, ids_range=(0, 203))
    cache.keys[0][1, 0, 2, 3] = torch.nan
    got = bound_stack(stack, cache).step(ids, positions, ids_range=(0, 203))
    assert torch.equal(got[0], clean[0])
    assert bool(got[1].isnan().all())
