"""Weights in the order in which the native kernels read them.

N outputs, K inputs, G weights per group. native/types.h (`Matrix`) defines the packed order: blocks of 64 outputs,
within a block K by 32-bit units. Packing is a transposition of such units, and can be undone.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from helicube.kernels.cpu.library import Library

__all__ = ["ACTIVATION_GROUP", "FORMATS", "RECORD", "PackedMatrix", "pack"]

# Places in the native enumeration, and weights in 32 bits.
FORMATS: Final = {"float32": (0, 1), "bfloat16": (1, 2), "int8": (2, 4), "int4": (3, 8)}
# Inputs that share a scale when they are rounded to int8 for int8 weights; int4 uses the group of its weights.
ACTIVATION_GROUP: Final = 64
BLOCK: Final = 64
# native/types.h, Matrix.
RECORD: Final = struct.Struct("=7q")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedMatrix:
    """What the native `Matrix` points to, kept alive."""

    format: str
    num_outputs: int
    num_inputs: int
    # Inputs per scale; 0 for floats.
    group: int
    # (blocks, units, 64) int32.
    data: Tensor
    # int8: (blocks · 64,) float32; int4: (blocks, K/G, 64) bf16.
    scale: Tensor | None
    # (blocks · 64,) float32.
    bias: Tensor | None
    # The native structure (and a zero byte), and where it is.
    record: ctypes.Array[ctypes.c_char]
    address: int

    @property
    def native(self) -> bytes:
        """The native structure, to stand in another."""
        return self.record.raw[: RECORD.size]

    @property
    def num_bytes(self) -> int:
        """What a product reads."""
        parts = (self.data, self.scale, self.bias)
        return sum(t.numel() * t.element_size() for t in parts if t is not None)

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """Weight and scale as they were given to `pack`."""
        n, k = self.num_outputs, self.num_inputs
        units = self.data.transpose(1, 2).clone(memory_format=torch.contiguous_format).flatten(0, 1)
        if self.format == "float32":
            return units.view(torch.float32)[:n, :k].contiguous(), None
        if self.format == "bfloat16":
            return units.view(torch.bfloat16)[:n, :k].contiguous(), None
        assert self.scale is not None
        if self.format == "int8":
            flipped = (units.view(torch.uint8) ^ 0x80).view(torch.int8)
            return flipped[:n, :k].contiguous(), self.scale[:n].clone()
        scale = self.scale.transpose(1, 2).reshape(-1, self.scale.shape[1])[:n]
        return _adjacent_nibbles(units.view(torch.uint8))[:n].contiguous(), scale.contiguous()


def pack(
    library: Library,
    weight: Tensor,
    *,
    format: str,  # noqa: A002 - the field's word
    num_inputs: int,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    group: int = ACTIVATION_GROUP,
) -> PackedMatrix:
    """Copy a matrix into the kernels' order.

    Args:
        weight: (N, K) float32, bf16 or int8; for int4 (N, ⌈K/G⌉·G/2) uint8 in adjacent nibbles (nn/quantize.py).
        num_inputs: K.
        scale: int8 (N,) float32; int4 (N, ⌈K/G⌉) bf16.
        bias: (N,).
        group: G of int4, a multiple of 32 up to 128.
    """
    code, unit = FORMATS[format]
    n = weight.shape[0]
    group = {"int8": ACTIVATION_GROUP, "int4": group}.get(format, 0)
    data = _in_blocks(library, _in_units(weight, format, num_inputs, group or unit), n)
    scale = _pad_scale(scale, len(data)) if scale is not None else None
    bias = _pad_rows(bias.detach().float(), len(data)) if bias is not None else None
    pointers = [0 if t is None else t.data_ptr() for t in (data, scale, bias)]
    record = ctypes.create_string_buffer(RECORD.pack(*pointers, code, n, num_inputs, group))
    return PackedMatrix(
        format=format,
        num_outputs=n,
        num_inputs=num_inputs,
        group=group,
        data=data,
        scale=scale,
        bias=bias,
        record=record,
        address=ctypes.addressof(record),
    )


def _in_units(weight: Tensor, format: str, num_inputs: int, multiple: int) -> Tensor:  # noqa: A002 - as in `pack`
    """(N, K) weights as (N, units) int32, K padded to a multiple."""
    padded = -(-num_inputs // multiple) * multiple
    raw = weight.detach().contiguous()
    if raw.storage_offset() * raw.element_size() % 4:
        # Units of 32 bits must not straddle.
        raw = raw.clone()
    if format == "int8":
        raw = raw.view(torch.uint8) ^ 0x80
        raw = torch.nn.functional.pad(raw, (0, padded - num_inputs), value=0x80)
    elif format == "int4":
        raw = _split_nibbles(raw)
    elif padded != num_inputs:
        raw = torch.nn.functional.pad(raw, (0, padded - num_inputs))
    return raw.view(torch.int32) if padded else raw.new_empty((len(raw), 0), dtype=torch.int32)


def _in_blocks(library: Library, units: Tensor, n: int) -> Tensor:
    """(N, units) to (blocks, units, 64) in the library's memory, the last block filled up with zeros."""
    blocks, whole, num_units = -(-n // BLOCK), n // BLOCK, units.shape[1]
    data = library.memory.empty((blocks, num_units, BLOCK), torch.int32)
    data[:whole].copy_(units[: whole * BLOCK].view(whole, BLOCK, num_units).transpose(1, 2))
    if whole < blocks:
        data[whole].zero_()
        data[whole, :, : n - whole * BLOCK].copy_(units[whole * BLOCK :].T)
    return data


def _pad_rows(rows: Tensor, blocks: int) -> Tensor:
    """A copy with zeros up to whole blocks."""
    padded = rows.new_zeros(blocks * BLOCK, *rows.shape[1:])
    padded[: len(rows)] = rows
    return padded


def _pad_scale(scale: Tensor, blocks: int) -> Tensor:
    padded = _pad_rows(scale.detach(), blocks)
    if scale.dim() == 1:
        return padded
    return padded.view(blocks, BLOCK, -1).transpose(1, 2).contiguous()


def _split_nibbles(adjacent: Tensor) -> Tensor:
    """Eight weights of four bytes from (0,1)(2,3)(4,5)(6,7) to (0,4)(1,5)(2,6)(3,7); low half first."""
    a, b, c, d = adjacent.view(*adjacent.shape[:-1], -1, 4).unbind(-1)
    pairs = [a & 15 | c << 4, a >> 4 | c & 0xF0, b & 15 | d << 4, b >> 4 | d & 0xF0]
    return torch.stack(pairs, dim=-1).flatten(-2)


def _adjacent_nibbles(split: Tensor) -> Tensor:
    """The inverse of `_split_nibbles`."""
    a, b, c, d = split.view(*split.shape[:-1], -1, 4).unbind(-1)
    pairs = [a & 15 | b << 4, c & 15 | d << 4, a >> 4 | b & 0xF0, c >> 4 | d & 0xF0]
    return torch.stack(pairs, dim=-1).flatten(-2)
