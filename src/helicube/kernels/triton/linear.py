"""Norm, product, bias and residual of a few rows in one launch.

R rows, K inputs, N outputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from helicube.kernels.triton.layer_norm import layer_norm_plain, row_moments
from helicube.kernels.triton.product import few_row_product
from helicube.kernels.triton.tiles import Tile, launch_options
from helicube.kernels.triton.weight import KernelWeight

__all__ = ["linear", "linear_plain"]


@triton.jit(do_not_specialize=["num_rows"])
def _linear_kernel(
    x_ptr, w_ptr, scale_ptr, bias_ptr, residual_ptr, out_ptr, num_rows, x_stride, eps,
    K: tl.constexpr, KW: tl.constexpr, N: tl.constexpr, FORMAT: tl.constexpr, GROUP: tl.constexpr, NORM: tl.constexpr,
    COMPUTE: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = tl.program_id(1) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = rows < num_rows
    mean = tl.full((BLOCK_R,), 0.0, dtype=tl.float32)
    rstd = mean
    if NORM:
        mean, rstd = row_moments(x_ptr, rows, live, x_stride, eps, K, BLOCK_R, BLOCK_C)
    acc = few_row_product(
        x_ptr, w_ptr, scale_ptr, rows, live, x_stride, cols, cols < N, mean, rstd,
        K, KW, FORMAT, GROUP, NORM, COMPUTE, BLOCK_R, BLOCK_N, BLOCK_K,
    )  # fmt: skip
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    place = rows[:, None] * N + cols[None, :]
    inside = live[:, None] & (cols < N)[None, :]
    if residual_ptr is not None:
        acc += tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + place, acc, mask=inside)


def linear(
    x_RK: Tensor,
    weight: KernelWeight,
    *,
    bias_N: Tensor | None = None,
    residual_RN: Tensor | None = None,
    norm_eps: float | None = None,
    out: Tensor | None = None,
    tile: Tile | None = None,
) -> Tensor:
    """norm(x) Wᵀ + bias + residual, (R, N).

    Args:
        x_RK: rows with contiguous channels.
        norm_eps: eps of a layer norm without affine parameters on x; None leaves x as it is.
        out: where the result goes; may be `residual_RN`. A new tensor of x's type otherwise.
        tile: block sizes; the table's choice otherwise.
    """
    num_rows, num_outputs = len(x_RK), weight.num_outputs
    if out is None:
        out = torch.empty(num_rows, num_outputs, device=x_RK.device, dtype=x_RK.dtype)
    options = launch_options(x_RK, weight, norm_eps, tile)
    grid = (triton.cdiv(num_outputs, options["BLOCK_N"]), triton.cdiv(num_rows, options["BLOCK_R"]))
    _linear_kernel[grid](
        x_RK, weight.data, weight.scale, bias_N, residual_RN, out, num_rows, x_RK.stride(0), norm_eps or 0.0,
        N=num_outputs, **options,
    )  # fmt: skip
    return out


def linear_plain(
    x_RK: Tensor,
    weight: KernelWeight,
    *,
    bias_N: Tensor | None = None,
    residual_RN: Tensor | None = None,
    norm_eps: float | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The twin of `linear`: norm in float32, product in float32 on dequantised weights, one rounding at the end."""
    x = x_RK if norm_eps is None else layer_norm_plain(x_RK, norm_eps)
    y = F.linear(x.float(), weight.dequantize()[:, : x.shape[1]], None if bias_N is None else bias_N.float())
    if residual_RN is not None:
        y = y + residual_RN.float()
    return y.to(dtype or x_RK.dtype)
