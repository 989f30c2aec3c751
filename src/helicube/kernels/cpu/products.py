"""Products of a few rows with packed matrices: the native kernels' interface for tensors.

R rows, K inputs, N outputs. Sums are float32 whatever the types of x and y; int8 and int4 weights meet x rounded to
int8 in groups of inputs (twins.py has the same mathematics in plain PyTorch).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import PackedMatrix

__all__ = ["NO_NORM", "TYPES", "Norm", "gate_up", "linear", "linear_group", "linear_range", "rows_record"]

TYPES: Final = {torch.float32: 0, torch.bfloat16: 1}
# native/types.h, Product: x; rows, norm, eps, its weight, number of matrices; matrices; low; high; y; residual; gated.
PRODUCT: Final = struct.Struct("=3qqqdqq3q3q3q9q3qq")
MAX_MATRICES: Final = 3
NO_ROWS: Final = (0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """What is done to x before a product, in float32."""

    # "none", "layer" (without affine parameters) or "rms".
    kind: str = "none"
    eps: float = 0.0
    # (K,) float32, for "rms".
    weight: Tensor | None = None


NO_NORM: Final = Norm()
NORMS: Final = {"none": 0, "layer": 1, "rms": 2}

# A matrix, the outputs low … high − 1 of it that are wanted, and where they go.
Part = tuple[PackedMatrix, int, int, Tensor]


def linear(
    library: Library, x: Tensor, matrix: PackedMatrix, *, norm: Norm = NO_NORM, residual: Tensor | None = None
) -> Tensor:
    """norm(x) Wᵀ + bias, plus the residual.

    Args:
        x: (…, K) float32 or bf16.
        residual: (…, N) float32 or bf16.

    Returns:
        (…, N) of the type of x.
    """
    n = matrix.num_outputs
    rows = _rows_of(x)
    y = rows.new_empty((len(rows), n))
    _call(library, rows, norm, [(matrix, 0, n, y)], None if residual is None else _rows_of(residual))
    return y if x.dim() == 2 else y.view(*x.shape[:-1], n)


def linear_range(
    library: Library, x: Tensor, matrix: PackedMatrix, wanted: tuple[int, int], *, norm: Norm = NO_NORM
) -> Tensor:
    """Outputs low … high − 1 alone, (…, high − low): the head over the ids that a step may choose."""
    low, high = wanted
    assert 0 <= low <= high <= matrix.num_outputs, f"outputs {low} to {high} of {matrix.num_outputs}"
    rows = _rows_of(x)
    y = rows.new_empty((len(rows), high - low))
    _call(library, rows, norm, [(matrix, low, high, y)])
    return y.view(*x.shape[:-1], high - low)


def linear_group(
    library: Library, x: Tensor, matrices: Sequence[PackedMatrix], *, norm: Norm = NO_NORM
) -> list[Tensor]:
    """Up to three products of the same x in one call: queries, keys and values."""
    rows = _rows_of(x)
    parts = [(m, 0, m.num_outputs, rows.new_empty((len(rows), m.num_outputs))) for m in matrices]
    _call(library, rows, norm, parts)
    return [y.view(*x.shape[:-1], n) for _, _, n, y in parts]


def gate_up(library: Library, x: Tensor, gate: PackedMatrix, up: PackedMatrix, *, norm: Norm = NO_NORM) -> Tensor:
    """silu(x Gᵀ + g) · (x Uᵀ + u): the middle of a SwiGLU; (…, N)."""
    n = gate.num_outputs
    assert up.num_outputs == n, f"gate has {n} outputs, up {up.num_outputs}"
    rows = _rows_of(x)
    y = rows.new_empty((len(rows), n))
    _call(library, rows, norm, [(gate, 0, n, y), (up, 0, n, y)], gated=True)
    return y.view(*x.shape[:-1], n)


def rows_record(x: Tensor | None) -> tuple[int, int, int]:
    """native/types.h, Rows."""
    return NO_ROWS if x is None else (x.data_ptr(), x.stride(0), TYPES[x.dtype])


def _rows_of(x: Tensor) -> Tensor:
    """(R, K) with contiguous rows."""
    rows = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()


def _call(
    library: Library,
    x: Tensor,
    norm: Norm,
    parts: Sequence[Part],
    residual: Tensor | None = None,
    *,
    gated: bool = False,
) -> None:
    num_rows, num_inputs = x.shape
    addresses, lows, highs, outputs = [0, 0, 0], [0, 0, 0], [0, 0, 0], [0] * 9
    for i, (m, low, high, y) in enumerate(parts):
        assert m.num_inputs == num_inputs, f"x has {num_inputs} columns, the matrix {m.num_inputs} inputs"
        addresses[i], lows[i], highs[i] = m.address, low, high
        outputs[3 * i : 3 * i + 3] = y.data_ptr(), y.stride(0), TYPES[y.dtype]
    if residual is not None:
        assert residual.shape == parts[0][3].shape, f"the residual is {tuple(residual.shape)}"
    packed = PRODUCT.pack(
        *(x.data_ptr(), x.stride(0), TYPES[x.dtype]),
        *(num_rows, NORMS[norm.kind], norm.eps, norm.weight.data_ptr() if norm.weight is not None else 0, len(parts)),
        *addresses,
        *lows,
        *highs,
        *outputs,
        *rows_record(residual),
        gated,
    )
    library.product(packed, torch.get_num_threads())
