"""The read-time roofline of the Helix paper (arXiv 2507.07120, appendix A), as printed.

A pure bandwidth bound: no latency, no arithmetic. The planner itself uses :mod:`helicube.planner.step`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PaperLayer", "hop_b_time", "kv_read_time", "weight_read_time"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperLayer:
    """One layer of the paper's example."""

    batch: int
    # B
    query_heads: int
    # Q
    kv_heads: int
    # K
    head_size: int
    # Hsz
    hidden: int
    # H
    ffn: int
    # F
    element_bytes: float
    # b
    bandwidth: float
    # Memory bandwidth, bytes/s.


def kv_read_time(layer: PaperLayer, *, context: int, tpa: int, kvp: int) -> float:
    """Seconds to read the cache of one layer: B·2·⌈K/TPA⌉·Hsz·(S/KVP)·b / bandwidth."""
    heads = -(-layer.kv_heads // tpa)
    values = layer.batch * 2 * heads * layer.head_size * (context / kvp)
    return values * layer.element_bytes / layer.bandwidth


def weight_read_time(layer: PaperLayer, *, tpa: int, tpf: int, kvp: int = 1, output_over_pool: bool = False) -> float:
    """Seconds to read the weights of one layer: (2·H·(Q/TPA)·Hsz + 2·H·⌈K/TPA⌉·Hsz + 3·H·F/TPF)·b / bandwidth.

    Args:
        layer: sizes.
        tpa: TPA.
        tpf: TPF.
        kvp: KVP; used only with `output_over_pool`.
        output_over_pool: split W_O over TPA·KVP ranks, as Helix does; the appendix divides it by TPA.
    """
    heads = -(-layer.kv_heads // tpa)
    query = layer.hidden * (layer.query_heads / tpa) * layer.head_size
    output = query / kvp if output_over_pool else query
    values = query + output + 2 * layer.hidden * heads * layer.head_size + 3 * layer.hidden * layer.ffn / tpf
    return values * layer.element_bytes / layer.bandwidth


def hop_b_time(batch: int, compute: float, exchange: float) -> float:
    """Time of a batch with HOP-B: c + x + (B − 1)·max(c, x), in the unit of its arguments."""
    return compute + exchange + (batch - 1) * max(compute, exchange)
