"""Pareto frontiers of throughput against interactivity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array
from helicube.planner.search import Points

__all__ = ["best_throughput_at", "frontier", "pareto_index", "thin_index"]


def pareto_index(x: Array, y: Array) -> NDArray[np.intp]:
    """Indices of the points that no other point beats in both `x` and `y`, largest x first; ties keep one.

    Args:
        x: (n,) larger is better.
        y: (n,) larger is better.
    """
    order = np.lexsort((-y, -x))
    sorted_y = y[order]
    before = np.maximum.accumulate(np.concatenate(([-np.inf], sorted_y[:-1]))) if len(y) else sorted_y
    return order[sorted_y > before]


def frontier(points: Points) -> Points:
    """The Pareto frontier of tokens/s/user against tokens/s/GPU, fastest first."""
    return points.take(pareto_index(points.tokens_per_s_user, points.tokens_per_s_gpu))


def best_throughput_at(points: Points, speeds: Array) -> Array:
    """Largest tokens/s/GPU among points of at least each speed; 0 where there is none.

    Args:
        points: any points.
        speeds: (k,) tokens/s/user.
    """
    if not len(points):
        return np.zeros(len(speeds))
    front = frontier(points)
    # Fastest first: the last one that is fast enough has the largest throughput.
    position = np.searchsorted(-front.tokens_per_s_user, -speeds, side="right")
    return np.where(position > 0, front.tokens_per_s_gpu[np.maximum(position - 1, 0)], 0.0)


def thin_index(x: Array, count: int) -> NDArray[np.intp]:
    """At most `count` indices of a frontier, evenly spread over log x, its two ends included."""
    if len(x) <= count:
        return np.arange(len(x))
    wanted = np.linspace(np.log(x[0]), np.log(x[-1]), count)
    return np.unique(np.abs(np.log(x)[None, :] - wanted[:, None]).argmin(axis=1))
