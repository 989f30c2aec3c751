"""Memory on huge pages: with pages of 4 KiB, a guest of a virtual machine reads weights a third slower.

A matrix of a few megabytes on its own would lie across the bounds of such pages, so matrices share slabs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

__all__ = ["Slabs"]

PAGE_BYTES = 2 << 20
SLAB_BYTES = 64 << 20
# Of the start of a tensor: a page of the smallest kind, so that no two tensors share one.
ALIGNMENT = 4096


class Slabs:
    """Hands out memory; a slab is freed when the last tensor in it is.

    What nobody touches takes no memory, so that the end of a slab costs nothing.

    Args:
        huge_pages: asks for huge pages under (address, bytes).
    """

    def __init__(self, huge_pages: Callable[[int, int], int]) -> None:
        self._huge_pages = huge_pages
        self._lock = threading.Lock()
        self._slab = torch.empty(0, dtype=torch.uint8)
        self._used = 0

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A contiguous tensor of whatever was in memory."""
        num_bytes = math.prod(shape) * dtype.itemsize
        with self._lock:
            if num_bytes > SLAB_BYTES // 2:
                raw = self._new_slab(num_bytes)
            else:
                if self._used + num_bytes > len(self._slab):
                    self._slab, self._used = self._new_slab(SLAB_BYTES), 0
                raw = self._slab[self._used : self._used + num_bytes]
                self._used += -(-num_bytes // ALIGNMENT) * ALIGNMENT
        return raw.view(dtype).view(*shape)

    def zeros(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """For a key-value cache."""
        return self.empty(shape, dtype).zero_()

    def _new_slab(self, num_bytes: int) -> Tensor:
        size = -(-num_bytes // PAGE_BYTES) * PAGE_BYTES
        raw = torch.empty(size + PAGE_BYTES, dtype=torch.uint8)
        start = -raw.data_ptr() % PAGE_BYTES
        self._huge_pages(raw.data_ptr() + start, size)
        return raw[start : start + num_bytes]
