"""Names for the arrays that flow through the planner.

Every cost function takes scalars or arrays that broadcast; (n,) means one value per point of the search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Number", "ceil_div", "combine"]

Array = NDArray[np.float64]
Number = float | Array


def ceil_div(a: Number, b: Number) -> Array:
    """⌈a / b⌉, element by element; where every b is 1, in the shape of `a`, which may be a row of a grid."""
    if isinstance(b, np.ndarray) and b.size and b.max() == 1.0 and b.min() == 1.0 and np.ndim(a) == b.ndim:
        return np.ceil(np.asarray(a, dtype=np.float64))
    return np.ceil(np.asarray(a, dtype=np.float64) / b)


def combine(read_s: Number, math_s: Number, loop_s: Number = 0.0) -> Array:
    """Time of a kernel whose parts overlap imperfectly: sqrt(read² + math² + loop²).

    Between max (perfect overlap) and sum (none); exponent 2 fits the kernel tables as well as any in 1.5 … 3 does, and
    sqrt is the cheapest of them.
    """
    total = np.square(np.asarray(read_s, dtype=np.float64))
    total = total + np.square(math_s)
    if not isinstance(loop_s, float) or loop_s:
        total += np.square(loop_s)
    return np.sqrt(total)
