"""The static key-value cache of a batch: rotated keys are stored once, and a step attends to what is filled.

R rows, H heads, S prefix slots, M keys, L new tokens, d head size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from helicube.kernels.cpu.attention import SCALE_BYTES
from helicube.kernels.cpu.twins import round_slots
from helicube.nn.cache import CacheSpec, LayerCache

__all__ = ["KVCache"]


class KVCache:
    """Static buffers, one pair per layer; who fills how much of which row is the caller's book-keeping.

    Args:
        rows: R, sequences decoded side by side.
        dtype: float32 or bfloat16; int8, with a scale in each slot (kernels/cpu/attention), for CPU kernels alone.
        zeros: makes a buffer, where not PyTorch's allocator does.
    """

    def __init__(
        self,
        spec: CacheSpec,
        rows: int,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        zeros: Callable[[Sequence[int], torch.dtype], Tensor] | None = None,
    ) -> None:
        self.spec, self.rows = spec, rows
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        for layer in spec.layers:
            # (R, H, S + max_tokens, d), or d + 4
            width = layer.head_dim + (SCALE_BYTES if dtype == torch.int8 else 0)
            shape = (rows, layer.num_heads, layer.num_prefix + spec.max_tokens, width)
            for buffers in (self.keys, self.values):
                buffers.append(zeros(shape, dtype) if zeros else torch.zeros(shape, device=device, dtype=dtype))

    def fill_prefix(self, row: int, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Store the conditioning keys and values, (r, H, S, d), of the first layers in r rows from `row` on."""
        for i, (k, v) in enumerate(pairs):
            num_rows, _, length, _ = k.shape
            num_prefix = self.spec.layers[i].num_prefix
            assert length == num_prefix, f"layer {i}: {length} conditioning tokens, the cache has {num_prefix}"
            for buffer, x in ((self.keys[i], k), (self.values[i], v)):
                held = round_slots(x) if buffer.dtype == torch.int8 else x
                buffer[row : row + num_rows, :, :num_prefix].copy_(held)

    @property
    def slot_bytes(self) -> float:
        """Bytes of a key or value per channel, its share of a scale included."""
        return self.keys[0].element_size() * self.keys[0].shape[3] / self.spec.layers[0].head_dim

    def clear(self, row: int, num_rows: int) -> None:
        """Forget what these rows hold."""
        for buffer in (*self.keys, *self.values):
            buffer[row : row + num_rows].zero_()

    def move(self, source: int, target: int, length: int) -> None:
        """Copy a row, with `length` tokens in it, over another."""
        for layer, k, v in zip(self.spec.layers, self.keys, self.values, strict=True):
            end = layer.num_prefix + length
            k[target, :, :end].copy_(k[source, :, :end])
            v[target, :, :end].copy_(v[source, :, :end])

    def layers(self, lengths: Sequence[int], num_new: int = 1, first_row: int = 0) -> list[LayerCache]:
        """Writers for the next tokens of rows first_row, first_row + 1, … which hold `lengths` tokens."""
        longest = max(lengths) + num_new
        assert self.keys[0].dtype != torch.int8, "PyTorch's attention does not read int8"
        assert longest <= self.spec.max_tokens, f"{longest} tokens exceed the cache's {self.spec.max_tokens}"
        rows = slice(first_row, first_row + len(lengths))
        if min(lengths) == max(lengths):
            return [_EvenRows(self, i, rows, lengths[0], num_new) for i in range(len(self.spec.layers))]
        assert num_new == 1, "rows of different lengths grow by one token at a time"
        device = self.keys[0].device
        places = torch.tensor(lengths, device=device)
        return [_UnevenRows(self, i, rows, places, longest) for i in range(len(self.spec.layers))]


class _EvenRows:
    """Next slots of one layer, where all rows hold as many tokens."""

    def __init__(self, cache: KVCache, index: int, rows: slice, length: int, num_new: int) -> None:
        self.start = cache.spec.layers[index].num_prefix + length
        self.end = self.start + num_new
        self.keys, self.values = cache.keys[index][rows], cache.values[index][rows]

    def extend(self, k_BHLd: Tensor, v_BHLd: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        self.keys[:, :, self.start : self.end].copy_(k_BHLd)
        self.values[:, :, self.start : self.end].copy_(v_BHLd)
        mask = None
        num_new = self.end - self.start
        if num_new > 1:
            # Bottom-right aligned: the last query sees every key.
            mask = torch.ones(num_new, self.end, dtype=torch.bool, device=k_BHLd.device).tril(self.start)
        return self.keys[:, :, : self.end], self.values[:, :, : self.end], mask


class _UnevenRows:
    """Next slot of one layer, at a place of its own in each row."""

    def __init__(self, cache: KVCache, index: int, rows: slice, places_B: Tensor, longest: int) -> None:
        num_prefix = cache.spec.layers[index].num_prefix
        self.places = places_B + num_prefix
        self.end = num_prefix + longest
        self.keys, self.values = cache.keys[index][rows], cache.values[index][rows]

    def extend(self, k_BHLd: Tensor, v_BHLd: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        row = torch.arange(len(self.places), device=self.places.device)
        self.keys[row, :, self.places] = k_BHLd[:, :, 0]
        self.values[row, :, self.places] = v_BHLd[:, :, 0]
        seen = torch.arange(self.end, device=self.places.device) <= self.places[:, None]
        return self.keys[:, :, : self.end], self.values[:, :, : self.end], seen[:, None, None]
