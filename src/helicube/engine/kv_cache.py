"""The key-value cache of a batch: rotated keys are stored once, and a step attends to what is filled."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from helicube.nn.cache import CacheSpec, LayerCache

__all__ = ["KVCache"]


class KVCache:
    """Static buffers, one pair per layer, and the number of tokens that all rows have filled.

    Args:
        rows: R, sequences decoded side by side.
    """

    def __init__(
        self, spec: CacheSpec, rows: int, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.spec = spec
        self.num_tokens = 0
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        for layer in spec.layers:
            # (R, H, prefix + max_tokens, d)
            shape = (rows, layer.num_heads, layer.num_prefix + spec.max_tokens, layer.head_dim)
            self.keys.append(torch.zeros(shape, device=device, dtype=dtype))
            self.values.append(torch.zeros(shape, device=device, dtype=dtype))

    def fill_prefix(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Store the conditioning keys and values, (R, H, S, d), of the first layers, and forget all tokens."""
        for i, (k, v) in enumerate(pairs):
            num_prefix = self.spec.layers[i].num_prefix
            assert k.shape[2] == num_prefix, f"layer {i}: {k.shape[2]} conditioning tokens, the cache has {num_prefix}"
            self.keys[i][:, :, :num_prefix].copy_(k)
            self.values[i][:, :, :num_prefix].copy_(v)
        self.num_tokens = 0

    def layers(self, num_new: int) -> list[LayerCache]:
        """Writers for the next `num_new` tokens; call `advance` after the step."""
        end = self.num_tokens + num_new
        assert end <= self.spec.max_tokens, f"{end} tokens exceed the cache's {self.spec.max_tokens}"
        return [_Window(self, i, num_new) for i in range(len(self.spec.layers))]

    def advance(self, num_new: int) -> None:
        self.num_tokens += num_new


class _Window:
    """Next free slots of one layer."""

    def __init__(self, cache: KVCache, index: int, num_new: int) -> None:
        self.start = cache.spec.layers[index].num_prefix + cache.num_tokens
        self.end = self.start + num_new
        self.keys, self.values = cache.keys[index], cache.values[index]

    def extend(self, k_BHLd: Tensor, v_BHLd: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        self.keys[:, :, self.start : self.end].copy_(k_BHLd)
        self.values[:, :, self.start : self.end].copy_(v_BHLd)
        mask = None
        num_new = self.end - self.start
        if num_new > 1:
            # Bottom-right aligned: the last query sees every key.
            mask = torch.ones(num_new, self.end, dtype=torch.bool, device=k_BHLd.device).tril(self.start)
        return self.keys[:, :, : self.end], self.values[:, :, : self.end], mask
