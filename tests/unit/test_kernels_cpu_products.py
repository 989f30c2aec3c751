"""Products of a few rows: right to rounding, whatever the sizes, the threads or the neighbours."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from cpu_libraries import TARGETS, library
from torch import Tensor

from helicube.kernels.cpu import products, twins
from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import PackedMatrix, pack
from helicube.kernels.cpu.products import Norm
from helicube.nn.quantize import WeightFormat, parse_format, quantize, whole_numbers

# Half a unit in the last place of float32.
ROUNDING = 2.0**-24
# Outputs and inputs: one, whole blocks, and neither blocks nor units nor groups nor stretches.
SIZES = [(1, 1), (64, 64), (65, 63), (17, 33), (130, 257), (200, 1100), (128, 2048)]
ROWS = [1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 129]
FORMATS = ["float32", "bfloat16", "int8", "int4-g32", "int4", "int4-g128"]


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + 1009 * len(shape) + sum(shape)))


def packed(lib: Library, weight: Tensor, form: WeightFormat, bias: Tensor | None = None) -> PackedMatrix:
    stored, scale = quantize(weight, form)
    k = weight.shape[1]
    return pack(lib, stored, format=form.name, num_inputs=k, scale=scale, bias=bias, group=form.group)


def expected(x: Tensor, weight: Tensor, form: WeightFormat, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The exact product of what is stored, and how far rounding may move it.

    A float sum is a chain of at most 256 fused products per stretch, then a chain of stretches; an integer one is exact
    within a group, then a chain of groups with two or three roundings each (Higham, section 3.1).
    """
    stored, scale = quantize(weight, form)
    if scale is None:
        terms = x.double(), stored.double()
        chain = 256 + x.shape[1] / 128 + 3
    else:
        group = form.group or 64
        q, x_scale = twins.round_activations(x, group)
        rounded = (q.double() * x_scale.double()[..., None]).flatten(1)[:, : x.shape[1]]
        numbers = stored if form.name == "int8" else whole_numbers(stored)[:, : x.shape[1]]
        spread = scale[:, None] if scale.dim() == 1 else scale.repeat_interleave(group, dim=1)[:, : x.shape[1]]
        terms = rounded, numbers.double() * spread.double()
        chain = 3 * (x.shape[1] / group + 3)
    y = F.linear(*terms, bias.double())
    return y, chain * ROUNDING * (F.linear(terms[0].abs(), terms[1].abs()) + bias.abs())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", TARGETS)
def test_products_are_right_to_rounding(target: str, name: str) -> None:
    lib, form = library(target), parse_format(name)
    for n, k in SIZES:
        weight, bias = rand(n, k, seed=1), rand(n, seed=2)
        matrix = packed(lib, weight, form, bias)
        x = rand(ROWS[-1], k, seed=3)
        y, bound = expected(x, weight, form, bias)
        for rows in ROWS:
            error = (products.linear(lib, x[:rows], matrix) - y[:rows]).abs()
            assert bool((error <= bound[:rows]).all()), f"{rows} rows, {n} × {k}: off by {error.max()}"


@pytest.mark.parametrize("name", FORMATS)
def test_twins_are_right_to_rounding(name: str) -> None:
    form = parse_format(name)
    weight, bias, x = rand(70, 300, seed=1), rand(70, seed=2), rand(5, 300, seed=3)
    stored, scale = quantize(weight, form)
    if scale is None:
        got = twins.linear_float(x, stored, bias)
    else:
        numbers = stored if form.name == "int8" else whole_numbers(stored)[:, :300]
        got = twins.linear_quantised(x, numbers, scale, form.group or 64, bias)
    y, bound = expected(x, weight, form, bias)
    assert bool(((got - y).abs() <= bound).all())


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_depends_neither_on_its_neighbours_nor_on_the_threads(name: str) -> None:
    lib = library()
    matrix = packed(lib, rand(700, 1100, seed=1), parse_format(name))
    x = rand(17, 1100, seed=3)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = torch.cat([products.linear(lib, row[None], matrix) for row in x])
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            for rows in ROWS[:-1]:
                assert torch.equal(products.linear(lib, x[:rows], matrix), alone[:rows]), (
                    f"{count} threads, {rows} rows"
                )
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_stays_so_in_its_row_alone(name: str, value: float) -> None:
    lib = library()
    matrix = packed(lib, rand(70, 130, seed=1), parse_format(name))
    x = rand(3, 130, seed=3)
    clean = products.linear(lib, x, matrix)
    x[1, 128] = value
    y = products.linear(lib, x, matrix)
    assert not bool(y[1].isfinite().any())
    assert torch.equal(y[::2], clean[::2])


@pytest.mark.parametrize("name", FORMATS)
def test_tiny_and_zero_rows(name: str) -> None:
    """Groups of denormals are 0 in the integer formats; nothing becomes NaN."""
    lib = library()
    matrix = packed(lib, rand(70, 130, seed=1), parse_format(name))
    for x in (torch.zeros(2, 130), torch.full((2, 130), 1e-42), rand(2, 130) * 1e30):
        assert bool(products.linear(lib, x, matrix).isfinite().all())
    assert not bool(products.linear(lib, torch.zeros(2, 130), matrix).any())


@pytest.mark.parametrize("shape", [(0, 8, 5), (3, 8, 0), (3, 0, 5)])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_empty(name: str, shape: tuple[int, int, int]) -> None:
    rows, k, n = shape
    bias = torch.ones(n)
    matrix = packed(library(), rand(n, k), parse_format(name), bias)
    y = products.linear(library(), rand(rows, k), matrix)
    assert y.shape == (rows, n)
    assert k or torch.equal(y, bias.expand(rows, n))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_packing_loses_nothing(name: str, n: int, k: int) -> None:
    form = parse_format(name)
    stored, scale = quantize(rand(n, k), form)
    matrix = pack(library(), stored, format=form.name, num_inputs=k, scale=scale, group=form.group)
    weight, kept = matrix.unpack()
    assert torch.equal(weight, stored)
    assert (scale is None and kept is None) or (scale is not None and kept is not None and torch.equal(kept, scale))


def test_a_slice_of_a_matrix_is_packed_as_it_is() -> None:
    weight = rand(9, 33).bfloat16()[1:, 1:]
    matrix = pack(library(), weight, format="bfloat16", num_inputs=32)
    assert torch.equal(matrix.unpack()[0], weight)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["bfloat16", "int8", "int4"])
def test_fused_products(target: str, name: str) -> None:
    """Norm, gate and residual in one call give what they give apart, to the last bit where sums have the same order."""
    lib, form = library(target), parse_format(name)
    x = rand(3, 190) * 3 + 1
    gate, up, down = (packed(lib, rand(n, k, seed=n), form, rand(n)) for n, k in ((200, 190), (200, 190), (190, 200)))
    norm = Norm(kind="layer", eps=1e-6)
    normed = F.layer_norm(x, (190,), eps=1e-6)
    # The two norms differ in the last bits, and integer formats may round a few values to a neighbour.
    near = {"bfloat16": 1e-5, "int8": 2e-2, "int4": 2e-2}[name]
    g, u = products.linear_group(lib, x, [gate, up], norm=norm)
    plain = products.linear(lib, normed, gate)
    assert (g - plain).norm() <= near * plain.norm()
    middle = products.gate_up(lib, x, gate, up, norm=norm)
    # silu to about 3 ulp.
    torch.testing.assert_close(middle, F.silu(g) * u, rtol=1e-6, atol=1e-6)
    y = products.linear(lib, middle, down, residual=x)
    assert torch.equal(y, products.linear(lib, middle, down) + x)


def test_rms_norm() -> None:
    lib = library()
    x, weight = rand(3, 100), rand(100)
    matrix = packed(lib, torch.eye(100), parse_format("float32"))
    got = products.linear(lib, x, matrix, norm=Norm(kind="rms", eps=1e-5, weight=weight))
    torch.testing.assert_close(got, F.rms_norm(x, (100,), weight, 1e-5), rtol=1e-6, atol=1e-6)


def test_silu_over_the_whole_range() -> None:
    lib = library()
    one = packed(lib, torch.ones(1, 1), parse_format("float32"))
    bounds = [0.0, -0.0, 1e-30, -1e-30, 1, -1, 20, -20, 87, -87, 89, -89, 1e4, -1e4, torch.inf, torch.nan]
    x = torch.cat([torch.tensor(bounds), torch.linspace(-100, 100, 1001)])[:, None]
    always_one = packed(lib, torch.zeros(1, 1), parse_format("float32"), torch.ones(1))
    got = products.gate_up(lib, x.nan_to_num(posinf=3e38), one, always_one)
    # exp and division to about 1 ulp each; exp(89) overflows, so that 0 takes the place of 10⁻³⁷.
    torch.testing.assert_close(got[:-1], F.silu(x.nan_to_num(posinf=3e38).double()).float()[:-1], rtol=5e-7, atol=1e-36)
    # Infinity times the weight 0 of the other matrix is NaN, as it is in PyTorch.
    assert bool(products.gate_up(lib, torch.tensor([[torch.nan]]), one, one).isnan())
    assert products.gate_up(lib, torch.tensor([[torch.inf]]), one, one).item() == torch.inf


@pytest.mark.parametrize("low", [0, 1, 63, 64, 100])
def test_a_range_of_outputs(low: int) -> None:
    lib = library()
    matrix = packed(lib, rand(200, 50), parse_format("bfloat16"), rand(200))
    x = rand(3, 50)
    whole = products.linear(lib, x, matrix)
    for high in (low, low + 1, 128, 200):
        if high >= low:
            assert torch.equal(products.linear_range(lib, x, matrix, (low, high)), whole[:, low:high])


def test_types_and_shapes_of_activations() -> None:
    lib = library()
    matrix = packed(lib, rand(70, 50), parse_format("bfloat16"), rand(70))
    x = rand(2, 3, 50).bfloat16()
    y = products.linear(lib, x, matrix)
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, products.linear(lib, x.float(), matrix).bfloat16())
    strided = rand(50, 4).T
    assert torch.equal(products.linear(lib, strided, matrix), products.linear(lib, strided.contiguous(), matrix))
    wide = rand(4, 60)[:, 5:55]
    assert torch.equal(products.linear(lib, wide, matrix), products.linear(lib, wide.contiguous(), matrix))
    residual = rand(2, 3, 70).bfloat16()
    added = products.linear(lib, x, matrix, residual=residual)
    assert torch.equal(added, (products.linear(lib, x.float(), matrix) + residual.float()).bfloat16())
