"""Weight matrices as the kernels read them, and their plain meaning.

N outputs, K inputs, G inputs per group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

__all__ = ["KernelFormat", "KernelWeight", "kernel_weight"]

KernelFormat = Literal["dense", "int8", "int4", "fp8"]

SHIFTS = tuple(range(0, 32, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWeight:
    """One matrix (N, K)."""

    # dense: (N, K) floating. int8, fp8 (e4m3): (N, K). int4: (N, K/8) int32 words, K whole groups; nibble j of word w
    # of a group holds input j·G/8 + w of that group as q + 8, so that one shift of all words gives neighbours in x.
    data: Tensor
    format: KernelFormat = "dense"
    # (N,) float32 for int8 and fp8; (N, K/G) floating for int4; None for dense.
    scale: Tensor | None = None

    @property
    def num_outputs(self) -> int:
        return self.data.shape[0]

    @property
    def num_inputs(self) -> int:
        """K; for int4 up to a group more than x has, of zeros."""
        return self.data.shape[1] * (8 if self.format == "int4" else 1)

    @property
    def group(self) -> int:
        """Inputs that share a scale; 0 where all inputs of an output do."""
        return self.num_inputs // self.scale.shape[1] if self.format == "int4" and self.scale is not None else 0

    @property
    def num_bytes(self) -> int:
        """Bytes that a product reads."""
        return self.data.nbytes + (0 if self.scale is None else self.scale.nbytes)

    def dequantize(self) -> Tensor:
        """The matrix (N, K) in float32."""
        if self.scale is None:
            return self.data.float()
        if self.format != "int4":
            return self.data.float() * self.scale[:, None]
        words = self.data.unflatten(1, (-1, 1, self.group // 8))
        q = (words >> torch.tensor(SHIFTS, device=words.device)[:, None] & 15) - 8
        return q.flatten(1).float() * self.scale.float().repeat_interleave(self.group, dim=1)


def kernel_weight(weight: Tensor, scale: Tensor | None = None) -> KernelWeight:
    """A stored matrix in the kernels' order; its type says the format.

    Args:
        weight: (N, K) floating, int8 or fp8; or (N, K/2) uint8 for int4: weight 2j + 8 in the low half of byte j and
            weight 2j + 1 in the high half.
        scale: (N,) float32 for int8 and fp8; (N, K/G) floating for int4, G a multiple of 32.
    """
    if scale is None:
        return KernelWeight(data=weight.contiguous())
    if weight.dtype != torch.uint8:
        name: KernelFormat = "fp8" if weight.dtype == torch.float8_e4m3fn else "int8"
        return KernelWeight(data=weight.contiguous(), format=name, scale=scale.float().contiguous())
    group = 2 * weight.shape[1] // scale.shape[1]
    assert group % 32 == 0, f"groups of {group} inputs; the kernels take multiples of 32"
    q = torch.stack([weight & 15, weight >> 4], dim=-1).flatten(1).unflatten(1, (-1, 8, group // 8))
    words = torch.zeros_like(q[:, :, 0], dtype=torch.int32)
    for j, shift in enumerate(SHIFTS):
        words |= q[:, :, j].to(torch.int32) << shift
    return KernelWeight(data=words.flatten(1), format="int4", scale=scale.contiguous())
