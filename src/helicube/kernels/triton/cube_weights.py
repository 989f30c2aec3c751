"""From the published tensors of a Cube decoder to what a step reads.

D width, F hidden channels, d head size, P positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from helicube.kernels.triton.decode_step import LayerWeights, StepWeights
from helicube.kernels.triton.weight import KernelWeight, kernel_weight

__all__ = ["cube_weights"]

# Weight and scale of a matrix to another format.
Convert = Callable[[Tensor], tuple[Tensor, Tensor | None]]


class _Reader:
    """Tensors under one prefix."""

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str, convert: Convert | None) -> None:
        self.tensors, self.prefix, self.convert = tensors, prefix, convert

    def matrix(self, *names: str) -> KernelWeight:
        """Matrices one below the other, in whatever format they are stored; copied."""
        weight = torch.cat([self.tensors[f"{self.prefix}{name}.weight"] for name in names])
        scales = [s for name in names if (s := self.tensors.get(f"{self.prefix}{name}.weight_scale")) is not None]
        assert len(scales) in {0, len(names)}, f"{self.prefix}: {', '.join(names)} are stored in different formats"
        if scales:
            return kernel_weight(weight, torch.cat(scales))
        return kernel_weight(weight) if self.convert is None else kernel_weight(*self.convert(weight))

    def bias(self, *names: str) -> Tensor | None:
        """Biases one after the other, zeros where a layer has none; None where none has one."""
        found = {name: self.tensors.get(f"{self.prefix}{name}.bias") for name in names}
        some = next((b for b in found.values() if b is not None), None)
        if some is None:
            return None
        rows = {name: len(self.tensors[f"{self.prefix}{name}.weight"]) for name in names}
        return torch.cat([some.new_zeros(rows[name]) if b is None else b for name, b in found.items()])

    def layer(self, attn: str, proj: str, mlp: str, prefix_slots: int) -> LayerWeights:
        qkv, gate_up = (f"{attn}.c_qk", f"{attn}.c_v"), (f"{mlp}.gate_proj", f"{mlp}.up_proj")
        norms = (self.tensors[f"{self.prefix}{attn}.{name}.weight"] for name in ("q_norm", "k_norm"))
        q_norm, k_norm = norms
        return LayerWeights(
            qkv=self.matrix(*qkv),
            qkv_bias=self.bias(*qkv),
            qk_norm=(q_norm, k_norm),
            proj=self.matrix(proj),
            proj_bias=self.bias(proj),
            gate_up=self.matrix(*gate_up),
            gate_up_bias=self.bias(*gate_up),
            down=self.matrix(f"{mlp}.down_proj"),
            down_bias=self.bias(f"{mlp}.down_proj"),
            prefix_slots=prefix_slots,
        )


def cube_weights(
    tensors: Mapping[str, Tensor],
    rotary_Pd2: Tensor,
    *,
    num_heads: int,
    prefix_slots: int,
    eps: float = 1e-6,
    qk_eps: float = 1e-5,
    convert: Convert | None = None,
) -> StepWeights:
    """The shape stream's weights. Those that one launch reads are stored one after another, which copies them.

    Args:
        tensors: state of a CubeDecoder in the published names; quantised matrices as nn.quantize makes them, with
            their scale under `weight_scale`.
        rotary_Pd2: rotary table of all positions.
        prefix_slots: conditioning tokens in the cache of a dual-stream layer.
        convert: to another format, for matrices that are not quantised yet.
    """

    def count(kind: str) -> int:
        return len({key.split(".")[2] for key in tensors if key.startswith(f"transformer.{kind}.")})

    def reader(kind: str, index: int) -> _Reader:
        return _Reader(tensors, f"transformer.{kind}.{index}.", convert)

    dual = (
        reader("dual_blocks", i).layer("attn.pre_x", "post_1.c_proj", "post_1.mlp", prefix_slots)
        for i in range(count("dual_blocks"))
    )
    single = (reader("single_blocks", i).layer("attn", "attn.c_proj", "mlp", 0) for i in range(count("single_blocks")))
    return StepWeights(
        embedding=tensors["transformer.wte.weight"],
        layers=(*dual, *single),
        head=_Reader(tensors, "", convert).matrix("lm_head"),
        rotary=rotary_Pd2.contiguous(),
        added=tensors.get("transformer.wpe.weight"),
        num_heads=num_heads,
        eps=eps,
        qk_eps=qk_eps,
    )
