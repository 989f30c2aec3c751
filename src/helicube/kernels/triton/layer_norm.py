"""Mean and spread of rows, as the prologue of a product.

R rows, K channels.
"""

from __future__ import annotations

import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["layer_norm_plain", "row_moments"]


@triton.jit
def row_moments(x_ptr, rows, live, x_stride, eps, K: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Mean and 1/√(variance + eps) of each row in float32; (BLOCK_R,) each.

    Blocks of columns are merged pairwise (Chan, Golub and LeVeque, 1979), because Σx² − (Σx)²/K loses every digit
    where the mean is far above the spread. The order of the sum does not depend on how many rows there are.
    """
    mean = tl.full((BLOCK_R,), 0.0, dtype=tl.float32)
    spread = tl.full((BLOCK_R,), 0.0, dtype=tl.float32)
    for start in tl.static_range(0, K, BLOCK_C):
        cols = start + tl.arange(0, BLOCK_C)
        inside = live[:, None] & (cols < K)[None, :]
        x = tl.load(x_ptr + rows[:, None] * x_stride + cols[None, :], mask=inside, other=0.0).to(tl.float32)
        count = min(K - start, BLOCK_C)
        block_mean = tl.sum(x, axis=1) / count
        apart = tl.where(inside, x - block_mean[:, None], 0.0)
        delta = block_mean - mean
        mean += delta * (count / (start + count))
        spread += tl.sum(apart * apart, axis=1) + delta * delta * (start * count / (start + count))
    return mean, tl.rsqrt(spread / K + eps)


def layer_norm_plain(x_RK: Tensor, eps: float) -> Tensor:
    """LayerNorm without affine parameters in float32, returned in the type of x: the twin of the prologue."""
    return F.layer_norm(x_RK.float(), x_RK.shape[-1:], eps=eps).to(x_RK.dtype)
