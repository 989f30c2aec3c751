"""One fitted operation, and the fit itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from helicube.planner.arrays import Array

__all__ = ["KernelFit", "Parameter", "fit_constants"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelFit:
    """One fitted operation: measured and predicted seconds of its rows."""

    name: str
    # Such as "gemm fp8".
    measured_s: Array
    # (rows,)
    predicted_s: Array
    # (rows,)
    on_bound: tuple[str, ...] = ()
    # Constants that ended on an end of their range: the table does not identify them.

    @property
    def errors(self) -> Array:
        """(rows,) predicted over measured, minus 1."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def median_error(self) -> float:
        """Median absolute relative error."""
        return float(np.median(np.abs(self.errors)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A constant to fit: where the search starts, and the ends of its range."""

    name: str
    start: float
    low: float
    high: float


def fit_constants(name: str, predict: Callable[[dict[str, float]], Array], parameters: Sequence[Parameter],
                  measured_s: Array) -> tuple[dict[str, float], KernelFit]:  # fmt: skip
    """Minimise the robust log error over parameters in log space.

    Args:
        name: of the operation.
        predict: seconds of all rows, from constants by name.
        parameters: what to fit.
        measured_s: (rows,)
    """
    from scipy.optimize import least_squares

    low, high = (np.log([getattr(p, end) for p in parameters]) for end in ("low", "high"))
    start = np.clip(np.log([p.start for p in parameters]), low + 1e-6, high - 1e-6)

    def values(x: Any) -> dict[str, float]:
        return {p.name: float(np.exp(v)) for p, v in zip(parameters, x, strict=True)}

    found = least_squares(
        lambda x: np.log(predict(values(x))) - np.log(measured_s),
        start,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=0.1,
    )
    best = values(found.x)
    # Within a hundredth of an end: the search would go on.
    ends = tuple(
        f"{p.name} = {best[p.name]:.3g}" for p in parameters if not p.low * 1.01 < best[p.name] < p.high * 0.99
    )
    return best, KernelFit(name=name, measured_s=measured_s, predicted_s=predict(best), on_bound=ends)
