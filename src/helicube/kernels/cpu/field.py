"""A field of points that attend to latents, in one native call: native/field.h.

P points, D width, H heads, d head size, F frequencies, M latents.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import PackedMatrix

__all__ = ["FieldLayers", "Latents", "field_logits"]

# native/types.h, Field, around its six matrices.
BEFORE: Final = struct.Struct("=2q5qd2q")
AFTER: Final = struct.Struct("=3qd")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLayers:
    """What all objects share."""

    num_heads: int
    # eps of the layer norms.
    eps: float
    # (3, F) frequencies and (F,) fixed phases of the point embedder, float32, contiguous.
    frequencies: Tensor
    carrier: Tensor
    # Two layers from the embedded point on, queries, their output, and the MLP.
    in_layer: PackedMatrix
    out_layer: PackedMatrix
    query: PackedMatrix
    proj: PackedMatrix
    up: PackedMatrix
    down: PackedMatrix
    # The affine part of the last norm and the head in one: (D,) float32 factors and what is added.
    head_weight: Tensor
    head_bias: float

    @property
    def matrices(self) -> tuple[PackedMatrix, ...]:
        return (self.in_layer, self.out_layer, self.query, self.proj, self.up, self.down)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latents:
    """What points attend to; int8, one matrix per head."""

    # (M, d) over √d · ln 2.
    keys: tuple[PackedMatrix, ...]
    # (d, M).
    values: tuple[PackedMatrix, ...]


def field_logits(library: Library, layers: FieldLayers, latents: Latents, points_P3: Tensor) -> Tensor:
    """Occupancy logits (P,) float32 at contiguous float32 points; a point's logit does not depend on the others."""
    num_freqs, width = layers.frequencies.shape[1], layers.query.num_inputs
    head = latents.keys[0]
    assert points_P3.dtype == torch.float32, "points are float32"
    assert points_P3.is_contiguous(), "points are contiguous"
    assert points_P3.shape[1] == 3, "points have three coordinates"
    assert len(latents.keys) == len(latents.values) == layers.num_heads, "one matrix of keys and of values per head"
    shapes = [(m.num_outputs, m.num_inputs) for m in layers.matrices]
    wide = layers.up.num_outputs
    expected = [(width, 3 + 6 * num_freqs), *[(width, width)] * 3, (wide, width), (width, wide)]
    assert shapes == expected, f"the matrices are {shapes}, not {expected}"
    logits = torch.empty(len(points_P3))
    keys, values = _records(latents.keys), _records(latents.values)
    record = (
        BEFORE.pack(
            *(points_P3.data_ptr(), logits.data_ptr()),
            *(len(points_P3), width, layers.num_heads, num_freqs, head.num_outputs),
            *(layers.eps, layers.frequencies.data_ptr(), layers.carrier.data_ptr()),
        )
        + b"".join(m.native for m in layers.matrices)
        + AFTER.pack(
            *(ctypes.addressof(keys), ctypes.addressof(values)),
            *(layers.head_weight.data_ptr(), layers.head_bias),
        )
    )
    library.field(record, torch.get_num_threads())
    return logits


def _records(matrices: Sequence[PackedMatrix]) -> ctypes.Array[ctypes.c_char]:
    """An array of native matrices."""
    return ctypes.create_string_buffer(b"".join(m.native for m in matrices))
