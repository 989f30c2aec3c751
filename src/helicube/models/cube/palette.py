"""The few colours of an object, and their ids.

An object's colours are a palette, by area, and a choice among it at every point. Kept apart like this, "red" in a
prompt decides a palette entry and nothing of the shape, and any shape can be painted in any colours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "NUM_COLOR_IDS", "UNUSED", "color_ids", "colors_of_ids", "find_palette"]

# Values of each channel of a palette entry, evenly spaced over 0 … 255.
LEVELS = 10
# Id of an entry that the object does not need; it follows the LEVELS³ colours.
UNUSED = LEVELS**3
NUM_COLOR_IDS = UNUSED + 1
# Distinct shades that are compared with each other; rarer ones join the nearest.
MAX_SHADES = 64


def color_ids(colors: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(..., 3) sRGB to (...) ids of the nearest palette colours."""
    steps = np.round(colors.astype(np.float64) * (LEVELS - 1) / 255).astype(np.int64)
    return np.asarray((steps[..., 0] * LEVELS + steps[..., 1]) * LEVELS + steps[..., 2])


def colors_of_ids(ids: NDArray[np.integer]) -> NDArray[np.uint8]:
    """(...) ids below UNUSED to (..., 3) sRGB."""
    steps = np.stack([ids // LEVELS**2, ids // LEVELS % LEVELS, ids % LEVELS], axis=-1)
    return np.round(steps * (255 / (LEVELS - 1))).astype(np.uint8)


def find_palette(colors: NDArray[np.uint8], size: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """At most `size` colours that stand for many, most common first.

    Shades are merged pairwise, always the two whose merging adds least squared error (Ward, 1963).

    Args:
        colors: (n, 3) sRGB, one for each equal share of the surface.

    Returns:
        (k, 3) sRGB, and the (n,) entry of each colour.
    """
    # Shades of 32 levels a channel as one number each: np.unique over rows takes ten times as long.
    shade = (colors // 8).astype(np.int64) @ np.array([1024, 32, 1])
    coarse, member, count = np.unique(shade, return_inverse=True, return_counts=True)
    mean = np.stack([np.bincount(member, colors[:, c]) for c in range(3)], axis=1) / count[:, None]
    weight = count.astype(np.float64)
    kept = np.argsort(-weight, kind="stable")[:MAX_SHADES]
    distance = ((mean[:, None] - mean[None, kept]) ** 2).sum(axis=-1)  # (shades, kept)
    owner = distance.argmin(axis=1)
    mean, weight = _pool(mean, weight, owner, len(kept))
    while len(mean) > size:
        cost = ((mean[:, None] - mean[None]) ** 2).sum(axis=-1)
        cost *= weight[:, None] * weight[None] / (weight[:, None] + weight[None])
        np.fill_diagonal(cost, np.inf)
        i, j = sorted(divmod(int(cost.argmin()), len(mean)))
        step = np.arange(len(mean))
        step[j] = i
        step[j + 1 :] -= 1
        mean, weight = _pool(mean, weight, step, len(mean) - 1)
        owner = step[owner]
    assert len(coarse) == len(owner)
    order = np.argsort(-weight, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.round(mean[order]).astype(np.uint8), np.asarray(rank[owner[member]])


def _pool(
    mean: NDArray[np.float64], weight: NDArray[np.float64], owner: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted means and weights of the groups that `owner` names."""
    total = np.bincount(owner, weight, minlength=count).astype(np.float64)
    pooled = np.stack([np.bincount(owner, weight * mean[:, c], minlength=count) for c in range(3)], axis=1)
    return pooled / total[:, None], total
