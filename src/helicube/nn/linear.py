"""Linear layers over weights in any format, with the CPU kernels for few rows where they are.

R rows, N outputs, K inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.kernels.cpu import products, twins
from helicube.kernels.cpu.library import Library, load
from helicube.kernels.cpu.matrix import ACTIVATION_GROUP, PackedMatrix, pack
from helicube.kernels.cpu.matrix import FORMATS as MATRIX_FORMATS
from helicube.nn.quantize import WeightFormat, dequantize, format_of, parse_format, quantize, whole_numbers

__all__ = ["QuantizedLinear", "adopt", "convert", "make_linear", "module_format", "packed_matrix", "quantized_names"]

Predicate = Callable[[str, nn.Linear], bool]


class QuantizedLinear(nn.Module):
    """x Wᵀ + bias for inference, W in a format of `nn.quantize`.

    On a CPU with kernels the weight is kept in their order, alone, and every number of rows goes through them, so that
    a row's result does not depend on its neighbours. int8 and int4 then meet x rounded to int8 in groups of inputs.
    Elsewhere the weight is made dense: as bf16 for int8 and int4, which costs their memory advantage.

    State: `weight`, `weight_scale` (int8, int4) and `bias`, whatever the order in memory.
    """

    def __init__(self, weight: Tensor, scale: Tensor | None, bias: Tensor | None, form: WeightFormat, k: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.format = k, len(weight), form
        self.weight: Tensor | None
        self.weight_scale: Tensor | None
        self.bias: Tensor | None
        self.register_buffer("weight", weight.detach())
        self.register_buffer("weight_scale", None if scale is None else scale.detach())
        self.register_buffer("bias", None if bias is None else bias.detach())
        # Whether the CPU kernels may be used.
        self.native = form.name in MATRIX_FORMATS
        self._packed: PackedMatrix | None = None
        self._dense: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(…, K) to (…, N) of the same type."""
        usable = self.native and x.device.type == "cpu" and x.dtype in products.TYPES
        library = load() if usable else None
        if library is not None and not (torch.is_grad_enabled() and x.requires_grad):
            return products.linear(library, x, self.packed(library))
        return self._plain(x)

    def reference(self, x: Tensor) -> Tensor:
        """What the kernels compute, in plain PyTorch and float32; slow."""
        rows = x.reshape(-1, self.in_features)
        weight, scale = self.stored()
        if scale is None:
            y = twins.linear_float(rows, weight, self.bias)
        elif self.format.name == "int8":
            y = twins.linear_quantised(rows, weight, scale, ACTIVATION_GROUP, self.bias)
        else:
            numbers = whole_numbers(weight)[:, : self.in_features]
            y = twins.linear_quantised(rows, numbers, scale, self.format.group, self.bias)
        return y.view(*x.shape[:-1], self.out_features)

    @property
    def num_bytes(self) -> int:
        """Bytes that a product reads: of weight, scale and bias, or of the dense weight once that is made."""
        if self._packed is not None:
            return self._packed.num_bytes
        if self._dense is not None:
            return self._dense.nbytes + (0 if self.bias is None else self.bias.nbytes)
        return sum(t.nbytes for t in (self.weight, self.weight_scale, self.bias) if t is not None)

    def packed(self, library: Library) -> PackedMatrix:
        """The weight in the kernels' order; from the first call on that is the only copy."""
        found = self._packed
        if found is None:
            weight, scale = self.stored()
            found = self._packed = pack(
                library,
                weight,
                format=self.format.name,
                num_inputs=self.in_features,
                scale=scale,
                bias=self.bias,
                group=self.format.group,
            )
            self.weight = self.weight_scale = self._dense = None
        return found

    def stored(self) -> tuple[Tensor, Tensor | None]:
        """Weight and scale as `quantize` made them."""
        if self.weight is None:
            assert self._packed is not None, "a weight is either in its own order or in the kernels'"
            return self._packed.unpack()
        return self.weight, self.weight_scale

    def dense(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(N, K)."""
        weight, scale = self.stored()
        return dequantize(weight, scale, self.format, self.in_features, dtype)

    def _plain(self, x: Tensor) -> Tensor:
        if self._dense is None:
            self._dense = self.dense(torch.float32 if self.format.name == "float32" else torch.bfloat16)
        w = self._dense
        bias = None if self.bias is None else self.bias.to(w.dtype)
        return F.linear(x.to(w.dtype), w, bias).to(x.dtype)

    def _unpack(self) -> None:
        if self.weight is None:
            self.weight, self.weight_scale = self.stored()
        self._packed = self._dense = None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> QuantizedLinear:
        self._unpack()
        before = dict(self.named_buffers())
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, stored in before.items():
            moved = getattr(self, name)
            if moved.dtype != stored.dtype:
                # A change of type is meant for activations: the format stays, and so do its values.
                setattr(self, name, stored.to(moved.device))
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.weight is None:
            weight, scale = self.stored()
            destination[prefix + "weight"] = weight
            if scale is not None:
                destination[prefix + "weight_scale"] = scale

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._unpack()
        super()._load_from_state_dict(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        # The packed form holds addresses.
        self._unpack()
        return self.__dict__.copy()

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, {self.format}, bias={self.bias is not None}"


def make_linear(weight_NK: Tensor, bias_N: Tensor | None, form: WeightFormat | str) -> QuantizedLinear:
    """Quantize a dense weight.

    Raises:
        InputError: there is no such format.
        CheckpointError: a weight is not finite.
    """
    form = parse_format(form) if isinstance(form, str) else form
    weight, scale = quantize(weight_NK.detach(), form)
    return QuantizedLinear(weight, scale, bias_N, form, weight_NK.shape[1])


def convert(module: nn.Module, form: WeightFormat | str, predicate: Predicate | None = None) -> list[str]:
    """Replace each nn.Linear in a module by its quantized form, one at a time, in place.

    Args:
        predicate: takes name and layer; whether to replace it. None replaces all.

    Returns:
        Names of those that were replaced.
    """
    form = parse_format(form) if isinstance(form, str) else form
    return _replace(module, predicate, lambda _, linear: make_linear(linear.weight, linear.bias, form))


def adopt(module: nn.Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Replace each nn.Linear for which a checkpoint holds a quantized weight; load the other tensors afterwards.

    Args:
        module: may be on the meta device.
        tensors: as `state_dict` of a converted module gave them; shared, not copied.

    Returns:
        Names of those that were replaced.

    Raises:
        CheckpointError: weight and scale do not fit together or the layer.
    """

    def stored(name: str, linear: nn.Linear) -> QuantizedLinear:
        weight, scale = tensors[f"{name}.weight"], tensors[f"{name}.weight_scale"]
        form = format_of(weight, scale, linear.in_features, f"{name}.weight")
        bias = tensors.get(f"{name}.bias") if linear.bias is not None else None
        return QuantizedLinear(weight, scale, bias, form, linear.in_features)

    return _replace(module, lambda name, _: f"{name}.weight_scale" in tensors, stored)


def quantized_names(names: Iterable[str]) -> set[str]:
    """Names of quantized weights and of their scales, which no loader may cast, among those of a checkpoint."""
    scales = {name for name in names if name.endswith(".weight_scale")}
    return scales | {name.removesuffix("_scale") for name in scales}


def packed_matrix(module: nn.Module, library: Library) -> PackedMatrix:
    """The kernels' form of a layer: that of a `QuantizedLinear` itself, a copy of an nn.Linear's weight."""
    if isinstance(module, QuantizedLinear):
        return module.packed(library)
    assert isinstance(module, nn.Linear), f"{type(module).__name__} is no linear layer"
    weight = module.weight.detach()
    form = format_of(weight, None, module.in_features)
    return pack(library, weight, format=form.name, num_inputs=module.in_features, bias=module.bias)


def module_format(module: nn.Module) -> str:
    """Name of the format of a layer's weight."""
    if isinstance(module, QuantizedLinear):
        return str(module.format)
    assert isinstance(module, nn.Linear), f"{type(module).__name__} is no linear layer"
    return format_of(module.weight.detach(), None, module.in_features).name


def _replace(
    module: nn.Module, predicate: Predicate | None, make: Callable[[str, nn.Linear], QuantizedLinear]
) -> list[str]:
    # Exactly nn.Linear: a subclass may mean something else by its weight.
    found = [(name, m) for name, m in module.named_modules() if type(m) is nn.Linear]
    chosen = [(name, m) for name, m in found if predicate is None or predicate(name, m)]
    names = [name for name, _ in chosen]
    found.clear()
    while chosen:
        name, linear = chosen.pop()
        parent, _, attribute = name.rpartition(".")
        setattr(module.get_submodule(parent), attribute, make(name, linear).train(linear.training))
    return names
