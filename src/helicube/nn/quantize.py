"""Weight formats: bf16, int8 and fp8 with a scale per output, int4 with a scale per group of inputs.

N outputs, K inputs, G inputs per group. Activations are no part of a format: the kernels that round them say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from helicube.errors import CheckpointError, InputError

__all__ = ["FLOATS", "FORMATS", "WeightFormat", "dequantize", "format_of", "parse_format", "quantize"]

FORMATS = ("float32", "bfloat16", "int8", "int4", "fp8")
# Measured on normally distributed weights: groups of 32, 64 and 128 err by 8.3, 9.1 and 9.7 % (root mean square) and
# take 4.5, 4.25 and 4.125 bits per weight; on heavy tails (Student's t, 4 degrees) by 11.2, 13.5 and 15.8 %.
DEFAULT_GROUP = 64
GROUPS = (32, 64, 128)
# Scales tried per group of int4, as shares of the one that just holds the largest weight.
SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
# Weights handled at once: intermediate values stay in the L2 cache, and there are few of them.
CHUNK = 1 << 18

FLOATS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
FP8 = torch.float8_e4m3fn


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """How a matrix is stored."""

    # One of FORMATS.
    name: str
    # Inputs per scale; 0 where there is no such group.
    group: int = 0

    def __str__(self) -> str:
        return self.name if self.group in {0, DEFAULT_GROUP} else f"{self.name}-g{self.group}"

    @property
    def bits_per_weight(self) -> float:
        """Scales of groups included; those of outputs are nothing beside them."""
        bits = {"float32": 32.0, "bfloat16": 16.0, "int8": 8.0, "int4": 4.0, "fp8": 8.0}[self.name]
        return bits + (16 / self.group if self.group else 0.0)


def parse_format(text: str) -> WeightFormat:
    """ "float32", "bfloat16", "int8", "int4", or "int4-g32" for another group than the usual one.

    Raises:
        InputError: there is no such format.
    """
    found = re.fullmatch(r"(\w+?)(?:-g(\d+))?", text)
    name, group = found.groups() if found else ("", None)
    if name == "int4" and int(group or DEFAULT_GROUP) in GROUPS:
        return WeightFormat(name=name, group=int(group or DEFAULT_GROUP))
    if name in FORMATS and name != "int4" and group is None:
        return WeightFormat(name=name)
    known = [*FORMATS, *(f"int4-g{g}" for g in GROUPS if g != DEFAULT_GROUP)]
    raise InputError(f"weight format {text!r} is unknown; choose one of {', '.join(known)}")


def quantize(weight_NK: Tensor, form: WeightFormat) -> tuple[Tensor, Tensor | None]:
    """Weight and scale in a format.

    Returns:
        float32 and bf16: (N, K), None.
        int8: (N, K) from −127 to 127, and (N,) float32.
        fp8: (N, K) e4m3, and (N,) float32.
        int4: (N, ⌈K/G⌉·G/2) uint8, weight 2j + 8 in the low half of byte j and weight 2j + 1 in the high half, missing
            inputs 0; and (N, ⌈K/G⌉) bf16. A weight is scale · (half − 8).

    Raises:
        CheckpointError: a weight is not finite.
    """
    if form.name in FLOATS:
        return weight_NK.to(FLOATS[form.name]).contiguous(), None
    if not bool(weight_NK.isfinite().all()):
        raise CheckpointError(f"a weight is not finite, which {form} cannot hold; the checkpoint is damaged")
    kinds: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]]
    kinds = {"int8": _to_int8, "fp8": _to_fp8, "int4": lambda rows: _to_int4(rows, form.group)}
    kind = kinds[form.name]
    step = max(1, CHUNK // max(1, weight_NK.shape[1]))
    parts = [kind(weight_NK[at : at + step].float()) for at in range(0, max(1, len(weight_NK)), step)]
    weights, scales = zip(*parts, strict=True)
    return torch.cat(weights), torch.cat(scales)


def dequantize(
    weight: Tensor, scale: Tensor | None, form: WeightFormat, num_inputs: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """(N, K) of what `quantize` made."""
    if scale is None:
        return weight.to(dtype)
    if form.name in {"int8", "fp8"}:
        return (weight.float() * scale[:, None]).to(dtype)
    grouped = _in_groups(whole_numbers(weight).float(), form.group)
    dense: Tensor = (grouped * scale.float()[..., None]).flatten(1)[:, :num_inputs].to(dtype)
    return dense


def whole_numbers(halves: Tensor) -> Tensor:
    """int4 weights from −8 to 7, (N, ⌈K/G⌉·G) int8, from their packed halves."""
    return torch.stack([halves & 15, halves >> 4], dim=-1).flatten(1).to(torch.int8) - 8


def format_of(weight: Tensor, scale: Tensor | None, num_inputs: int, name: str = "weight") -> WeightFormat:
    """The format that tensors of a checkpoint are in; their types and shapes say it.

    Raises:
        CheckpointError: they are in none, or do not fit together.
    """
    n = len(weight)
    if scale is None and weight.dtype in FLOATS.values() and weight.shape == (n, num_inputs):
        return WeightFormat(name=next(k for k, v in FLOATS.items() if v == weight.dtype))
    one_byte = {torch.int8: "int8", FP8: "fp8"}.get(weight.dtype)
    if scale is not None and one_byte and weight.shape == (n, num_inputs) and scale.shape == (n,):
        return WeightFormat(name=one_byte)
    if scale is not None and weight.dtype == torch.uint8 and scale.dim() == 2 and scale.shape[1]:
        group = 2 * weight.shape[1] // scale.shape[1]
        whole = -(-num_inputs // group) * group if group in GROUPS else -1
        if len(scale) == n and whole == 2 * weight.shape[1] == group * scale.shape[1]:
            return WeightFormat(name="int4", group=group)
    told = f"{weight.dtype} {tuple(weight.shape)}, scale {None if scale is None else tuple(scale.shape)}"
    raise CheckpointError(f"{name} ({told}) is no {num_inputs}-input matrix in {', '.join(FORMATS)}; quantize it again")


def _to_int8(rows: Tensor) -> tuple[Tensor, Tensor]:
    amax = rows.abs().amax(dim=1) if rows.shape[1] else rows.new_zeros(len(rows))
    scale = amax / 127
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    return (rows * inverse[:, None]).round().clamp_(-127, 127).to(torch.int8), scale


def _to_fp8(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest weight of an output at the largest e4m3 number."""
    amax = rows.abs().amax(dim=1)
    scale = torch.where(amax > 0, amax / torch.finfo(FP8).max, 1.0)
    return (rows / scale[:, None]).to(FP8), scale


def _to_int4(rows: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """The scale with the least squared error, of those that put the largest weight of a group at −8 or beyond."""
    grouped_NGg = _in_groups(F.pad(rows, (0, -rows.shape[1] % group)), group)
    largest = grouped_NGg.gather(2, grouped_NGg.abs().argmax(dim=2, keepdim=True))
    best = torch.full_like(largest, torch.inf)
    found = torch.zeros_like(grouped_NGg), torch.zeros_like(largest)
    for shrink in SHRINKS:
        # The scale carries the sign, because −8 has no positive counterpart. Rounded first: it is stored in bf16.
        scale = (largest / -8 * shrink).bfloat16().float()
        q = (grouped_NGg / torch.where(scale == 0, 1.0, scale)).round_().clamp_(-8, 7)
        error = (q * scale - grouped_NGg).square().sum(dim=2, keepdim=True)
        better = error < best
        best = torch.where(better, error, best)
        found = torch.where(better, q, found[0]), torch.where(better, scale, found[1])
    halves = (found[0].flatten(1) + 8).to(torch.uint8)
    return halves[:, ::2] | halves[:, 1::2] << 4, found[1].squeeze(2).bfloat16()


def _in_groups(rows: Tensor, group: int) -> Tensor:
    return rows.view(len(rows), rows.shape[1] // group, group)
