"""Weights of the right size for the CPU benchmark.

Random tiles, repeated, because the time does not depend on the values; every matrix has memory of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import PackedMatrix, pack
from helicube.kernels.cpu.stack import DecodeStack, StackConfig, StackLayer
from helicube.nn.quantize import WeightFormat, parse_format, quantize

__all__ = ["CUBE", "SMALL", "Sizes", "dense_matrix", "packed_layers", "random_stack"]

TILE = 64
QK_EPS = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A Cube decoder's shape stream."""

    name: str
    layers: int
    width: int
    heads: int
    # Outputs of the head, and of those the ones a step may choose.
    vocab: int
    wanted: int
    # Keys a layer attends to, and slots of its cache.
    keys: int
    slots: int

    @property
    def hidden(self) -> int:
        return 4 * self.width

    def shapes(self) -> dict[str, list[tuple[int, int]]]:
        """Outputs and inputs of the matrices of one layer, by operation."""
        d, f = self.width, self.hidden
        return {"qkv": [(2 * d, d), (d, d)], "proj": [(d, d)], "gate_up": [(f, d), (f, d)], "down": [(d, f)]}


# Published sizes (arXiv 2503.15475), 600 keys; and a decoder of the default model's sizes half-way through its 252 ids.
CUBE = Sizes(name="cube-v0.5", layers=24, width=1536, heads=12, vocab=16387, wanted=16384, keys=600, slots=1103)
SMALL = Sizes(name="default", layers=5, width=256, heads=4, vocab=5789, wanted=4096, keys=167, slots=293)


def dense_matrix(outputs: int, inputs: int) -> Tensor:
    """(N, K) bf16."""
    scale: float = inputs**-0.5
    tile = torch.randn(TILE, inputs, generator=torch.Generator().manual_seed(inputs)) * scale
    return tile.bfloat16().repeat(-(-outputs // TILE), 1)[:outputs]


def packed_matrix(library: Library, outputs: int, inputs: int, form: WeightFormat, *, bias: bool) -> PackedMatrix:
    weight, scale = quantize(dense_matrix(TILE, inputs), form)
    times = -(-outputs // TILE)
    return pack(
        library,
        weight.repeat(times, 1)[:outputs],
        format=form.name,
        num_inputs=inputs,
        scale=None if scale is None else scale.repeat(times, *[1] * (scale.dim() - 1))[:outputs],
        bias=torch.zeros(outputs) if bias else None,
        group=form.group,
    )


def packed_layers(library: Library, sizes: Sizes, form: WeightFormat) -> list[dict[str, list[PackedMatrix]]]:
    """Matrices of all layers, by operation. c_qk alone has no bias."""

    def layer() -> dict[str, list[PackedMatrix]]:
        return {
            name: [packed_matrix(library, n, k, form, bias=(name, i) != ("qkv", 0)) for i, (n, k) in enumerate(shapes)]
            for name, shapes in sizes.shapes().items()
        }

    return [layer() for _ in range(sizes.layers)]


def random_stack(library: Library, sizes: Sizes, name: str) -> DecodeStack:
    """A whole shape stream in one weight format."""
    form = parse_format(name)
    head_dim = sizes.width // sizes.heads
    norm = torch.ones(head_dim)
    layers = [
        StackLayer(
            qkv=tuple(m["qkv"]),
            proj=m["proj"][0],
            gate=m["gate_up"][0],
            up=m["gate_up"][1],
            down=m["down"][0],
            q_norm=norm,
            k_norm=norm,
        )
        for m in packed_layers(library, sizes, form)
    ]
    config = StackConfig(
        width=sizes.width,
        num_heads=sizes.heads,
        num_kv_heads=sizes.heads,
        head_dim=head_dim,
        hidden=sizes.hidden,
        norm_eps=1e-6,
        qk_eps=QK_EPS,
    )
    angle = torch.rand(sizes.slots, head_dim // 2)
    return DecodeStack(
        library,
        config,
        layers,
        embedding_VD=dense_matrix(sizes.vocab, sizes.width),
        head=packed_matrix(library, sizes.vocab, sizes.width, form, bias=False),
        table=torch.stack([angle.cos(), angle.sin()], dim=-1),
    )
