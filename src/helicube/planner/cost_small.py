"""Times of what is neither GEMM, attention, expert nor collective: norms, activations, sampling, launches."""

from __future__ import annotations

import numpy as np

from helicube.planner.arrays import Array, Number
from helicube.planner.constants import EngineConstants
from helicube.specs.hardware import HardwareSpec

__all__ = ["elementwise_time", "launch_time", "sampling_time", "stream_time"]

# Reads and writes of a row of H 16-bit values in one layer: two norms with residual (3 + 3), rotary and cache write
# (2), activation between the FFN's projections (about 4).
_LAYER_PASSES = 12
_STREAM_EFFICIENCY = 0.7


def elementwise_time(hardware: HardwareSpec, tokens: Number, hidden: int) -> Array:
    """Seconds of the norms, rotary and activations of one layer, at 0.7 of peak bandwidth (assumed)."""
    return np.multiply(tokens, _LAYER_PASSES * 2.0 * hidden / (_STREAM_EFFICIENCY * hardware.hbm_bytes_per_s))


def stream_time(hardware: HardwareSpec, moved_bytes: Number) -> Array:
    """Seconds of a kernel that only moves bytes, at 0.7 of peak bandwidth (assumed)."""
    return np.multiply(moved_bytes, 1.0 / (_STREAM_EFFICIENCY * hardware.hbm_bytes_per_s))


def sampling_time(hardware: HardwareSpec, tokens: Number, vocab: int) -> Array:
    """Seconds of sampling: three passes over float32 logits, at 0.7 of peak bandwidth (assumed)."""
    return np.multiply(tokens, 3 * 4.0 * vocab / (_STREAM_EFFICIENCY * hardware.hbm_bytes_per_s))


def launch_time(engine: EngineConstants, device_s: Array, layers: Number) -> Array:
    """Seconds that launches add to a step without a captured graph.

    They run ahead of the device until they are the slower of the two; with a graph they cost nothing here.
    """
    return np.maximum(0.0, np.multiply(layers, engine.eager_layer_s) - device_s)
