"""One decode step in PyTorch's operators on static buffers: reads and advances a sampling state, returns nothing.

What a graph captures where there are no kernels of our own, and the twin of kernels.triton.decode_step. Nothing here
depends on values that only the device knows, so attention reads whole buffers, masked.

A slots, C rows per slot, R = A·C rows, H heads, M keys, d head size, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.engine.sampling import guide, gumbel, sample
from helicube.kernels.sampling_state import SamplingState
from helicube.models.cube.decoder import CubeDecoder, Places

__all__ = ["PlainStep", "advance"]


class PlainStep:
    """A step of the first R rows of a cache.

    Args:
        places: all positions of the cache.
    """

    def __init__(self, decoder: CubeDecoder, cache: KVCache, places: Places, state: SamplingState) -> None:
        self.decoder, self.cache, self.places, self.state = decoder, cache, places, state
        self.rows = torch.arange(len(state.tokens), device=decoder.device)

    def __call__(self) -> None:
        advance(self.state, self.logits())

    def logits(self) -> Tensor:
        """(R, V) after the tokens of the state."""
        # A free row computes something at place 0, which nobody reads and the next prompt overwrites.
        positions = self.state.positions.clamp_min(0).long()
        layers = [_StaticRows(self.cache, i, self.rows, positions) for i in range(len(self.cache.keys))]
        return self.decoder.decode(self.state.tokens[:, None], self.places.rows(positions), layers)[:, -1]


class _StaticRows:
    """Next slot of one layer, at a place of its own in each row; the whole buffer as keys."""

    def __init__(self, cache: KVCache, index: int, rows: Tensor, places_R: Tensor) -> None:
        self.keys, self.values = cache.keys[index][: len(rows)], cache.values[index][: len(rows)]
        self.rows, self.places = rows, places_R + cache.spec.layers[index].num_prefix

    def extend(self, k_RHLd: Tensor, v_RHLd: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        self.keys[self.rows, :, self.places] = k_RHLd[:, :, 0]
        self.values[self.rows, :, self.places] = v_RHLd[:, :, 0]
        seen_RM = torch.arange(self.keys.shape[2], device=self.rows.device) <= self.places[:, None]
        return self.keys, self.values, seen_RM[:, None, None]


def advance(state: SamplingState, logits_RV: Tensor) -> None:
    """Choose one id per slot as the engine does, and book it: the whole-tensor twin of kernels.triton.sampling."""
    copies = len(state.tokens) // len(state.steps)
    under_way = (state.steps >= 0) & (state.steps < state.num_tokens)
    steps = state.steps.clamp_min(0)
    logits = _guided(state, steps, logits_RV.float(), copies)
    bounds = state.ranges[steps.clamp_max(len(state.ranges) - 1)]
    ids = torch.arange(logits.shape[1], device=logits.device)
    logits = logits.masked_fill((ids < bounds[:, :1]) | (ids >= bounds[:, 1:]), -torch.inf)
    sound = torch.isfinite(logits.amax(dim=-1)) & ~logits.isnan().any(dim=-1)
    noise = gumbel(state.keys, steps.long(), 0, logits.shape[1])
    chosen = sample(logits, state.temperature, state.top_p, noise)

    place = steps.long().clamp_max(state.ids.shape[1] - 1)[:, None]
    given = state.forced.gather(1, place)[:, 0]
    chosen = torch.where(given >= 0, given, chosen)
    # Only now, since a slot may be left alone: every write is a choice between the old value and the new.
    state.ids.scatter_(1, place, torch.where(under_way, chosen, state.ids.gather(1, place)[:, 0])[:, None])
    first_failure = under_way & ~sound & (state.failed == 0)
    state.failed.copy_(torch.where(first_failure, state.steps + 1, state.failed))
    done = state.steps + 1 >= state.num_tokens
    state.steps.add_(under_way)
    rows = (t.repeat_interleave(copies) for t in (under_way, done, chosen))
    _book_rows(state, *rows)


def _guided(state: SamplingState, steps: Tensor, logits_RV: Tensor, copies: int) -> Tensor:
    """(A, V), a slot's conditioned row and its unconditioned one weighed."""
    if copies == 1:
        return logits_RV
    total = state.num_tokens.clamp_min(1)
    # In double precision, as on the host.
    gamma = (state.guidance * (total - steps) / total).float()
    return guide(logits_RV[0::2], logits_RV[1::2], gamma[:, None])


def _book_rows(state: SamplingState, under_way: Tensor, done: Tensor, chosen: Tensor) -> None:
    state.tokens.copy_(torch.where(under_way, chosen, state.tokens))
    for field, free in ((state.positions, -1), (state.lengths, 0)):
        field.copy_(torch.where(under_way, torch.where(done, free, field + 1), field))
