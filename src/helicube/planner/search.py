"""Evaluate every layout at every batch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array
from helicube.planner.layouts import FAMILIES, LayoutArrays
from helicube.planner.memory import memory_of
from helicube.planner.setting import Setting
from helicube.planner.step import decode_phases, total_time

__all__ = ["Points", "default_batches", "evaluate", "evaluate_grid", "search"]

# Points of one chunk: its working set of float64 arrays stays in the cache of a core.
_CHUNK = 8192
_THREADS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Points:
    """Evaluated points; arrays are (n,)."""

    layouts: LayoutArrays
    batch: Array
    # Users of the whole pool.
    ttl_s: Array
    # Token-to-token latency.
    free_bytes: Array
    # Memory left on the fullest GPU; negative where the point does not fit.

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """(n,) memory suffices."""
        return np.greater_equal(self.free_bytes, 0.0)

    @property
    def tokens_per_s_user(self) -> Array:
        """(n,) interactivity."""
        return 1.0 / self.ttl_s

    @property
    def tokens_per_s_gpu(self) -> Array:
        """(n,) throughput of one GPU."""
        return self.batch / (self.ttl_s * self.layouts.num_gpus)

    def take(self, index: NDArray[np.intp] | slice) -> Self:
        """The points at `index`."""
        plain = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "layouts"}
        return type(self)(layouts=self.layouts.take(index), **plain)

    def where(self, mask: NDArray[np.bool_]) -> Self:
        """The points where `mask` is true."""
        return self.take(np.flatnonzero(mask))

    def of_family(self, name: str) -> Self:
        """The points of one family."""
        return self.where(self.layouts.family == FAMILIES.index(name))


def default_batches(largest: int = 4096, step: float = 1.1) -> Array:
    """Whole batches from 1 to `largest`, each at the most `step` times the one before (or one more)."""
    found = [1]
    while found[-1] < largest:
        found.append(min(largest, max(found[-1] + 1, int(found[-1] * step))))
    return np.array(found, dtype=np.float64)


def evaluate(s: Setting, layouts: LayoutArrays, batch: Array, context: float) -> Points:
    """Evaluate n points, each a layout with its batch, in chunks on two threads.

    Args:
        s: model, accelerator, engine, formats.
        layouts: (n,)
        batch: (n,) users of the whole pool.
        context: cached tokens per user.
    """
    ttl, free = np.empty(len(batch)), np.empty(len(batch))

    def run(start: int) -> None:
        part = slice(start, start + _CHUNK)
        x, b = layouts.take(part), batch[part]
        ttl[part] = total_time(decode_phases(s, x, b, context))
        free[part] = memory_of(s, x, b, context).free

    _on_threads(run, range(0, len(batch), _CHUNK))
    return Points(layouts=layouts, batch=batch, ttl_s=ttl, free_bytes=free)


def evaluate_grid(s: Setting, layouts: LayoutArrays, batches: Array, context: float) -> tuple[Array, Array]:
    """(latency in seconds, free bytes), each (l, b), of every layout at every batch, on two threads.

    What depends on the layout alone, or on the batch alone, is computed once for a row or a column of the grid.

    Args:
        s: model, accelerator, engine, formats.
        layouts: (l,); neighbours of one family are the fastest, since whole chunks skip what their family lacks.
        batches: (b,) users of the whole pool.
        context: cached tokens per user.
    """
    shape = (len(layouts), len(batches))
    ttl, free = np.empty(shape), np.empty(shape)
    rows = max(1, _CHUNK // max(1, len(batches)))

    def run(start: int) -> None:
        part = slice(start, start + rows)
        x = layouts.take(part).as_column()
        ttl[part] = total_time(decode_phases(s, x, batches[None, :], context))
        free[part] = memory_of(s, x, batches[None, :], context).free

    _on_threads(run, range(0, len(layouts), rows))
    return ttl, free


def _on_threads(run: Callable[[int], None], starts: range) -> None:
    if len(starts) > 1:
        # numpy releases the interpreter lock inside its loops.
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(run, starts))
    elif starts:
        run(0)


def search(s: Setting, layouts: LayoutArrays, context: float, batches: Array) -> Points:
    """Every layout at every batch whose memory fits.

    Args:
        s: model, accelerator, engine, formats.
        layouts: (l,)
        context: cached tokens per user.
        batches: (b,) users of the whole pool.
    """
    ordered = layouts.take(np.lexsort((layouts.overlap, layouts.family)))
    ttl, free = evaluate_grid(s, ordered, batches, context)
    # Without this, a small pool of one user per copy of attention would be offered as a wide one.
    useful = batches[None, :] >= (ordered.dp * ordered.pp)[:, None]
    index, chosen = np.nonzero((free >= 0) & useful)
    return Points(layouts=ordered.take(index), batch=batches[chosen], ttl_s=ttl[index, chosen],
                  free_bytes=free[index, chosen])  # fmt: skip
