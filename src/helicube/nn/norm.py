"""Normalisation in float32, whatever the type of the weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["PlainLayerNorm", "RMSNorm"]


class PlainLayerNorm(nn.Module):
    """LayerNorm over the last axis without affine parameters."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.width, self.eps = width, eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.float(), (self.width,), eps=self.eps).to(x.dtype)


class RMSNorm(nn.Module):
    """x / rms(x) · weight over the last axis (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.eps).to(x.dtype)
