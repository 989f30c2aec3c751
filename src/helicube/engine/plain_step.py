"""One decode step in PyTorch's operators on static buffers: reads and advances a sampling state, returns nothing.

What a graph captures where there are no kernels of our own, and the twin of kernels.triton.decode_step. Nothing here
depends on values that only the device knows, so attention reads whole buffers, masked.

A slots, C rows per slot, R = A·C rows, H heads, M keys, d head size, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.kernels.sampling import advance
from helicube.kernels.sampling_state import SamplingState
from helicube.models.cube.decoder import CubeDecoder, Places

__all__ = ["PlainStep"]


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
