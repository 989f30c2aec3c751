"""One-query attention over a cache: the native kernels' interface for tensors.

B rows, H query heads, K key-value heads, M slots, d key size, v value size. Everything is computed in float32; the
cache may be float32, bf16 or int8. A slot of int8 holds numbers from −127 to 127 and, in 4 bytes after them, their
float32 scale: its tensor is 4 longer than the key or value (`twins.round_slots`, `widen_slots`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.products import TYPES, rows_record

__all__ = [
    "SCALE_BYTES",
    "NewToken",
    "Projections",
    "attend_one",
    "attend_token",
    "cache_record",
    "channels",
    "is_index",
    "store_token",
    "widen_slots",
]

SCALE_BYTES: Final = 4
# native/types.h, Cache.
CACHE_TYPES: Final = TYPES | {torch.int8: 2}

# native/types.h, Attention and NewToken.
ATTENTION: Final = struct.Struct("=3q3qq5q5qqqqqqqqqd")
NEW_TOKEN: Final = struct.Struct("=3q3q3qqqdqqqqqqq")
# Queries, keys and values of one token per row.
Projections = tuple[Tensor, Tensor, Tensor]
ROTARY: Final = {"none": 0, "pairs": 1, "halves": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """What happens to the projections of a new token before it attends."""

    # (d,) float32 weights of an RMSNorm per head, or None.
    q_norm: Tensor | None
    k_norm: Tensor | None
    norm_eps: float
    # "none", "pairs" (channels 2i and 2i + 1 turn together) or "halves" (i and i + d/2).
    rotary: str
    # Cosines and sines by position, (positions, d/2, 2) float32, contiguous.
    table: Tensor
    # Position of each row's token, (B,) int64; it goes to slot prefix + position.
    positions: Tensor
    prefix: int = 0
    # Row of the cache that each row has, (B,) int64, where they differ.
    cache_rows: Tensor | None = None


def attend_one(
    library: Library,
    q_BHd: Tensor,
    k_BKMd: Tensor,
    v_BKMv: Tensor,
    *,
    lengths_B: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(scale · q kᵀ) v over the first keys of each row.

    Args:
        q_BHd: float32 or bf16; query heads h·H/K … (h + 1)·H/K − 1 read key-value head h.
        k_BKMd, v_BKMv: any strides but a contiguous last axis; an expanded batch axis is fine.
        lengths_B: int64 keys per row; None is all M.
        scale: None is 1/√d.

    Raises:
        IndexError: a length is negative or beyond M.

    Returns:
        Output (B, H, v) of the type of q, and the natural logarithm of Σ exp(scale · q kᵀ), (B, H) float32; (0, −∞) for
        a row without keys.
    """
    rows, heads, size = q_BHd.shape
    num_slots, value_size = k_BKMd.shape[2], channels(v_BKMv)
    assert channels(k_BKMd) == size, f"queries of {size} channels, keys of {channels(k_BKMd)}"
    assert lengths_B is None or is_index(lengths_B, rows), "lengths are contiguous int64, one per row"
    o = q_BHd.new_empty(rows, heads, value_size)
    lse = torch.empty(rows, heads)
    packed = ATTENTION.pack(
        *rows_record(q_BHd.reshape(rows, heads * size)),
        *rows_record(o.view(rows, heads * value_size)),
        lse.data_ptr(),
        *cache_record(k_BKMd),
        *cache_record(v_BKMv),
        *(rows, heads, k_BKMd.shape[1], size, value_size),
        *(_address(lengths_B), num_slots, num_slots, size**-0.5 if scale is None else scale),
    )
    library.attention(packed, torch.get_num_threads())
    return o, lse


def attend_token(library: Library, projections: Projections, token: NewToken, cache: tuple[Tensor, Tensor]) -> Tensor:
    """Norm and rotate queries and keys, store keys and values, attend to everything up to the new token; scale 1/√d.

    Args:
        projections: queries (B, H·d), keys (B, K·d) and values (B, K·v), float32, contiguous rows. Queries and keys are
            overwritten with the rotated ones.
        cache: keys (B, K, M, d) and values (B, K, M, v).

    Raises:
        IndexError: a position or a row is beyond the cache.

    Returns:
        (B, H·v) float32.
    """
    q, (keys, values) = projections[0], cache
    o = q.new_empty((len(q), q.shape[1] // channels(keys) * channels(values)))
    _token_call(library, projections, token, cache, o)
    return o


def store_token(library: Library, projections: Projections, token: NewToken, cache: tuple[Tensor, Tensor]) -> None:
    """As `attend_token`, without the attention; the rotated queries are in `projections` afterwards."""
    _token_call(library, projections, token, cache, None)


def _token_call(
    library: Library, projections: Projections, token: NewToken, cache: tuple[Tensor, Tensor], o: Tensor | None
) -> None:
    q, k, v = projections
    keys, values = cache
    rows, size, value_size = len(q), channels(keys), channels(values)
    for t in projections:
        assert t.dtype == torch.float32, "projections are float32"
        assert t.stride(1) == 1, "projections have contiguous rows"
    numbers = [t for t in (token.positions, token.cache_rows) if t is not None]
    assert all(is_index(t, rows) for t in numbers), "positions and cache rows are contiguous int64, one per row"
    assert token.table.dtype == torch.float32, "the rotary table is float32"
    assert token.table.is_contiguous(), "the rotary table is contiguous"
    num_positions = min(keys.shape[2] - token.prefix, values.shape[2] - token.prefix, len(token.table))
    attention = ATTENTION.pack(
        *rows_record(q),
        *rows_record(o),
        0,
        *cache_record(keys),
        *cache_record(values),
        *(rows, q.shape[1] // size, keys.shape[1], size, value_size),
        *(0, 0, 0, size**-0.5),
    )
    new = NEW_TOKEN.pack(
        *(*rows_record(q), *rows_record(k), *rows_record(v)),
        *(_address(token.q_norm), _address(token.k_norm), token.norm_eps, ROTARY[token.rotary]),
        *(token.table.data_ptr(), token.positions.data_ptr(), _address(token.cache_rows), token.prefix),
        *(num_positions, min(len(keys), len(values))),
    )
    library.new_token(new, attention, torch.get_num_threads())


def channels(cache: Tensor) -> int:
    """Size of the keys or values in a cache."""
    return cache.shape[3] - (SCALE_BYTES if cache.dtype == torch.int8 else 0)


def widen_slots(cache: Tensor) -> Tensor:
    """Keys or values of a cache in float32, (B, K, M, d)."""
    if cache.dtype != torch.int8:
        return cache.float()
    size = channels(cache)
    # A copy: the four bytes need not lie at a multiple of four.
    scale = cache[..., size:].clone(memory_format=torch.contiguous_format).view(torch.float32)
    return cache[..., :size].float() * scale


def is_index(t: Tensor, rows: int) -> bool:
    """Whether the native side can read it as one number per row."""
    return t.dtype == torch.int64 and t.is_contiguous() and len(t) == rows


def cache_record(t: Tensor) -> tuple[int, int, int, int, int]:
    """native/types.h, Cache."""
    assert t.stride(3) == 1 or t.shape[3] == 1, "the last axis of the cache is contiguous"
    return (t.data_ptr(), t.stride(0), t.stride(1), t.stride(2), CACHE_TYPES[t.dtype])


def _address(t: Tensor | None) -> int:
    return 0 if t is None else t.data_ptr()
