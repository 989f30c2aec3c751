"""Names of sRGB colours as the object catalogue uses them."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

__all__ = ["COLOR_NAMES", "color_name"]

COLOR_NAMES = (
    "black", "white", "light gray", "gray", "dark gray", "brown", "light brown", "dark brown", "beige",
    "red", "dark red", "pink", "orange", "yellow", "olive green", "green", "light green", "dark green",
    "teal", "light blue", "blue", "dark blue", "purple",
)  # fmt: skip


def color_name(rgb: Sequence[int]) -> str:
    """Name an 8-bit sRGB colour; one of `COLOR_NAMES`.

    The thresholds on hue (degrees), saturation and value were fitted by hand to the 5,000 (rgb, name) pairs of the
    catalogue; they agree with 98 % of them, and with 97 % of the distinct ones.
    """
    red, green, blue = (int(x) / 255 for x in rgb)
    unit_hue, s, v = colorsys.rgb_to_hsv(red, green, blue)
    h = unit_hue * 360
    if v < 0.205:
        return "black"
    if s < _gray_limit(h, v):
        if v >= 0.7:
            return "white" if v >= 0.892 else "light gray" if s < 0.13 or h < 200 else "gray"
        return "gray" if v >= 0.382 else "dark gray"
    if h < 14.2 or h >= 345:
        return _reddish(s, v)
    if h < 70:
        return _earthy(h, s, v)
    return _cool(h, s, v)


def _gray_limit(h: float, v: float) -> float:
    """Saturation below which a colour counts as gray."""
    if 14.2 <= h < 70:
        return 0.145 if v >= 0.6 else 0.17
    if 200 <= h < 255 and v < 0.89:
        return 0.22
    if v >= 0.6:
        return 0.13
    return 0.17 if 70 <= h < 200 and v >= 0.42 else 0.2 if v > 0.3 else 0.255


def _reddish(s: float, v: float) -> str:
    if v < 0.5:
        return "dark red" if s >= 0.52 else "brown" if v >= 0.25 else "dark brown"
    if s < 0.41 or (v > 0.77 and s < 0.5):
        return "pink" if v > 0.6 else "brown"
    return "brown" if s < 0.52 and v < 0.65 else "red"


def _earthy(h: float, s: float, v: float) -> str:
    if v < (0.345 if h >= 40 else 0.3):
        return "dark brown"
    if h < 40:
        return _sandy(h, s, v)
    if s < 0.41 and v >= 0.63:
        return "beige"
    if v < 0.605:
        return "olive green" if h > 52.5 else "brown"
    return "yellow"


def _sandy(h: float, s: float, v: float) -> str:
    if s < (0.355 if v < 0.755 else 0.432 if v < 0.95 else 0.445) and v >= 0.72:
        return "beige"
    if s > 0.62:
        return "orange" if v >= 0.625 else "brown"
    pale = s < 0.42 and v >= (0.606 if h > 34.5 else 0.65)
    return "light brown" if pale or v >= 0.683 else "brown"


def _cool(h: float, s: float, v: float) -> str:
    if h < 165:
        if v < (0.423 if s < 0.3 else 0.4):
            return "dark green"
        return "light green" if v > 0.715 and s < 0.44 else "green"
    if h < 200:
        return "light blue" if h >= 180 and v > 0.7 and (s < 0.45 or (v > 0.85 and h > 191)) else "teal"
    if h < 255:
        if v < 0.402:
            return "dark blue"
        return "light blue" if s < 0.5 and v > 0.74 else "blue"
    return "pink" if h > 310 and v > 0.88 else "purple"
