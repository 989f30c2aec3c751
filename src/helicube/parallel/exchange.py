"""Partial attention outputs on their way to the ranks that merge them: one message per peer, output and LSE together.

n KVP ranks, X any axes of tokens, h query heads per rank after the exchange, v value size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from helicube.nn.merge import merge_partials
from helicube.parallel.collectives import Collectives, Group, Pending

__all__ = ["merge_received", "send_partials"]

LSE_BYTES = 4


def send_partials(
    o_XQv: Tensor, lse_XQ: Tensor, *, heads: int, dtype: torch.dtype, collectives: Collectives, group: Group
) -> Pending:
    """Start the all-to-all over query heads inside a KVP group.

    Args:
        o_XQv: output over this rank's keys, all heads of the TPA slice.
        lse_XQ: its natural-log LSE.
        heads: h; the last ranks get zeros for the heads beyond Q.
        dtype: of the outputs in the message; LSEs travel in float32, as their errors are multiplied by the outputs.
    """
    n = len(group)
    pad = n * heads - o_XQv.shape[-2]
    axes = lse_XQ.shape[:-1]
    o = F.pad(o_XQv, (0, 0, 0, pad)).to(dtype).view(*axes, n, heads, -1).movedim(-3, 0)
    lse = F.pad(lse_XQ.float(), (0, pad)).view(*axes, n, heads, 1).movedim(-3, 0)
    message = torch.cat([o.contiguous().view(torch.uint8), lse.contiguous().view(torch.uint8)], dim=-1)
    return collectives.all_to_all(message, group)


def merge_received(message_nXhb: Tensor, dtype: torch.dtype) -> Tensor:
    """Merge what the KVP ranks sent; (X, h, v) in `dtype`."""
    o = message_nXhb[..., :-LSE_BYTES].contiguous().view(dtype)
    lse = message_nXhb[..., -LSE_BYTES:].contiguous().view(torch.float32)[..., 0]
    return merge_partials(o, lse)[0].to(dtype)
