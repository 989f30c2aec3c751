"""Exact merge of attention over disjoint runs of keys.

S runs, R rows, H heads, d head size. Every LSE is a natural logarithm. Source: Milakov and Gimelshein, "Online
normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["merge", "merge_plain"]


@triton.jit
def _merge_kernel(
    o_ptr, lse_ptr, out_ptr, out_lse_ptr, num_parts,
    S: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0).to(tl.int64)
    run = tl.arange(0, BLOCK_S)
    channel = tl.arange(0, BLOCK_D)
    lse = tl.load(lse_ptr + run * num_parts + part, mask=run < S, other=float("-inf"))
    top = tl.max(lse, axis=0)
    # exp(−∞ − (−∞)) is NaN: where all runs are empty, subtract 0.
    base = tl.where(top == float("-inf"), 0.0, top)
    weight = tl.exp(lse - base)
    total = tl.sum(weight, axis=0)
    some = total > 0
    share = weight / tl.where(some, total, 1.0)
    inside = (run < S)[:, None] & (channel < D)[None, :]
    o = tl.load(o_ptr + (run * num_parts + part)[:, None] * D + channel[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + part * D + channel, tl.sum(o * share[:, None], axis=0), mask=channel < D)
    tl.store(out_lse_ptr + part, tl.where(some, base + tl.log(tl.where(some, total, 1.0)), float("-inf")))


def merge(
    o_SRHd: Tensor,
    lse_SRH: Tensor,
    *,
    dtype: torch.dtype = torch.float32,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention over the union of S disjoint runs of keys from the attention over each.

    Args:
        o_SRHd: float32, contiguous, each normalised over its own keys.
        lse_SRH: float32, contiguous; −∞ for an empty run, whose output is finite.
        dtype: of the output.
        out: where output and LSE go.

    Returns:
        Output (R, H, d) and float32 LSE (R, H); (0, −∞) where every run is empty.
    """
    num_runs, num_rows, num_heads, head_dim = o_SRHd.shape
    if out is None:
        o = torch.empty(num_rows, num_heads, head_dim, device=o_SRHd.device, dtype=dtype)
        out = o, torch.empty(num_rows, num_heads, device=o_SRHd.device, dtype=torch.float32)
    parts = num_rows * num_heads
    _merge_kernel[(parts,)](
        o_SRHd, lse_SRH, *out, parts, S=num_runs, D=head_dim,
        BLOCK_S=triton.next_power_of_2(num_runs), BLOCK_D=triton.next_power_of_2(head_dim), num_warps=1,
    )  # fmt: skip
    return out


def merge_plain(o_SRHd: Tensor, lse_SRH: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """The twin of `merge`."""
    lse = lse_SRH.logsumexp(dim=0)
    share = torch.where(lse > -torch.inf, (lse_SRH - lse).exp(), 0.0)
    return (share[..., None] * o_SRHd).sum(dim=0).to(dtype), lse
