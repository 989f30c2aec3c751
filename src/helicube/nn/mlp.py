"""Feed-forward layers, in the published parameter names."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["GeluMLP", "SwiGLU"]


class SwiGLU(nn.Module):
    """down(silu(gate x) · up x) (Shazeer, "GLU Variants Improve Transformer", 2020)."""

    def __init__(self, width: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=bias)
        self.up_proj = nn.Linear(width, hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return y


class GeluMLP(nn.Module):
    """down(gelu(up x)) with the exact (erf) GELU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up_proj = nn.Linear(width, hidden)
        self.down_proj = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down_proj(F.gelu(self.up_proj(x)))
        return y
