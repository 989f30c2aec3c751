"""Decoders of random weights at their real size: the time of a step does not depend on what the numbers are.

Values are a random tile, repeated; every matrix has memory of its own. N outputs, K inputs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.formats import is_matrix
from helicube.nn.linear import QuantizedLinear
from helicube.nn.quantize import FLOATS, parse_format, quantize

__all__ = ["random_decoder"]

TILE = 64


def random_decoder(
    config: DecoderConfig,
    device: str = "cpu",
    form: str = "bfloat16",
    *,
    native: bool = False,
    condition: bool = True,
) -> CubeDecoder:
    """A decoder made matrix by matrix in its final format.

    Args:
        form: of the matrices; see `nn.quantize.parse_format`. Everything else is bfloat16, or float32 beside float32
            matrices and beside the CPU kernels, which compute in it.
        native: as in `models.cube.formats.hold_matrices`.
        condition: False leaves the condition's stream without memory; a step does not read it.
    """
    with torch.device("meta"):
        decoder = CubeDecoder(config)
    dtype = torch.float32 if native or form == "float32" else torch.bfloat16
    for name, layer in list(decoder.named_modules()):
        if not condition and (".pre_c" in name or ".post_2" in name):
            continue
        if isinstance(layer, nn.Linear) and is_matrix(f"{name}.weight"):
            parent, _, attribute = name.rpartition(".")
            setattr(decoder.get_submodule(parent), attribute, _random_layer(layer, device, form, native=native))
            continue
        for key, parameter in layer.named_parameters(recurse=False):
            setattr(layer, key, nn.Parameter(_random(parameter, key, device, dtype), requires_grad=False))
    return decoder.eval().requires_grad_(False)


def _random(parameter: Tensor, key: str, device: str, dtype: torch.dtype) -> Tensor:
    if parameter.dim() == 1:
        return torch.full(parameter.shape, float(key == "weight"), dtype=dtype, device=device)
    return _repeated(_tile(parameter.shape[1]), parameter.shape[0]).to(device, dtype)


def _random_layer(layer: nn.Linear, device: str, form: str, *, native: bool) -> nn.Module:
    n, k = layer.out_features, layer.in_features
    kind = parse_format(form)
    weight, scale = (None if t is None else _repeated(t, n).to(device) for t in quantize(_tile(k), kind))
    assert weight is not None, "every format has a weight"
    bias = None if layer.bias is None else torch.zeros(n, device=device, dtype=FLOATS.get(form, torch.float32))
    if form in FLOATS and not native:
        plain = nn.Linear(k, n, bias=bias is not None, device="meta")
        plain.weight = nn.Parameter(weight, requires_grad=False)
        plain.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        return plain
    made = QuantizedLinear(weight, scale, bias, kind, k)
    made.native = made.native and native
    return made


def _tile(k: int) -> Tensor:
    scale: float = k**-0.5
    return torch.randn(TILE, k, generator=torch.Generator().manual_seed(k)) * scale


def _repeated(tile: Tensor, rows: int) -> Tensor:
    return tile.repeat(-(-rows // TILE), *[1] * (tile.dim() - 1))[:rows].contiguous()
