"""Product of a few rows with a weight matrix of any format: what the linear and SwiGLU kernels share.

R rows, K inputs, N outputs, G inputs per group. Reading the matrix bounds the time, so each program owns a strip of
outputs, reads that part of the matrix once, and all rows ride along.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["few_row_product"]


@triton.jit
def _inputs(x_ptr, rows, live, x_stride, ks, mean, rstd, K: tl.constexpr, NORM: tl.constexpr, COMPUTE: tl.constexpr):
    """Columns ks of x, layer-normalised when asked."""
    inside = live[:, None] & (ks < K)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_stride + ks[None, :], mask=inside, other=0.0)
    if NORM:
        # Rounded to x's own type first, as the twin rounds; padding becomes 0 again.
        x = ((x.to(tl.float32) - mean[:, None]) * rstd[:, None]).to(x.dtype)
        x = tl.where(inside, x, 0.0)
    return x.to(COMPUTE)


@triton.jit
def few_row_product(
    x_ptr, w_ptr, scale_ptr, rows, live, x_stride, outputs, real, mean, rstd,
    K: tl.constexpr, KW: tl.constexpr, FORMAT: tl.constexpr, GROUP: tl.constexpr, NORM: tl.constexpr,
    COMPUTE: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """x wᵀ in float32, (BLOCK_R, BLOCK_N), for the rows `outputs` of w that are `real`.

    The order of each sum depends on K and BLOCK_K alone, so a row's result is the same in any batch. KW ≥ K are the
    inputs that w holds: groups of int4 may end in padding.
    """
    acc = tl.full((BLOCK_R, BLOCK_N), 0.0, dtype=tl.float32)
    # 64 bits, since a matrix may hold more than 2³¹ elements.
    outputs64 = outputs.to(tl.int64)
    if FORMAT == "int4":
        SPAN: tl.constexpr = GROUP // 8
        words = w_ptr + outputs64[None, :] * (KW // 8)
        scales = scale_ptr + outputs64[None, :] * (KW // GROUP)
        for start in tl.range(0, KW // 8, BLOCK_K // 8):
            word = start + tl.arange(0, BLOCK_K // 8)
            group = word // SPAN
            inside = real[None, :] & (word < KW // 8)[:, None]
            packed = tl.load(words + word[:, None], mask=inside, other=0, eviction_policy="evict_first")
            scale = tl.load(scales + group[:, None], mask=inside, other=0.0).to(tl.float32)
            for nibble in tl.static_range(8):
                # 0x43000000 with q in bits 16 to 19 is the float32 128 + q: no conversion instruction needed.
                bits = packed << (16 - 4 * nibble) if nibble < 4 else packed >> (4 * nibble - 16)
                q = ((bits & 0xF0000) | 0x43000000).to(tl.float32, bitcast=True) - 136.0
                ks = group * GROUP + nibble * SPAN + word % SPAN
                x = _inputs(x_ptr, rows, live, x_stride, ks, mean, rstd, K, NORM, COMPUTE)
                acc = tl.dot(x, (q * scale).to(COMPUTE), acc, input_precision="ieee")
    else:
        columns = w_ptr + outputs64[None, :] * KW
        for start in tl.range(0, K, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K)
            inside = real[None, :] & (ks < K)[:, None]
            w = tl.load(columns + ks[:, None], mask=inside, other=0.0, eviction_policy="evict_first").to(COMPUTE)
            x = _inputs(x_ptr, rows, live, x_stride, ks, mean, rstd, K, NORM, COMPUTE)
            acc = tl.dot(x, w, acc, input_precision="ieee")
        if FORMAT != "dense":
            acc *= tl.load(scale_ptr + outputs, mask=real, other=0.0)[None, :]
    return acc
