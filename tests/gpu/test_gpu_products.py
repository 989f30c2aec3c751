"""Few-row products on a GPU, at the sizes of cube-v0.5, against float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from helicube.kernels.triton.linear import linear
from helicube.kernels.triton.swiglu import swiglu
from helicube.kernels.triton.weight import KernelWeight
from triton_cases import DEVICE, FORMATS, GPU_ONLY, normal, random_weight, relative_error

pytestmark = GPU_ONLY

EPS = 1e-6
# bfloat16 keeps 8 bits: an operand is off by up to 2⁻⁹ and a result by 2⁻⁹ more.
LIMITS = {torch.bfloat16: 1e-2, torch.float32: 1e-5}


def poisoned(*shape: int, dtype: torch.dtype) -> Tensor:
    """An output in which an element that is not written shows."""
    return torch.full(shape, torch.nan, device=DEVICE, dtype=dtype)


def reference(x: Tensor, weight: KernelWeight, norm: bool) -> Tensor:
    """float64, on the operands as the kernel gets them: the norm's result is rounded to the type of x."""
    if norm:
        x = F.layer_norm(x.double(), x.shape[1:], eps=EPS).to(x.dtype)
    return x.double() @ weight.dequantize()[:, : x.shape[1]].double().T


def weight_for(form: str, n: int, k: int, dtype: torch.dtype) -> KernelWeight:
    weight = random_weight(form, n, k, group=64)
    return KernelWeight(data=weight.data.to(dtype)) if form == "dense" else weight


# Each shape as the model uses it, and an odd one: every combination would compile for minutes.
CASES = (
    (torch.bfloat16, 4608, 1536, True),
    (torch.bfloat16, 1536, 6144, False),
    (torch.bfloat16, 16387, 1536, True),
    (torch.bfloat16, 250, 200, True),
    (torch.float32, 768, 256, True),
)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("dtype", "n", "k", "norm"), CASES)
def test_linear(form: str, dtype: torch.dtype, n: int, k: int, norm: bool) -> None:
    weight = weight_for(form, n, k, dtype)
    for num_rows in (1, 2, 17):
        x, residual, bias = (normal(*s, seed=num_rows).to(dtype) for s in ((num_rows, k), (num_rows, n), (n,)))
        out = poisoned(num_rows, n, dtype=dtype)
        linear(x, weight, bias_N=bias, residual_RN=residual, norm_eps=EPS if norm else None, out=out)
        wanted = reference(x, weight, norm) + bias.double() + residual.double()
        assert relative_error(out, wanted) < LIMITS[dtype]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("hidden", "k"), [(6144, 1536), (99, 200)])
def test_swiglu(form: str, hidden: int, k: int) -> None:
    weight = weight_for(form, 2 * hidden, k, torch.bfloat16)
    for num_rows in (1, 2, 17):
        x, bias = normal(num_rows, k, seed=num_rows).bfloat16(), normal(2 * hidden, seed=2).bfloat16()
        out = poisoned(num_rows, hidden, dtype=torch.bfloat16)
        swiglu(x, weight, bias=bias, norm_eps=EPS, out=out)
        gate, up = (reference(x, weight, norm=True) + bias.double()).chunk(2, dim=1)
        assert relative_error(out, F.silu(gate) * up) < LIMITS[torch.bfloat16]


@pytest.mark.parametrize("form", FORMATS)
def test_a_row_is_the_same_bits_in_any_batch(form: str) -> None:
    weight = weight_for(form, 1536, 1536, torch.bfloat16)
    x = normal(32, 1536).bfloat16()
    x[5] = torch.nan
    whole, hidden = linear(x, weight, norm_eps=EPS), swiglu(x, weight, norm_eps=EPS)
    for num_rows in range(1, 32):
        rows = linear(x[:num_rows], weight, norm_eps=EPS)
        assert torch.equal(rows.nan_to_num(), whole[:num_rows].nan_to_num())
        rows = swiglu(x[:num_rows], weight, norm_eps=EPS)
        assert torch.equal(rows.nan_to_num(), hidden[:num_rows].nan_to_num())
    assert whole.isnan().any(dim=1).nonzero().tolist() == [[5]]
