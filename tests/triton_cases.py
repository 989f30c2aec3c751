"""What tests of the Triton kernels share.

Without a GPU the kernels run in Triton's interpreter (conftest.py), in float32 alone: its bfloat16 is wrong and says
nothing.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytest.importorskip("triton")

from helicube.kernels.triton.weight import KernelWeight, kernel_weight  # noqa: E402
from helicube.nn.quantize import WeightFormat, quantize  # noqa: E402

# For modules whose tests need a GPU: pytestmark = GPU_ONLY.
GPU_ONLY = [pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cpu", reason="no CUDA device")]

FORMATS = ("dense", "int8", "int4", "fp8")

# Relative error of float32 sums of some hundred products in two orders. √K · 2⁻²⁴ is 1e-6 for K = 600; ten times that
# is still a thousand times below what a wrong mask or index makes.
TOLERANCE = 1e-5


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def random_weight(name: str, num_outputs: int, num_inputs: int, group: int = 32) -> KernelWeight:
    """A matrix in a format, as nn.quantize makes it."""
    w = normal(num_outputs, num_inputs, seed=1) / num_inputs**0.5
    if name == "dense":
        return kernel_weight(w)
    return kernel_weight(*quantize(w, WeightFormat(name=name, group=group if name == "int4" else 0)))


def relative_error(got: Tensor, wanted: Tensor) -> float:
    """‖got − wanted‖ / ‖wanted‖ in float64; NaN never passes a comparison."""
    assert got.shape == wanted.shape
    return float((got.double() - wanted.double()).norm() / wanted.double().norm())


def error(got: Tensor, wanted: Tensor) -> float:
    """The same of two that must have one type."""
    assert got.dtype == wanted.dtype
    return relative_error(got, wanted)
