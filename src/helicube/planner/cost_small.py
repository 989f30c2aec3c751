"""Times of what is neither GEMM, attention, expert nor collective: norms, activations, sampling, launches."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number
from helicube.specs.hardware import HardwareSpec

__all__ = ["EAGER_KERNEL_S", "elementwise_time", "launch_time", "sampling_time", "stream_time"]

# Reads and writes of a row of H 16-bit values in one layer: two norms with residual (3 + 3), rotary and cache write
# (2), activation between the FFN's projections (about 4).
_LAYER_PASSES = 12
_STREAM_EFFICIENCY = 0.7
# Host time to launch one kernel from Python without a graph: operator dispatch and the driver's call (assumed).
EAGER_KERNEL_S = 10e-6


def elementwise_time(hardware: HardwareSpec, tokens: Number, hidden: int) -> Array:
    """Seconds of the norms, rotary and activations of one layer, at 0.7 of peak bandwidth (assumed)."""
    return np.multiply(tokens, _LAYER_PASSES * 2.0 * hidden / (_STREAM_EFFICIENCY * hardware.hbm_bytes_per_s))


def stream_time(hardware: HardwareSpec, moved_bytes: Number) -> Array:
    """Seconds of a kernel that only moves bytes, at 0.7 of peak bandwidth (assumed)."""
    return np.multiply(moved_bytes, 1.0 / (_STREAM_EFFICIENCY * hardware.hbm_bytes_per_s))


def sampling_time(hardware: HardwareSpec, tokens: Number, vocab: int) -> Array:
    """Seconds of sampling: three passes over float32 logits, at 0.7 of peak bandwidth (assumed)."""
    return np.multiply(tokens, 3 * 4.0 * vocab / (_STREAM_EFFICIENCY * hardware.hbm_bytes_per_s))


def launch_time(kernels: float, device_s: Array) -> Array:
    """Seconds that `kernels` launches add to a step without a captured graph, at 10 µs of host time each (assumed).

    They run ahead of the device until they are the slower of the two; with a graph they cost nothing here.
    """
    return np.maximum(0.0, kernels * EAGER_KERNEL_S - device_s)
