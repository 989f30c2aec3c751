"""Attention over heads; B batch, H heads, L queries, M keys, d head size."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

__all__ = ["attend", "merge_heads", "split_heads"]


def split_heads(x_BLD: Tensor, num_heads: int) -> Tensor:
    """(B, L, H·d) to (B, H, L, d)."""
    return x_BLD.view(*x_BLD.shape[:2], num_heads, -1).transpose(1, 2)


def merge_heads(x_BHLd: Tensor) -> Tensor:
    """(B, H, L, d) to (B, L, H·d)."""
    return x_BHLd.transpose(1, 2).flatten(2)


def attend(q_BHLd: Tensor, k_BHMd: Tensor, v_BHMd: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(q kᵀ / √d) v, where mask (broadcast to (B, H, L, M)) is true for the keys that a query may see."""
    return F.scaled_dot_product_attention(q_BHLd, k_BHMd, v_BHMd, attn_mask=mask)
