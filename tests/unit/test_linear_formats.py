"""Linear layers over weights in every format: errors, state, files, conversion in place."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from cpu_libraries import library
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from helicube.errors import CheckpointError, InputError
from helicube.kernels.cpu.library import load
from helicube.nn.linear import adopt, convert, make_linear, packed_matrix
from helicube.nn.mlp import SwiGLU
from helicube.nn.quantize import DEFAULT_GROUP, dequantize, format_of, parse_format, quantize, whole_numbers

FORMATS = ["float32", "bfloat16", "int8", "int4-g32", "int4", "int4-g128"]


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


@pytest.fixture(params=["kernels", "plain"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "plain":
        monkeypatch.setenv("HELICUBE_KERNELS", "0")
    else:
        library()
    load.cache_clear()
    yield request.param
    load.cache_clear()


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_are_those_that_a_plain_product_reads(name: str) -> None:
    linear = make_linear(rand(32, 128), None, name)
    linear.native = False
    linear(rand(2, 128))
    assert linear.num_bytes == 32 * 128 * (4 if name == "float32" else 2)


@pytest.mark.parametrize("name", FORMATS)
def test_names(name: str) -> None:
    form = parse_format(name)
    assert str(form) == name
    assert (form.group == 0) == (not name.startswith("int4"))


@pytest.mark.parametrize("name", ["int5", "int4-g7", "int8-g64", "", "bfloat16-g64", "int4-g"])
def test_unknown_formats(name: str) -> None:
    with pytest.raises(InputError, match="choose one of"):
        parse_format(name)


# Root mean square error relative to the weights: uniform rounding errs by a twelfth of a step squared. bf16 has 8 bits;
# an int8 step is a 127th of the largest of 512 values, about 3.1 σ; for int4, what was measured with a tenth to spare.
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("float32", 0, 0), ("bfloat16", 1e-3, 2e-3), ("int8", 5e-3, 9e-3), ("fp8", 0.02, 0.03),
     ("int4-g32", 0.07, 0.091), ("int4", 0.075, 0.1), ("int4-g128", 0.08, 0.107)],
)  # fmt: skip
def test_error_of_a_format(name: str, low: float, high: float) -> None:
    form, weight = parse_format(name), rand(256, 512)
    stored, scale = quantize(weight, form)
    error = float((dequantize(stored, scale, form, 512) - weight).norm() / weight.norm())
    assert low <= error <= high
    bits = (stored.nbytes + (scale.nbytes if scale is not None and scale.dim() == 2 else 0)) * 8 / weight.numel()
    assert bits == form.bits_per_weight


def test_groups_err_less_the_smaller_they_are() -> None:
    weight = rand(64, 512)
    errors = []
    for group in (32, 64, 128):
        form = parse_format("int4" if group == DEFAULT_GROUP else f"int4-g{group}")
        errors.append(float((dequantize(*quantize(weight, form), form, 512) - weight).norm()))
    assert errors == sorted(errors)


@pytest.mark.parametrize("k", [1, 31, 64, 100])
def test_whole_numbers_survive(k: int) -> None:
    """What a format can hold exactly comes back exactly, remainders of groups included."""
    generator = torch.Generator().manual_seed(k)
    whole = torch.randint(-127, 128, (9, k), generator=generator).float()
    whole[:, 0] = 127
    form = parse_format("int8")
    assert torch.equal(dequantize(*quantize(whole, form), form, k), whole)
    small = torch.randint(-7, 8, (9, k), generator=generator).float()
    # The largest of each group is at one end of the range.
    small[:, ::32] = -8
    form = parse_format("int4-g32")
    assert torch.equal(dequantize(*quantize(small, form), form, k), small)
    assert torch.equal(dequantize(*quantize(-small, form), form, k), -small)


def test_rows_of_zeros() -> None:
    for name in FORMATS:
        form = parse_format(name)
        assert not bool(dequantize(*quantize(torch.zeros(3, 40), form), form, 40).any())


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_what_is_not_finite_is_refused(name: str) -> None:
    weight = rand(4, 64)
    weight[2, 3] = torch.nan
    with pytest.raises(CheckpointError, match="not finite"):
        quantize(weight, parse_format(name))


def test_chunks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = rand(50, 128)
    whole = [quantize(weight, parse_format(name)) for name in ("int8", "int4")]
    monkeypatch.setattr("helicube.nn.quantize.CHUNK", 1000)
    for name, (stored, scale) in zip(("int8", "int4"), whole, strict=True):
        again, scale_again = quantize(weight, parse_format(name))
        assert torch.equal(again, stored)
        assert scale is not None
        assert scale_again is not None
        assert torch.equal(scale_again, scale)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("bias", [True, False])
def test_forward(path: str, name: str, bias: bool) -> None:
    linear = nn.Linear(300, 130, bias=bias).requires_grad_(False)
    layer = make_linear(linear.weight, linear.bias, name)
    x = rand(2, 3, 300)
    y, dense = layer(x), layer.dense()
    assert y.shape == (2, 3, 130)
    weight_only = F.linear(x, dense, linear.bias)
    # The plain path multiplies in bf16; the kernels round activations to 8 bits in groups: about 0.6 %.
    exact = name == "float32" or (path == "kernels" and name == "bfloat16")
    assert float((y - weight_only).norm() / weight_only.norm()) < (1e-6 if exact else 1e-2)
    if path == "kernels":
        torch.testing.assert_close(y, layer.reference(x), rtol=1e-5, atol=1e-5)
    assert layer(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("name", FORMATS)
def test_many_rows_give_what_each_gives_alone(name: str) -> None:
    library()
    layer = make_linear(rand(130, 300), None, name)
    x = rand(200, 300)
    y = layer(x)
    assert torch.equal(y[150], layer(x[150]))
    assert torch.equal(y[:16], layer(x[:16]))


@pytest.mark.parametrize("name", FORMATS)
def test_state_is_the_same_whatever_the_order_in_memory(path: str, name: str) -> None:
    layer = make_linear(rand(130, 300), rand(130), name)
    before = {key: t.clone() for key, t in layer.state_dict().items()}
    assert set(before) == {"weight", "bias"} | ({"weight_scale"} if name.startswith("int") else set())
    y = layer(rand(2, 300))
    assert (layer.weight is None) == (path == "kernels")
    after = layer.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(after[key], before[key]) for key in before)
    layer.load_state_dict(after)
    assert torch.equal(layer(rand(2, 300)), y)


@pytest.mark.parametrize("name", FORMATS)
def test_copies_and_moves(path: str, name: str) -> None:
    layer = make_linear(rand(130, 300), rand(130), name)
    x = rand(2, 300)
    y = layer(x)
    for twin in (
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        copy.deepcopy(layer).to("cpu", torch.bfloat16),
    ):
        assert twin.state_dict()["weight"].dtype == layer.state_dict()["weight"].dtype
        assert torch.equal(twin(x), y)
    saved = io.BytesIO()
    torch.save(layer.state_dict(), saved)
    assert torch.equal(layer(x), y)


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip_through_a_file(path: str, name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = SwiGLU(100, 70, bias=True)
    x = rand(3, 100)
    names = convert(model, name)
    assert names == ["gate_proj", "up_proj", "down_proj"]
    y = model(x)
    save_file(model.state_dict(), tmp_path / "m.safetensors")
    tensors = load_file(tmp_path / "m.safetensors")
    with torch.device("meta"):
        other = SwiGLU(100, 70, bias=True)
    adopted = adopt(other, tensors)
    assert adopted == (names if name.startswith("int") else [])
    other.load_state_dict(tensors, assign=True)
    if name.startswith("int"):
        assert torch.equal(other(x), y)
        assert repr(other.gate_proj) == f"QuantizedLinear(100, 70, {name}, bias=True)"
    for key, value in model.state_dict().items():
        assert torch.equal(other.state_dict()[key], value)


def test_convert_only_what_is_wanted() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.ReLU())
    assert convert(model, "int8", lambda name, linear: name == "1" and linear.in_features == 64) == ["1"]
    assert [type(m).__name__ for m in model] == ["Linear", "QuantizedLinear", "ReLU"]
    assert model.state_dict()["1.weight"].dtype == torch.int8
    # Again: what is quantized already stays as it is.
    assert convert(model, "int4") == ["0"]
    assert model.state_dict()["1.weight"].dtype == torch.int8


def test_damaged_files_are_refused() -> None:
    model = nn.Sequential(nn.Linear(300, 70))
    convert(model, "int4")
    good = model.state_dict()
    for damage in (
        {"0.weight": good["0.weight"][:, :-1]},
        {"0.weight": good["0.weight"][:-1]},
        {"0.weight_scale": good["0.weight_scale"][:, :-1]},
        {"0.weight": good["0.weight"].to(torch.int16)},
    ):
        with pytest.raises(CheckpointError, match=r"0\.weight"):
            adopt(nn.Sequential(nn.Linear(300, 70)), good | damage)
    with pytest.raises(CheckpointError):
        adopt(nn.Sequential(nn.Linear(200, 70)), good)


def test_format_of_what_was_quantized() -> None:
    for name in FORMATS:
        stored, scale = quantize(rand(70, 100), parse_format(name))
        assert str(format_of(stored, scale, 100)) == name


def test_numbers_of_fp8() -> None:
    weight = torch.cat([rand(5, 33), torch.zeros(1, 33)])
    stored, scale = quantize(weight, parse_format("fp8"))
    assert scale is not None
    # The largest of an output takes the largest number that e4m3 has; zeros divide by no zero.
    assert stored.float().abs().amax(dim=1).tolist() == [448.0] * 5 + [0.0]
    assert torch.equal(scale, torch.cat([weight[:5].abs().amax(dim=1) / 448, torch.ones(1)]))
    # Three bits of mantissa: half of the last one, or half of the least subnormal number.
    error = (dequantize(stored, scale, parse_format("fp8"), 33) - weight).abs()
    assert (error <= torch.maximum(weight.abs() * 2**-4, scale[:, None] * 2**-10) * 1.001).all()


def test_numbers_of_int4() -> None:
    """The order of the halves is that of the documentation: even inputs low."""
    stored, scale = quantize(torch.tensor([[-8.0, 7.0, *[0.0] * 30]]), parse_format("int4-g32"))
    assert scale is not None
    assert scale.tolist() == [[1.0]]
    assert stored[0, :2].tolist() == [0 | 15 << 4, 8 | 8 << 4]
    assert whole_numbers(stored)[0, :4].tolist() == [-8, 7, 0, 0]


def test_a_plain_layer_can_be_packed_too() -> None:
    lib = library()
    for dtype in (torch.float32, torch.bfloat16):
        linear = nn.Linear(40, 30).to(dtype)
        assert torch.equal(packed_matrix(linear, lib).unpack()[0], linear.weight)


def test_gradients_go_through_the_plain_path() -> None:
    layer = make_linear(rand(30, 40), None, "float32")
    x = rand(2, 40).requires_grad_()
    layer(x).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, layer.dense().sum(0).expand(2, -1), rtol=1e-5, atol=1e-5)
