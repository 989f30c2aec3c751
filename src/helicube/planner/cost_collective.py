"""Time of collectives over n ranks; bytes are what one rank receives."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number
from helicube.planner.constants import EngineConstants, FusedConstants, GpuConstants
from helicube.specs.hardware import HardwareSpec

__all__ = ["all_reduce_time", "collective_time", "move_time"]


# What crossing domains adds to a collective: one network round, and one more for each doubling of the domains (assumed:
# no table goes beyond one domain).
_NETWORK_BASE_S = 15e-6
_NETWORK_STEP_S = 5e-6


def _link(hardware: HardwareSpec, ranks: Array, op: str) -> tuple[Number, Number]:
    """(bandwidth of one rank, added latency): the fast links inside the domain, the network cards beyond it.

    Across domains an all-to-all leaves through each rank's own card, while the other collectives send every byte once
    per domain, so that the cards of its ranks share the work.
    """
    if hardware.link_domain >= np.max(ranks):
        return hardware.link_bytes_per_s, 0.0
    cards = 1.0 if op == "alltoall" else float(hardware.link_domain)
    outside = min(hardware.link_bytes_per_s, cards * hardware.network_bytes_per_s)
    beyond = ranks > hardware.link_domain
    added = _NETWORK_BASE_S + _NETWORK_STEP_S * np.log2(np.maximum(ranks / hardware.link_domain, 1.0))
    return np.where(beyond, outside, hardware.link_bytes_per_s), np.where(beyond, added, 0.0)


def collective_time(hardware: HardwareSpec, gpu: GpuConstants, engine: EngineConstants, op: str, *,
                    ranks: Number, received_bytes: Number) -> Array:  # fmt: skip
    """Seconds of one NCCL-like collective; 0 for a single rank.

    Args:
        hardware: link bandwidths.
        gpu: fitted latencies and shares.
        engine: what it adds to each call.
        op: all_gather, alltoall, reduce_scatter or all_reduce.
        ranks: n.
        received_bytes: bytes that each rank receives from the others; for all_reduce 2·(n−1)/n of the buffer.
    """
    c = gpu.collectives[op]
    n = np.asarray(ranks, dtype=np.float64)
    latency = c.base_s + (c.step_s + engine.collective_step_s) * np.log2(np.maximum(n, 1.0))
    bandwidth, added = _link(hardware, n, op)
    # What depends on the ranks alone comes first: they may be a column of a grid of points.
    several = n > 1
    fixed, byte_s = np.where(several, latency + added, 0.0), np.where(several, 1.0 / (bandwidth * c.efficiency), 0.0)
    time = fixed + received_bytes * byte_s
    if c.root_s:
        time = time + np.sqrt(received_bytes) * np.where(several, c.root_s, 0.0)
    return time


def all_reduce_time(hardware: HardwareSpec, gpu: GpuConstants, engine: EngineConstants, ranks: Number,
                    buffer_bytes: Number) -> Array:  # fmt: skip
    """Seconds of an all-reduce by the fastest of three algorithms: one-shot, two-shot, NCCL ring or tree.

    The fused kernels work inside one domain only; without fast links, or across domains, NCCL is what remains.
    """
    n = np.asarray(ranks, dtype=np.float64)
    ring = 2.0 * (n - 1.0) / n
    best = collective_time(hardware, gpu, engine, "all_reduce", ranks=n, received_bytes=ring * buffer_bytes)
    if hardware.link_kind == "pcie":
        return best
    for c, share in ((gpu.one_shot, n - 1.0), (gpu.two_shot, ring)):
        fixed, byte_s = _fused(hardware, engine, c, n)
        best = np.minimum(best, fixed + buffer_bytes * (share * byte_s))
    return best


def _fused(hardware: HardwareSpec, engine: EngineConstants, c: FusedConstants, n: Array) -> tuple[Array, Number]:
    """(latency, seconds per byte) of a fused kernel; 0 alone, infinite beyond the domain, where there is none."""
    latency = c.base_s + (c.step_s + engine.collective_step_s) * np.log2(np.maximum(n, 1.0))
    fixed = np.where(n > 1, np.where(n <= hardware.link_domain, latency, np.inf), 0.0)
    return fixed, 1.0 / (hardware.link_bytes_per_s * c.efficiency)


def move_time(hardware: HardwareSpec, gpu: GpuConstants, engine: EngineConstants, op: str, *, ranks: Number,
              received_bytes: Number) -> Array:  # fmt: skip
    """Seconds of an all-gather, reduce-scatter or all-to-all by the faster of NCCL and a fused kernel.

    No table measures a fused one: it is taken as one read of all peers with the latency and bandwidth of the one-shot
    all-reduce, which does the same.
    """
    n = np.asarray(ranks, dtype=np.float64)
    best = collective_time(hardware, gpu, engine, op, ranks=n, received_bytes=received_bytes)
    if hardware.link_kind == "pcie" or not gpu.fused_moves:
        return best
    fixed, byte_s = _fused(hardware, engine, gpu.one_shot, n)
    return np.minimum(best, fixed + received_bytes * byte_s)
