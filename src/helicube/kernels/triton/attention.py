"""Attention of one query per row over a long cache, cut into runs of keys that are worked on side by side.

R rows, H query heads, K key-value heads, G = H/K, T slots, d head size, S splits. Source: Dao et al., "Flash-Decoding
for long-context inference" (2023); the outputs and log-sum-exps of the splits are what Helix exchanges between ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from helicube.kernels.triton.merge import merge

__all__ = ["CachedKeys", "attend", "attend_plain", "attend_split", "attend_split_plain", "split_count"]

# Keys per turn of the loop; a split is a whole number of turns.
BLOCK_M = 64
# Keys that a split has at full length, and the most splits: a merge reads all of them at once.
SPLIT_KEYS = 128
MAX_SPLITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedKeys:
    """What each row attends to: the first prefix[r] slots and the lengths[r] slots after the first `prefix_slots`."""

    # At least R rows of (K, T, d) with contiguous channels; or (K, T, d) alone, together with `starts`.
    keys: Tensor
    values: Tensor
    # (R,) integers on the device: keys after the prefix; 0 or less for none.
    lengths: Tensor
    # Slots kept for the condition, and (R,) how many of them are filled; None for all.
    prefix_slots: int = 0
    prefix: Tensor | None = None
    # (R,) slot at which a row's slots start in a buffer that all rows share; None for 0.
    starts: Tensor | None = None


def split_count(max_keys: int) -> int:
    """Splits for a cache of that many keys. Whatever the number of rows, so that a row's sums keep their order."""
    return max(1, min(MAX_SPLITS, -(-max_keys // SPLIT_KEYS)))


@triton.jit(do_not_specialize=["num_rows"])
def _attend_kernel(
    q_ptr, k_ptr, v_ptr, length_ptr, prefix_ptr, start_ptr, o_ptr, lse_ptr, scale_log2, prefix_slots, num_rows,
    k_row, k_head, k_slot, v_row, v_head, v_slot,
    H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(0)
    # 64 bits, since a cache may hold more than 2³¹ elements.
    kv_head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(2).to(tl.int64)
    prefix = prefix_slots
    if prefix_ptr is not None:
        prefix = tl.load(prefix_ptr + row).to(tl.int32)
    num_keys = prefix + tl.maximum(tl.load(length_ptr + row).to(tl.int32), 0)
    # By the row's own length, so that all splits have work from the first step on.
    run = tl.cdiv(tl.cdiv(num_keys, SPLITS), BLOCK_M) * BLOCK_M
    first = split * run
    last = tl.minimum(first + run, num_keys)
    start = 0
    if start_ptr is not None:
        start = tl.load(start_ptr + row).to(tl.int64)

    head = tl.arange(0, BLOCK_G)
    channel = tl.arange(0, BLOCK_D)
    inside = (head < G)[:, None] & (channel < D)[None, :]
    q_place = (row * H + kv_head * G + head)[:, None] * D + channel[None, :]
    q = tl.load(q_ptr + q_place, mask=inside, other=0.0)
    k_base = k_ptr + row * k_row + kv_head * k_head + channel[:, None]
    v_base = v_ptr + row * v_row + kv_head * v_head + channel[None, :]

    top = tl.full((BLOCK_G,), float("-inf"), dtype=tl.float32)
    total = tl.full((BLOCK_G,), 0.0, dtype=tl.float32)
    acc = tl.full((BLOCK_G, BLOCK_D), 0.0, dtype=tl.float32)
    for begin in tl.range(first, last, BLOCK_M):
        key = begin + tl.arange(0, BLOCK_M)
        seen = key < last
        # The prefix may be shorter than its slots: keys are numbered without the gap.
        slot = start + tl.where(key < prefix, key, key - prefix + prefix_slots).to(tl.int64)
        k = tl.load(k_base + slot[None, :] * k_slot, mask=(channel < D)[:, None] & seen[None, :], other=0.0)
        scores = tl.where(seen[None, :], tl.dot(q, k.to(q.dtype), input_precision="ieee") * scale_log2, float("-inf"))
        # Finite: a turn has at least one key.
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        keep = tl.exp2(top - new_top)
        weight = tl.exp2(scores - new_top[:, None])
        v = tl.load(v_base + slot[:, None] * v_slot, mask=seen[:, None] & (channel < D)[None, :], other=0.0)
        acc = acc * keep[:, None]
        acc = tl.dot(weight.to(q.dtype), v.to(q.dtype), acc, input_precision="ieee")
        total = total * keep + tl.sum(weight, axis=1)
        top = new_top

    some = total > 0
    share = 1.0 / tl.where(some, total, 1.0)
    # ln 2 turns the base-2 logarithm, in which exponentials are cheap, into the natural one that a merge needs.
    lse = tl.where(some, (top + tl.log2(tl.where(some, total, 1.0))) * 0.6931471805599453, float("-inf"))
    part = (split * num_rows + row) * H + kv_head * G + head
    tl.store(o_ptr + part[:, None] * D + channel[None, :], acc * share[:, None], mask=inside)
    tl.store(lse_ptr + part, lse, mask=head < G)


def attend_split(
    q_RHd: Tensor,
    cached: CachedKeys,
    *,
    num_splits: int,
    scale: float | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of each row over each of S runs of its keys.

    Args:
        q_RHd: contiguous.
        scale: of the scores; 1/√d by default.
        out: float32 buffers for the results.

    Returns:
        Outputs (S, R, H, d), each normalised over its own keys, and natural-log LSEs (S, R, H), float32; (0, −∞) for a
        run without keys.
    """
    num_rows, num_heads, head_dim = q_RHd.shape
    keys, values = cached.keys, cached.values
    if keys.dim() == 3:
        keys, values = keys.expand(num_rows, *keys.shape), values.expand(num_rows, *values.shape)
    num_kv = keys.shape[1]
    if out is None:
        o = torch.empty(num_splits, num_rows, num_heads, head_dim, device=q_RHd.device, dtype=torch.float32)
        out = o, torch.empty(num_splits, num_rows, num_heads, device=q_RHd.device, dtype=torch.float32)
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    groups = num_heads // num_kv
    _attend_kernel[(num_splits, num_kv, num_rows)](
        q_RHd, keys, values, cached.lengths, cached.prefix, cached.starts, *out, scale * math.log2(math.e),
        cached.prefix_slots, num_rows, *keys.stride()[:3], *values.stride()[:3],
        H=num_heads, G=groups, D=head_dim, BLOCK_G=max(16, triton.next_power_of_2(groups)),
        BLOCK_D=triton.next_power_of_2(head_dim), BLOCK_M=BLOCK_M, SPLITS=num_splits, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out


def attend(q_RHd: Tensor, cached: CachedKeys, *, scale: float | None = None) -> tuple[Tensor, Tensor]:
    """Attention of each row over all its keys: output (R, H, d) in q's type and natural-log LSE (R, H)."""
    parts = attend_split(q_RHd, cached, num_splits=split_count(cached.keys.shape[-2]), scale=scale)
    return merge(*parts, dtype=q_RHd.dtype)


def attend_split_plain(
    q_RHd: Tensor, cached: CachedKeys, *, num_splits: int, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """The twin of `attend_split`, row by row in float32."""
    num_rows, num_heads, head_dim = q_RHd.shape
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    o = q_RHd.new_zeros(num_splits, num_rows, num_heads, head_dim, dtype=torch.float32)
    lse = o.new_full(o.shape[:3], -math.inf)
    for row in range(num_rows):
        slots = _slots(cached, row)
        k, v = (t if t.dim() == 3 else t[row] for t in (cached.keys, cached.values))
        run = math.ceil(math.ceil(len(slots) / num_splits) / BLOCK_M) * BLOCK_M
        for split, mine in enumerate(slots.split(run) if run else ()):
            kk, vv = (t[:, mine].float().repeat_interleave(num_heads // len(t), dim=0) for t in (k, v))
            scores = (kk @ q_RHd[row].float()[..., None])[..., 0] * scale
            o[split, row] = (scores.softmax(dim=-1)[:, None] @ vv)[:, 0]
            lse[split, row] = scores.logsumexp(dim=-1)
    return o, lse


def attend_plain(q_RHd: Tensor, cached: CachedKeys, *, scale: float | None = None) -> tuple[Tensor, Tensor]:
    """The twin of `attend`: one softmax over all keys."""
    o, lse = attend_split_plain(q_RHd, cached, num_splits=1, scale=scale)
    return o[0].to(q_RHd.dtype), lse[0]


def _slots(cached: CachedKeys, row: int) -> Tensor:
    """Slots of a row's keys, in order."""
    prefix = cached.prefix_slots if cached.prefix is None else int(cached.prefix[row])
    start = 0 if cached.starts is None else int(cached.starts[row])
    tokens = cached.prefix_slots + torch.arange(max(int(cached.lengths[row]), 0))
    return start + torch.cat([torch.arange(prefix), tokens]).to(cached.keys.device)
