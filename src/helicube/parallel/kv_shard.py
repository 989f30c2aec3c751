"""One rank's share of the cache: its tokens of every sequence, its KV heads, all layers.

K key-value heads here, T slots, d key size, v value size. The buffers are allocated once; a sequence gets a run of
slots for its whole life, so attention reads its keys in place, in the order of their positions, without a gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from helicube.errors import DecodeError
from helicube.parallel.round_robin import RoundRobin

__all__ = ["CachedAttention", "KVShard", "Sequence"]


class CachedAttention(Protocol):
    """What the cache must know about a layer's attention."""

    num_kv_heads: int
    key_size: int
    value_size: int
    # Values are the first part of the keys (MLA).
    is_latent: bool


@dataclass(slots=True, kw_only=True)
class Sequence:
    """A request's place in the cache. Every rank of a pool has the same, as all allocate in the same order."""

    # Run of slots on each rank.
    start: int
    slots: int
    # Tokens of the whole sequence that fit.
    capacity: int
    # Tokens of the whole sequence that are cached.
    length: int = 0


class KVShard:
    """Keys and values of the tokens that one KVP rank holds.

    Args:
        layers: one per layer, already cut to this rank's heads.
        slots: T, tokens per layer.
        placement: of tokens over the KVP ranks.
        shard: this rank's KVP index.
    """

    def __init__(
        self,
        layers: list[CachedAttention],
        slots: int,
        placement: RoundRobin,
        shard: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.slots, self.placement, self.shard = slots, placement, shard
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        for a in layers:
            keys = torch.zeros(a.num_kv_heads, slots, a.key_size, dtype=dtype, device=device)
            self.keys.append(keys)
            self.values.append(
                keys[..., : a.value_size]
                if a.is_latent
                else torch.zeros(a.num_kv_heads, slots, a.value_size, dtype=dtype, device=device)
            )
        self._is_latent = [a.is_latent for a in layers]
        self._free = [(0, slots)]

    @property
    def num_bytes(self) -> int:
        """Bytes of the buffers."""
        values = sum(v.nbytes for v, latent in zip(self.values, self._is_latent, strict=True) if not latent)
        return sum(k.nbytes for k in self.keys) + values

    @property
    def free_slots(self) -> int:
        """Slots that no sequence has."""
        return sum(count for _, count in self._free)

    def allocate(self, num_tokens: int) -> Sequence | None:
        """A place for a sequence of at most `num_tokens`; None while others take up the room.

        Raises:
            DecodeError: it would not fit into an empty cache.
        """
        need = max(1, self.placement.most_held(num_tokens))
        if need > self.slots:
            most = self.placement.capacity(self.slots)
            raise DecodeError(
                f"{num_tokens} tokens do not fit the cache, which holds {most} ({self.slots} on each of "
                f"{self.placement.num_shards} shards); shorten the prompt, generate less, or raise the cache's size"
            )
        for i, (start, count) in enumerate(self._free):
            if count >= need:
                self._free[i : i + 1] = [(start + need, count - need)] if count > need else []
                return Sequence(start=start, slots=need, capacity=num_tokens)
        return None

    def free(self, sequence: Sequence) -> None:
        """Give a sequence's slots back."""
        runs = sorted([*self._free, (sequence.start, sequence.slots)])
        merged = runs[:1]
        for start, count in runs[1:]:
            last, size = merged[-1]
            if last + size == start:
                merged[-1] = (last, size + count)
            else:
                merged.append((start, count))
        self._free = merged

    def store(self, layer: int, sequence: Sequence, k_LKd: Tensor, v_LKv: Tensor) -> None:
        """Write this rank's tokens among L new ones, which follow the sequence's cached ones."""
        first, count = sequence.length, len(k_LKd)
        assert first + count <= sequence.capacity, f"{first + count} tokens exceed the reserved {sequence.capacity}"
        begin, end = self.held(first), self.held(first + count)
        if begin == end:
            return
        if end - begin < count:
            mine = [i for i in range(count) if self.placement.owner(first + i) == self.shard]
            k_LKd, v_LKv = k_LKd[mine], v_LKv[mine]
        place = slice(sequence.start + begin, sequence.start + end)
        self.keys[layer][:, place] = k_LKd.transpose(0, 1)
        if not self._is_latent[layer]:
            self.values[layer][:, place] = v_LKv.transpose(0, 1)

    def held(self, length: int) -> int:
        """How many of a sequence's first `length` tokens lie here."""
        return self.placement.held(length, self.shard)

    def view(self, layer: int, sequence: Sequence) -> tuple[Tensor, Tensor]:
        """Keys (K, slots, d) and values (K, slots, v) of a sequence; those beyond what is held are undefined."""
        place = slice(sequence.start, sequence.start + sequence.slots)
        return self.keys[layer][:, place], self.values[layer][:, place]
