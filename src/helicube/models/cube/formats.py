"""In which format a decoder holds its matrices."""

from __future__ import annotations

import re

import torch
from torch import nn

from helicube.kernels.cpu.library import Library
from helicube.models.cube.decoder import CubeDecoder
from helicube.nn.linear import QuantizedLinear, make_linear, module_format
from helicube.nn.quantize import FLOATS, parse_format

__all__ = ["hold_matrices", "is_matrix", "pack_matrices"]

# What a layer multiplies by, and the head; tables, norms and the small projections of text and box stay as they are.
MATRIX = re.compile(r"(transformer\.(dual|single)_blocks\..+\.(c_\w+|\w+_proj)|lm_head)\.weight")


def is_matrix(name: str) -> bool:
    """Whether a parameter is one of those that quantization changes.

    Args:
        name: as in the decoder's state.
    """
    return MATRIX.fullmatch(name) is not None


def hold_matrices(decoder: CubeDecoder, form: str, *, native: bool) -> None:
    """Convert all matrices in place, one at a time.

    Args:
        form: name of a format; see `nn.quantize.parse_format`.
        native: hold them, floats too, in the order of the CPU kernels, as the only copy; otherwise for PyTorch's
            products, floats in plain layers.
    """
    parse_format(form)
    for name, layer in list(decoder.named_modules()):
        if not is_matrix(f"{name}.weight"):
            continue
        assert isinstance(layer, nn.Linear | QuantizedLinear), f"{name} is no linear layer"
        made: nn.Module = layer
        if module_format(layer) != form or (native and isinstance(layer, nn.Linear)):
            made = make_linear(_dense(layer), layer.bias, form)
        if isinstance(made, QuantizedLinear):
            made.native = native
            made = _plain_layer(made) if form in FLOATS and not native else made
        parent, _, attribute = name.rpartition(".")
        setattr(decoder.get_submodule(parent), attribute, made)
    if not native and form in FLOATS:
        decoder.to(FLOATS[form])


def pack_matrices(decoder: CubeDecoder, library: Library) -> None:
    """Bring all matrices into the order of the CPU kernels: at set-up, so that no prompt waits for it."""
    for layer in decoder.modules():
        if isinstance(layer, QuantizedLinear) and layer.native:
            layer.packed(library)


def _dense(layer: nn.Linear | QuantizedLinear) -> torch.Tensor:
    return layer.dense() if isinstance(layer, QuantizedLinear) else layer.weight


def _plain_layer(layer: QuantizedLinear) -> nn.Linear:
    weight, _ = layer.stored()
    plain = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
    plain.weight = nn.Parameter(weight, requires_grad=False)
    if layer.bias is not None:
        plain.bias = nn.Parameter(layer.bias, requires_grad=False)
    return plain
