"""Time of a GEMM: y (m, n) = x (m, k) · w (k, n)."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number, combine
from helicube.planner.constants import GemmConstants
from helicube.specs.hardware import HardwareSpec

__all__ = ["FORMAT_BYTES", "GEMM_MATH", "gemm_time"]

# Bytes per weight, scales included, by format of the GEMM kernel.
FORMAT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "fp4": 0.5625, "int4": 0.5625}
# Tensor-core rate that each kernel format runs at.
GEMM_MATH = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "fp4": "fp4", "int4": "bf16"}

# Rows and columns of one output tile, and tiles that run at once: the scale at which a matrix stops filling the GPU.
_TILE = 128
_PARALLEL_TILES = 140


def gemm_time(hardware: HardwareSpec, c: GemmConstants, fmt: str, *, m: Number, n: Number, k: Number) -> Array:
    """Seconds of one GEMM without its launch.

    read: weights and activations at memory bandwidth; math: 2·m·n·k at tensor-core rate; loop: the serial walk of one
    tile over k, once per wave of tiles. The loop rules for the narrow shards of wide tensor parallelism.

    Args:
        hardware: peaks.
        c: fitted shares of them.
        fmt: kernel format, a key of FORMAT_BYTES.
        m: tokens.
        n: columns of the shard on one GPU.
        k: inner dimension of the shard on one GPU.
    """
    element = FORMAT_BYTES[fmt]
    math = GEMM_MATH[fmt] if hardware.flops(GEMM_MATH[fmt]) else "bf16"
    scale = c.serving_scale
    moved = (np.multiply(n, k) + np.multiply(m, k)) * element + np.multiply(m, n) * 2.0
    read = moved * (scale / (hardware.hbm_bytes_per_s * c.hbm_efficiency))
    flops = np.multiply(np.multiply(m, n), k) * (2.0 * scale / (hardware.flops(math) * c.math_efficiency))
    if not c.loop_s:
        return combine(read, flops)
    waves = np.maximum(
        1.0, np.multiply(n, np.maximum(1.0, np.multiply(m, 1 / _TILE))) * (1 / (_TILE * _PARALLEL_TILES))
    )
    return combine(read, flops, waves * k * (c.loop_s * scale))
