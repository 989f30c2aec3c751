"""sRGB and light intensities. Source: IEC 61966-2-1."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["linear_to_srgb", "srgb_to_linear"]

Real = TypeVar("Real", np.float32, np.float64)


def srgb_to_linear(srgb: NDArray[Real]) -> NDArray[Real]:
    """Light intensities of sRGB values, both 0 to 1."""
    return np.asarray(np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4), dtype=srgb.dtype)


def linear_to_srgb(linear: NDArray[Real]) -> NDArray[Real]:
    """sRGB values of light intensities, both 0 to 1; what is outside is cut off."""
    x = np.clip(linear, 0, 1)
    return np.asarray(np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055), dtype=linear.dtype)
