"""Exact merge of attention over disjoint sets of keys.

Every LSE here is a natural logarithm. Mixing it with a base-2 one, which some kernels return, gives wrong weights and
no error.
Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Helix Parallelism, section 2.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["merge_partials"]


def merge_partials(o_SXv: Tensor, lse_SX: Tensor) -> tuple[Tensor, Tensor]:
    """Attention over the union of S disjoint sets of keys from the attention over each.

    Args:
        o_SXv: (S, …, v) outputs, each normalised over its own keys; zero for an empty set.
        lse_SX: (S, …) log Σ exp(score) over each set; −∞ for an empty set.

    Returns:
        Output (…, v) in float32 and LSE (…); (0, −∞) where every set is empty.
    """
    lse = lse_SX.float()
    top = lse.amax(dim=0)
    # exp(−∞ − (−∞)) is NaN: where all sets are empty, subtract 0.
    top = torch.where(top == -torch.inf, 0.0, top)
    weight = (lse - top).exp()
    total = weight.sum(dim=0)
    share = weight / total.clamp_min(torch.finfo(torch.float32).tiny)
    return (share[..., None] * o_SXv.float()).sum(dim=0), top + total.log()
