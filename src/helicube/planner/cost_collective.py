"""Time of collectives over n ranks; bytes are what one rank receives."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number
from helicube.planner.constants import EngineConstants, GpuConstants
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
    doublings = np.log2(np.maximum(n, 1.0))
    latency = c.base_s + (c.step_s + engine.collective_step_s) * doublings
    bandwidth, added = _link(hardware, n, op)
    time = latency + added + np.divide(received_bytes, bandwidth * c.efficiency)
    if c.root_s:
        time = time + c.root_s * np.sqrt(received_bytes)
    return np.where(n > 1, time, 0.0)


def all_reduce_time(hardware: HardwareSpec, gpu: GpuConstants, engine: EngineConstants, ranks: Number,
                    buffer_bytes: Number) -> Array:  # fmt: skip
    """Seconds of an all-reduce by the fastest of three algorithms: one-shot, two-shot, NCCL ring or tree.

    The fused kernels work inside one domain only; without fast links, or across domains, NCCL is what remains.
    """
    n = np.asarray(ranks, dtype=np.float64)
    ring_bytes = 2.0 * (n - 1.0) / n * buffer_bytes
    best = collective_time(hardware, gpu, engine, "all_reduce", ranks=n, received_bytes=ring_bytes)
    if hardware.link_kind == "pcie":
        return best
    a, b, doublings = gpu.one_shot, gpu.two_shot, np.log2(np.maximum(n, 1.0))
    one = a.base_s + a.step_s * doublings + (n - 1.0) * buffer_bytes * (1 / (hardware.link_bytes_per_s * a.efficiency))
    two = b.base_s + b.step_s * doublings + ring_bytes * (1 / (hardware.link_bytes_per_s * b.efficiency))
    fused = np.minimum(one, two) + engine.collective_step_s * doublings
    return np.where((n > 1) & (n <= hardware.link_domain), np.minimum(best, fused), best)


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
    c, doublings = gpu.one_shot, np.log2(np.maximum(n, 1.0))
    volume = np.multiply(received_bytes, 1 / (hardware.link_bytes_per_s * c.efficiency))
    fused = c.base_s + (c.step_s + engine.collective_step_s) * doublings + volume
    return np.where((n > 1) & (n <= hardware.link_domain), np.minimum(best, fused), best)
