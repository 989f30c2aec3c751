"""Decoders whose matrices are held in other formats: what is converted, what stays, what is written and read again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from tiny import tiny_weights

from helicube.engine.build import prepare, resolve_for
from helicube.engine.options import EngineOptions
from helicube.errors import CheckpointError, DeviceError
from helicube.models.cube.default import load_default, save_default
from helicube.models.cube.formats import hold_matrices, is_matrix
from helicube.nn.linear import QuantizedLinear, module_format
from helicube.nn.module_bytes import module_bytes

FORMATS = ("float32", "bfloat16", "int8", "int4", "fp8")


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_matrix_and_nothing_else_is_converted(name: str, native: bool) -> None:
    decoder = tiny_weights().decoder
    before = {key: t.clone() for key, t in decoder.state_dict().items()}
    if name == "fp8":
        with pytest.raises(DeviceError, match="fp8 weights need a GPU"):
            prepare(decoder, EngineOptions(weights="fp8"))
    hold_matrices(decoder, name, native=native)
    after = decoder.state_dict()
    matrices = {key for key in before if is_matrix(key)}
    # A dual layer, the last dual layer, the single layer, and the head.
    assert len(matrices) == 12 + 8 + 6 + 1
    for key in matrices:
        assert module_format(decoder.get_submodule(key.removesuffix(".weight"))) == name
    for key in before.keys() - matrices:
        assert torch.equal(
            after[key].float(), before[key].bfloat16().float() if name == "bfloat16" and not native else before[key]
        )
    low, high = {
        "float32": (0, 0), "bfloat16": (1e-3, 3e-3), "int8": (2e-3, 8e-3), "int4": (0.04, 0.1), "fp8": (0.01, 0.04)
    }[name]  # fmt: skip
    for key in matrices:
        layer = decoder.get_submodule(key.removesuffix(".weight"))
        dense = layer.dense() if isinstance(layer, QuantizedLinear) else after[key].float()
        assert low <= float((dense - before[key]).norm() / before[key].norm()) <= high


def test_devices_without_kernels_of_their_own_convert_too() -> None:
    """As a GPU does with plain kernels; of PyTorch's devices, only this one is everywhere."""
    decoder = tiny_weights().decoder.to("meta")
    assert prepare(decoder, EngineOptions(weights="bfloat16", kernels="plain")).kernels.implementation == "torch"
    assert module_format(decoder.lm_head) == "bfloat16"


@pytest.mark.parametrize("options", [EngineOptions(kernels="plain"), EngineOptions(cache=False)])
def test_kernels_that_nobody_needs_are_not_compiled(options: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helicube.kernels.cpu.library.load", None)
    assert resolve_for("cpu", "float32", options).kernels.implementation == "torch"


def test_what_options_come_to_needs_no_decoder() -> None:
    """A format and a device decide; the ablation asks before it makes weights of gigabytes."""
    decoder = tiny_weights().decoder
    for options in (EngineOptions(), EngineOptions(kernels="plain"), EngineOptions(weights="int8", graph=False)):
        asked = resolve_for(decoder.device, "float32", options)
        assert prepare(decoder, options) == asked
        hold_matrices(decoder, "float32", native=False)
    with pytest.raises(DeviceError, match="fp8 weights need a GPU"):
        resolve_for("cpu", "fp8", EngineOptions())
    assert resolve_for("meta", "int8", EngineOptions()).kernels.implementation == "torch"


def test_there_and_back() -> None:
    decoder = tiny_weights().decoder
    before = decoder.state_dict()
    hold_matrices(decoder, "float32", native=True)
    hold_matrices(decoder, "float32", native=False)
    after = decoder.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[key], before[key]) for key in before)
    assert not any(isinstance(layer, QuantizedLinear) for layer in decoder.modules())


def test_bytes_of_a_step_are_those_of_the_format() -> None:
    sizes = {}
    for name in ("float32", "bfloat16", "int8"):
        decoder = tiny_weights().decoder
        hold_matrices(decoder, name, native=True)
        sizes[name] = module_bytes(decoder.step_modules())
    assert sizes["bfloat16"] == pytest.approx(sizes["float32"] / 2, rel=0.05)
    assert sizes["int8"] == pytest.approx(sizes["float32"] / 4, rel=0.15)


@pytest.mark.parametrize("name", ["int8", "int4", "fp8"])
def test_a_quantized_default_model_keeps_its_numbers(name: str, tmp_path: Path) -> None:
    weights = tiny_weights()
    hold_matrices(weights.decoder, name, native=name != "fp8")
    path = save_default(weights, tmp_path)
    with safe_open(path, framework="pt") as file:
        kinds = {key: file.get_tensor(key).dtype for key in file.keys()}  # noqa: SIM118 - not a dict
    assert kinds["decoder.lm_head.weight"] in {torch.int8, torch.uint8, torch.float8_e4m3fn}
    assert kinds["decoder.transformer.wte.weight"] == torch.bfloat16
    loaded = load_default(tmp_path)
    before, after = weights.decoder.state_dict(), loaded.decoder.state_dict()
    assert after.keys() == before.keys()
    for key, t in before.items():
        kept = is_matrix(key) or key.endswith("_scale")
        assert torch.equal(after[key], t if kept else t.bfloat16().to(after[key].dtype)), key
    assert module_format(loaded.decoder.lm_head) == name


def test_a_scale_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    weights = tiny_weights()
    hold_matrices(weights.decoder, "int8", native=False)
    weights.decoder.lm_head.weight_scale = torch.ones(3)
    save_default(weights, tmp_path)
    with pytest.raises(CheckpointError, match="quantize it again"):
        load_default(tmp_path)
