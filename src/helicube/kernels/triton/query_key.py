"""RMS norm and rotation of a new token's queries and keys, and its keys and values into the cache, in one launch.

R rows, H heads, K key-value heads, d head size, T slots, P positions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["rotate_and_store", "rotate_and_store_plain"]


@triton.jit
def _rotated(source, weight_ptr, table_ptr, pair, eps, NORM: tl.constexpr, D: tl.constexpr):
    """First and second channels of the pairs of one head, normed and rotated, in float32."""
    inside = pair < D // 2
    a = tl.load(source + 2 * pair, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(source + 2 * pair + 1, mask=inside, other=0.0).to(tl.float32)
    if NORM:
        scale = tl.rsqrt(tl.sum(a * a + b * b, axis=0) / D + eps)
        a *= scale * tl.load(weight_ptr + 2 * pair, mask=inside, other=0.0).to(tl.float32)
        b *= scale * tl.load(weight_ptr + 2 * pair + 1, mask=inside, other=0.0).to(tl.float32)
    cos = tl.load(table_ptr + 2 * pair, mask=inside, other=0.0)
    sin = tl.load(table_ptr + 2 * pair + 1, mask=inside, other=0.0)
    return a * cos - b * sin, a * sin + b * cos


@triton.jit
def _rotate_and_store_kernel(
    qkv_ptr, q_weight_ptr, k_weight_ptr, table_ptr, position_ptr, q_ptr, k_ptr, v_ptr, eps, prefix_slots,
    k_row, k_head, k_slot, v_row, v_head, v_slot,
    H: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, NORM: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # 64 bits, since a cache may hold more than 2³¹ elements.
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    position = tl.load(position_ptr + row).to(tl.int64)
    live = position >= 0
    pair = tl.arange(0, BLOCK_D // 2)
    # A row that is not in use keeps its cache; its query is rotated by some angle and read by nobody.
    table = table_ptr + tl.maximum(position, 0) * D
    source = qkv_ptr + row * (H + 2 * HK) * D + head * D
    inside = pair < D // 2
    if head < H:
        a, b = _rotated(source, q_weight_ptr, table, pair, eps, NORM, D)
        query = q_ptr + (row * H + head) * D + 2 * pair
        tl.store(query, a, mask=inside)
        tl.store(query + 1, b, mask=inside)
    elif head < H + HK:
        a, b = _rotated(source, k_weight_ptr, table, pair, eps, NORM, D)
        key = k_ptr + row * k_row + (head - H) * k_head + (prefix_slots + position) * k_slot + 2 * pair
        tl.store(key, a, mask=inside & live)
        tl.store(key + 1, b, mask=inside & live)
    else:
        channel = tl.arange(0, BLOCK_D)
        v = tl.load(source + channel, mask=channel < D, other=0.0)
        value = v_ptr + row * v_row + (head - H - HK) * v_head + (prefix_slots + position) * v_slot + channel
        tl.store(value, v, mask=(channel < D) & live)


def rotate_and_store(
    qkv_RC: Tensor,
    table_Pd2: Tensor,
    positions_R: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    num_heads: int,
    norm: tuple[Tensor, Tensor] | None = None,
    eps: float = 1e-5,
    prefix_slots: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Rotated queries (R, H, d) of the new tokens, whose rotated keys and values go to the cache.

    Args:
        qkv_RC: (R, (H + 2K)·d) queries, keys, values; contiguous.
        table_Pd2: (P, d/2, 2) float32 cosines and sines (nn.rotary); channels 2i and 2i + 1 of a head are a pair.
        positions_R: place of each row's token, an integer on the device; −1 leaves that row's cache alone.
        keys, values: at least R rows of (K, T, d); written at slot prefix_slots + position.
        norm: RMSNorm weights (d,) of queries and of keys (Zhang and Sennrich, 2019); None for none.
        out: where the queries go.
    """
    num_rows, num_kv, head_dim = len(qkv_RC), keys.shape[1], keys.shape[3]
    if out is None:
        out = torch.empty(num_rows, num_heads, head_dim, device=qkv_RC.device, dtype=qkv_RC.dtype)
    q_weight, k_weight = norm if norm is not None else (None, None)
    _rotate_and_store_kernel[(num_rows, num_heads + 2 * num_kv)](
        qkv_RC, q_weight, k_weight, table_Pd2, positions_R, out, keys, values, eps, prefix_slots,
        *keys.stride()[:3], *values.stride()[:3],
        H=num_heads, HK=num_kv, D=head_dim, NORM=norm is not None, BLOCK_D=triton.next_power_of_2(head_dim),
        num_warps=1,
    )  # fmt: skip
    return out


def rotate_and_store_plain(
    qkv_RC: Tensor,
    table_Pd2: Tensor,
    positions_R: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    num_heads: int,
    norm: tuple[Tensor, Tensor] | None = None,
    eps: float = 1e-5,
    prefix_slots: int = 0,
) -> Tensor:
    """The twin of `rotate_and_store`, in float32 with one rounding at the end."""
    num_kv, head_dim = keys.shape[1], keys.shape[3]
    q, k, v = qkv_RC.unflatten(1, (-1, head_dim)).split([num_heads, num_kv, num_kv], dim=1)
    table = table_Pd2[positions_R.clamp_min(0)][:, None]
    q_weight, k_weight = norm if norm is not None else (None, None)
    q, k = _rotate(q, q_weight, table, eps), _rotate(k, k_weight, table, eps)
    live = (positions_R >= 0).nonzero()[:, 0]
    slots = positions_R[live] + prefix_slots
    keys[live, :, slots] = k[live].to(keys.dtype)
    values[live, :, slots] = v[live].to(values.dtype)
    return q


def _rotate(x_RHd: Tensor, weight: Tensor | None, table_R1d2: Tensor, eps: float) -> Tensor:
    x = x_RHd.float()
    if weight is not None:
        x = F.rms_norm(x, weight.shape, weight.float(), eps)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = table_R1d2.unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x_RHd.dtype)
