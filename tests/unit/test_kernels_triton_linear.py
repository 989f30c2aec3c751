"""Few-row products: every format, with and without the norm, equal their twins and the layers of nn."""

from __future__ import annotations

import pytest
import torch

from helicube.kernels.triton.linear import linear, linear_plain
from helicube.kernels.triton.swiglu import swiglu, swiglu_plain
from helicube.kernels.triton.tiles import MAX_PROGRAMS, Tile, tile_for
from helicube.kernels.triton.weight import KernelWeight, kernel_weight
from helicube.nn.mlp import SwiGLU
from helicube.nn.norm import PlainLayerNorm
from helicube.nn.quantize import WeightFormat, dequantize, quantize
from triton_cases import DEVICE, FORMATS, TOLERANCE, error, normal, random_weight

EPS = 1e-6


@pytest.mark.parametrize("norm_eps", [None, EPS])
@pytest.mark.parametrize("form", FORMATS)
def test_linear_equals_its_twin(form: str, norm_eps: float | None) -> None:
    # Odd everywhere: 70 inputs end within a group of int4, 21 outputs within a tile.
    x, weight, bias, residual = (
        normal(3, 70) + 2,
        random_weight(form, 21, 70),
        normal(21, seed=2),
        normal(3, 21, seed=3),
    )
    got = linear(x, weight, bias_N=bias, residual_RN=residual, norm_eps=norm_eps)
    wanted = linear_plain(x, weight, bias_N=bias, residual_RN=residual, norm_eps=norm_eps)
    assert error(got, wanted) < TOLERANCE


@pytest.mark.parametrize("form", FORMATS)
def test_swiglu_equals_its_twin(form: str) -> None:
    x, weight, bias = normal(3, 70), random_weight(form, 2 * 11, 70), normal(22, seed=2)
    assert (
        error(swiglu(x, weight, bias=bias, norm_eps=EPS), swiglu_plain(x, weight, bias=bias, norm_eps=EPS)) < TOLERANCE
    )


@pytest.mark.parametrize(("name", "group"), [("int8", 0), ("int4", 32), ("int4", 64)])
def test_stored_matrices_keep_their_meaning(name: str, group: int) -> None:
    form = WeightFormat(name=name, group=group)
    stored = quantize(normal(5, 100).cpu(), form)
    assert torch.equal(kernel_weight(*stored).dequantize()[:, :100], dequantize(*stored, form, 100))


def test_layers_of_nn_are_the_same_mathematics() -> None:
    mlp = SwiGLU(40, 24, bias=True).to(DEVICE)
    norm = PlainLayerNorm(40, EPS)
    gate_up = kernel_weight(torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]).detach())
    bias = torch.cat([mlp.gate_proj.bias, mlp.up_proj.bias]).detach()
    x = normal(2, 40)
    hidden = swiglu(x, gate_up, bias=bias, norm_eps=EPS)
    got = linear(hidden, kernel_weight(mlp.down_proj.weight.detach()), bias_N=mlp.down_proj.bias, residual_RN=x)
    with torch.no_grad():
        assert error(got, x + mlp(norm(x))) < TOLERANCE


def test_norm_of_rows_far_from_zero() -> None:
    # Σx² − (Σx)²/K would keep about one digit here. Two blocks of moments; 600 inputs are several turns.
    x, weight = 1000 + normal(2, 600), random_weight("dense", 8, 600)
    wanted = torch.nn.functional.layer_norm(x.double(), (600,), eps=EPS) @ weight.data.double().T
    # float32 at 1000 has steps of 6e-5 beside a spread of 1.
    assert error(linear(x, weight, norm_eps=EPS).double(), wanted) < 1e-4


def test_residual_in_place_and_another_output_type() -> None:
    x, weight, residual = normal(2, 32), random_weight("dense", 16, 32), normal(2, 16, seed=4)
    wanted = linear_plain(x, weight, residual_RN=residual)
    half = linear(x, weight, residual_RN=residual, out=torch.empty(2, 16, device=DEVICE, dtype=torch.float16))
    assert torch.allclose(half.float(), wanted, rtol=2**-10, atol=1e-6)
    assert linear(x, weight, residual_RN=residual, out=residual) is residual
    assert error(residual, wanted) < TOLERANCE


def test_rows_apart_in_memory() -> None:
    wide, weight = normal(3, 64), random_weight("dense", 16, 32)
    assert torch.equal(linear(wide[:, :32], weight), linear(wide[:, :32].contiguous(), weight))


def test_every_number_of_rows() -> None:
    x, weight = normal(40, 48), random_weight("int8", 16, 48)
    for num_rows in (*range(1, 18), 31, 32, 33, 40):
        rows = x[:num_rows]
        assert error(linear(rows, weight, tile=Tile(block_n=16, block_k=64)), linear_plain(rows, weight)) < TOLERANCE


@pytest.mark.parametrize("form", ["dense", "int4"])
def test_a_row_does_not_depend_on_its_neighbours(form: str) -> None:
    weight, tile = random_weight(form, 24, 160), Tile(block_n=32, block_k=128)
    x = normal(17, 160)
    alone = torch.cat([linear(row[None], weight, norm_eps=EPS, tile=tile) for row in x[[0, 7, 16]]])
    for num_rows in (8, 16):
        rows = linear(x[:num_rows], weight, norm_eps=EPS, tile=tile)
        assert torch.equal(rows[[0, 7]], alone[:2])
    x[1] = torch.nan
    rows = linear(x, weight, norm_eps=EPS, tile=tile)
    assert rows[1].isnan().all()
    # 17 rows take tiles of 32, in which the interpreter's BLAS may add in another order.
    assert error(rows[[0, 7, 16]], alone) < TOLERANCE


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", [(4608, 1536), (1536, 1536), (12288, 1536), (1536, 6144), (16387, 1536), (256, 256)])
def test_tiles_fill_one_wave(shape: tuple[int, int], form: str) -> None:
    n, k = shape
    weight = {
        "dense": lambda: KernelWeight(data=torch.empty(n, k, dtype=torch.bfloat16, device="meta")),
        "int4": lambda: KernelWeight(data=torch.empty(n, k // 8, dtype=torch.int32, device="meta"), format="int4"),
    }.get(form, lambda: KernelWeight(data=torch.empty(n, k, dtype=torch.int8, device="meta"), format="int8"))()
    tile = tile_for(weight)
    programs = -(-n // tile.block_n)
    assert programs <= MAX_PROGRAMS
    assert programs >= min(132, n // 8)
    assert tile.block_k & (tile.block_k - 1) == 0
    assert tile.block_k >= (128 if form == "int4" else 16)
