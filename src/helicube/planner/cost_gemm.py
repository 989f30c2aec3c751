"""Time of a GEMM: y (m, n) = x (m, k) · w (k, n)."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number, combine
from helicube.planner.constants import GemmConstants
from helicube.specs.hardware import HardwareSpec
from helicube.specs.precision import BLOCK_FP8, PRECISIONS

__all__ = ["FORMAT_BYTES", "GEMM_MATH", "gemm_time", "shard_width"]

_FORMATS = {**PRECISIONS, BLOCK_FP8.name: BLOCK_FP8}
# Bytes per weight, scales included, by format of the GEMM kernel.
FORMAT_BYTES = {name: p.stored_bytes for name, p in _FORMATS.items()}
# Tensor-core rate that each kernel format runs at.
GEMM_MATH = {name: p.math for name, p in _FORMATS.items()}
# Columns that share a scale: a shard of an FFN's width is a whole number of them.
_SCALE_COLUMNS = {"fp4": 16.0}

# Rows and columns of one output tile, and tiles that run at once: the scale at which a matrix stops filling the GPU.
_TILE = 128
_PARALLEL_TILES = 140


def shard_width(size: float, ranks: Number, fmt: str) -> Array:
    """Columns of an FFN's shard on one GPU: ⌈size / ranks⌉, for fp4 a multiple of the 16 that share a scale."""
    block = _SCALE_COLUMNS.get(fmt, 1.0)
    return block * np.ceil(size / (block * np.asarray(ranks, dtype=np.float64)))


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
    byte_s = c.serving_scale / (hardware.hbm_bytes_per_s * c.hbm_efficiency)
    flop_s = 2.0 * c.serving_scale / (hardware.flops(math) * c.math_efficiency)
    # What does not depend on m comes first: n and k may be columns and m a row of a grid of points.
    area = np.multiply(n, k)
    read = m * (np.multiply(k, element * byte_s) + np.multiply(n, 2.0 * byte_s)) + area * (element * byte_s)
    flops = m * (area * flop_s)
    if np.ndim(c.loop_s) == 0 and not c.loop_s:
        return combine(read, flops)
    # One tile's walk over k, once for each wave of tiles: waves = max(1, n·max(1, m/tile)/(tile·parallel tiles)).
    walk = np.multiply(k, c.loop_s * c.serving_scale)
    waves = np.multiply(n, 1.0 / (_TILE * _PARALLEL_TILES))
    loop = np.maximum(walk * np.maximum(1.0, waves), m * (walk * waves * (1.0 / _TILE)))
    return combine(read, flops, loop)
