"""Short names of weights, to tell whether two models are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["weights_digest"]


def weights_digest(tensors: Mapping[str, Tensor]) -> str:
    """16 hexadecimal digits, the same whether the weights were read as float32 or as bfloat16."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        rounded = tensor.detach().to("cpu", torch.bfloat16).contiguous()
        digest.update(f"{name} {tuple(rounded.shape)}".encode() + rounded.view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:16]
