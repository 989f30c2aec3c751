"""What a model keeps while it decodes, and how its layers reach it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

__all__ = ["CacheSpec", "LayerCache", "LayerSpec"]


class LayerCache(Protocol):
    """Keys and values of one layer, as a model sees them while it decodes."""

    def extend(self, k_BHLd: Tensor, v_BHLd: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Store the keys and values of new tokens at each row's place.

        Returns:
            All keys and values stored so far, (B, H, M, d) each, and a mask (B, 1, L, M), true where a query may look,
            or None where every query may look at every key.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpec:
    """What one layer keeps per row."""

    # Key-value heads and their size.
    num_heads: int
    head_dim: int
    # Slots before the first token, filled at prefill: the conditioning tokens of a dual-stream layer.
    num_prefix: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec:
    """What a model keeps per row."""

    layers: tuple[LayerSpec, ...]
    # Slots for tokens after the prefix, the same in every layer.
    max_tokens: int
