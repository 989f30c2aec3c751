"""Fit the constants of collectives to their tables.

message_size counts elements of the whole receive buffer: n 16-bit elements take as long as 2n 8-bit ones, and a share
per rank would need 2.7 TB/s of an H100's 450 GB/s links at 8 ranks (docs/planner.md).
"""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array
from helicube.planner.constants import CollectiveConstants, FusedConstants
from helicube.planner.kernel_fit import KernelFit, Parameter, fit_constants
from helicube.planner.kernel_tables import Columns
from helicube.specs.hardware import HardwareSpec

__all__ = ["fit_collective", "fit_fused"]

_LARGEST_FUSED = 2**25
# Elements. Decode sends at most a few MB; larger buffers leave the fused kernels.


def _received(op: str, ranks: Array, buffer: Array) -> Array:
    return (2.0 if op == "all_reduce" else 1.0) * (ranks - 1) / ranks * buffer


def fit_collective(hardware: HardwareSpec, columns: Columns, op: str) -> tuple[CollectiveConstants, KernelFit]:
    """Fit one NCCL collective."""
    chosen = columns["op_name"] == op
    ranks, measured = columns["num_gpus"][chosen].astype(np.float64), columns["latency"][chosen] * 1e-3
    element = np.where(columns["nccl_dtype"][chosen] == "half", 2.0, 1.0)
    received = _received(op, ranks, columns["message_size"][chosen] * element)

    def predict(p: dict[str, float]) -> Array:
        transfer = received / (hardware.link_bytes_per_s * p["efficiency"])
        return np.asarray(p["base_s"] + p["step_s"] * np.log2(ranks) + transfer + p["root_s"] * np.sqrt(received))

    parameters = (
        Parameter(name="base_s", start=4e-6, low=0.5e-6, high=40e-6),
        Parameter(name="step_s", start=3e-6, low=1e-9, high=20e-6),
        Parameter(name="efficiency", start=0.8, low=0.2, high=1.0),
        Parameter(name="root_s", start=5e-9, low=1e-11, high=1e-7),
    )
    best, fit = fit_constants(f"nccl {op}", predict, parameters, measured)
    return CollectiveConstants(**best), fit


def fit_fused(hardware: HardwareSpec, columns: Columns) -> tuple[tuple[FusedConstants, FusedConstants], KernelFit]:
    """Fit the one-shot and the two-shot all-reduce together: each row is the faster of them."""
    chosen = columns["message_size"] <= _LARGEST_FUSED
    ranks, measured = columns["num_gpus"][chosen].astype(np.float64), columns["latency"][chosen] * 1e-3
    buffer = columns["message_size"][chosen] * 2.0
    link, doublings = hardware.link_bytes_per_s, np.log2(ranks)

    def predict(p: dict[str, float]) -> Array:
        one = p["base_s"] + p["step_s"] * doublings + (ranks - 1) * buffer / (link * p["efficiency"])
        volume = _received("all_reduce", ranks, buffer) / (link * p["two-shot efficiency"])
        two = p["two-shot base_s"] + p["two-shot step_s"] * doublings + volume
        return np.asarray(np.minimum(one, two))

    parameters = (
        Parameter(name="base_s", start=3e-6, low=0.5e-6, high=20e-6),
        Parameter(name="step_s", start=0.3e-6, low=1e-9, high=5e-6),
        Parameter(name="efficiency", start=0.6, low=0.2, high=1.0),
        Parameter(name="two-shot base_s", start=12e-6, low=0.5e-6, high=60e-6),
        Parameter(name="two-shot step_s", start=4e-6, low=1e-9, high=10e-6),
        Parameter(name="two-shot efficiency", start=0.6, low=0.2, high=1.0),
    )
    best, fit = fit_constants("one-shot all-reduce", predict, parameters, measured)
    one = FusedConstants(**{key: best[key] for key in ("base_s", "step_s", "efficiency")})
    two = FusedConstants(**{key: best[f"two-shot {key}"] for key in ("base_s", "step_s", "efficiency")})
    return (one, two), fit
