"""Gate and up projections, and silu(gate) · up, of a few rows in one launch, after an optional layer norm.

R rows, K inputs, F hidden channels. Gate and up are one matrix (2F, K), gate rows first.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from helicube.kernels.triton.layer_norm import row_moments
from helicube.kernels.triton.linear import linear_plain
from helicube.kernels.triton.product import few_row_product
from helicube.kernels.triton.tiles import Tile, launch_options
from helicube.kernels.triton.weight import KernelWeight

__all__ = ["swiglu", "swiglu_plain"]


@triton.jit(do_not_specialize=["num_rows"])
def _swiglu_kernel(
    x_ptr, w_ptr, scale_ptr, bias_ptr, out_ptr, num_rows, x_stride, eps,
    K: tl.constexpr, KW: tl.constexpr, F: tl.constexpr, FORMAT: tl.constexpr, GROUP: tl.constexpr, NORM: tl.constexpr,
    COMPUTE: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = BLOCK_N // 2
    # Gate and up of one channel are neighbours in the tile, so that one product serves both.
    lane = tl.arange(0, BLOCK_N)
    channel = tl.program_id(0) * HALF + lane // 2
    outputs = channel + (lane % 2) * F
    rows = tl.program_id(1) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = rows < num_rows
    mean = tl.full((BLOCK_R,), 0.0, dtype=tl.float32)
    rstd = mean
    if NORM:
        mean, rstd = row_moments(x_ptr, rows, live, x_stride, eps, K, BLOCK_R, BLOCK_C)
    acc = few_row_product(
        x_ptr, w_ptr, scale_ptr, rows, live, x_stride, outputs, channel < F, mean, rstd,
        K, KW, FORMAT, GROUP, NORM, COMPUTE, BLOCK_R, BLOCK_N, BLOCK_K,
    )  # fmt: skip
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + outputs, mask=channel < F, other=0.0).to(tl.float32)[None, :]
    gate, up = tl.split(tl.reshape(acc, (BLOCK_R, HALF, 2)))
    hidden = gate * tl.sigmoid(gate) * up
    cols = tl.program_id(0) * HALF + tl.arange(0, HALF)
    inside = live[:, None] & (cols < F)[None, :]
    tl.store(out_ptr + rows[:, None] * F + cols[None, :], hidden, mask=inside)


def swiglu(
    x_RK: Tensor,
    gate_up: KernelWeight,
    *,
    bias: Tensor | None = None,
    norm_eps: float | None = None,
    out: Tensor | None = None,
    tile: Tile | None = None,
) -> Tensor:
    """silu(norm(x) Wgᵀ + bg) · (norm(x) Wuᵀ + bu), (R, F) (Shazeer, "GLU Variants Improve Transformer", 2020).

    Args:
        x_RK: rows with contiguous channels.
        gate_up: (2F, K).
        bias: (2F,).
        norm_eps: eps of a layer norm without affine parameters on x; None leaves x as it is.
        out: where the result goes; a new tensor of x's type otherwise.
        tile: block sizes; the table's choice otherwise.
    """
    num_rows, hidden = len(x_RK), gate_up.num_outputs // 2
    if out is None:
        out = torch.empty(num_rows, hidden, device=x_RK.device, dtype=x_RK.dtype)
    options = launch_options(x_RK, gate_up, norm_eps, tile)
    grid = (triton.cdiv(2 * hidden, options["BLOCK_N"]), triton.cdiv(num_rows, options["BLOCK_R"]))
    _swiglu_kernel[grid](
        x_RK, gate_up.data, gate_up.scale, bias, out, num_rows, x_RK.stride(0), norm_eps or 0.0, F=hidden, **options
    )
    return out


def swiglu_plain(
    x_RK: Tensor, gate_up: KernelWeight, *, bias: Tensor | None = None, norm_eps: float | None = None
) -> Tensor:
    """The twin of `swiglu`: in float32 from the normed rows on, one rounding at the end."""
    both = linear_plain(x_RK, gate_up, bias_N=bias, norm_eps=norm_eps, dtype=torch.float32)
    gate, up = both.chunk(2, dim=-1)
    return (F.silu(gate) * up).to(x_RK.dtype)
