"""Why no layout qualifies, and what would make one qualify."""

from __future__ import annotations

import numpy as np

from helicube.errors import InputError
from helicube.planner.candidate import candidate_of, count
from helicube.planner.layouts import LayoutArrays, enumerate_layouts
from helicube.planner.memory import memory_of
from helicube.planner.question import Question
from helicube.planner.search import Points, search
from helicube.planner.setting import Setting

__all__ = ["refusal"]

# Largest pool that is tried when a remedy is looked for.
_MOST_GPUS = 1024


def refusal(q: Question, s: Setting, points: Points, layouts: LayoutArrays) -> InputError:
    """The error to raise when no point qualifies: which limit fails, and what would make it possible.

    Args:
        q: what was asked.
        s: model, accelerator, engine, formats.
        points: every point that fits.
        layouts: every layout of the pool.
    """
    name, gpu = s.model.name, s.hardware.name
    if not len(layouts):
        return InputError(
            f"no layout of {q.pool} GPUs for {name} in {', '.join(q.families)}; widths must divide heads and experts: "
            "try a power of two, or all families"
        )
    if not len(points):
        return _too_large(q, s, layouts)
    users = points.where(points.batch >= q.users) if q.users else points
    if not len(users):
        most = int(np.max(points.batch))
        return InputError(
            f"{q.users} users do not fit {q.max_gpus} × {gpu}: the most is {most} at this context; "
            f"use {_more_gpus(q, s, q.users or 1)}, a lower precision or a shorter context"
        )
    i = int(np.argmin(users.ttl_s))
    fastest = candidate_of(s, users, i, q.context)
    limit, seconds = next(iter(fastest.limits_s.items()))
    assert q.ttl_s is not None, "without a latency every point qualifies"
    return InputError(
        f"{q.ttl_s * 1e3:g} ms per token is impossible here: the fastest point takes {fastest.ttl_s * 1e3:.2f} ms "
        f"({fastest.layout} at {count(fastest.batch, 'user')}), {seconds * 1e3:.2f} ms of it {limit}; "
        + _possible(q, s, fastest.ttl_s)
    )


def _too_large(q: Question, s: Setting, layouts: LayoutArrays) -> InputError:
    m = memory_of(s, layouts, layouts.dp * layouts.pp, q.context)
    i = int(np.argmax(m.free))
    short, weights, cache = (float(v[i]) / 1e9 for v in (-m.free, m.weights, m.cache))
    return InputError(
        f"{s.model.name} with a context of {q.context:,} does not fit {q.max_gpus} × {s.hardware.name}: the roomiest "
        f"layout, {layouts.describe(i)}, needs {weights:.1f} GB for weights and {cache:.1f} GB for cache per GPU, "
        f"{short:.1f} GB too much; use {_more_gpus(q, s, 1)}, a lower precision or a shorter context"
    )


def _wider(q: Question, s: Setting) -> list[tuple[int, LayoutArrays]]:
    """Larger pools, doubling."""
    found, n = [], 2 * q.max_gpus
    while n <= _MOST_GPUS:
        found.append((n, enumerate_layouts(s.model, n, min_gpus=n, families=q.families, overlap=False)))
        n *= 2
    return found


def _more_gpus(q: Question, s: Setting, users: int) -> str:
    """The smallest doubled pool that holds the users."""
    for n, layouts in _wider(q, s):
        batch = np.maximum(float(users), layouts.dp * layouts.pp)
        if len(layouts) and bool(np.any(memory_of(s, layouts, batch, q.context).fits)):
            return f"--max-gpus {n}"
    return "more GPUs of larger memory"


def _possible(q: Question, s: Setting, fastest_s: float) -> str:
    """A context, a pool or a target that would do."""
    assert q.ttl_s is not None, "asked only for a latency"
    found, batch = [], np.array([float(q.users or 1)])
    own = enumerate_layouts(s.model, q.max_gpus, min_gpus=q.min_gpus, families=q.families, overlap=q.overlap)
    context = q.context
    while context > 1:
        context //= 2
        if _reaches(s, own, context, batch, q.ttl_s):
            found.append(f"a context of {context:,} makes it possible")
            break
    wide = next((n for n, x in _wider(q, s) if _reaches(s, x, q.context, batch, q.ttl_s)), None)
    if wide is not None:
        found.append(f"{wide} GPUs (--max-gpus {wide})" + ("" if found else " make it possible"))
    # Rounded up, so that the target asked for next is reached.
    found.append(f"ask for {np.ceil(fastest_s * 1e5) / 100:.2f} ms or more")
    return ("" if len(found) > 1 else "no shorter context and no larger pool makes it possible; ") + ", or ".join(found)


def _reaches(s: Setting, layouts: LayoutArrays, context: float, batch: np.ndarray, ttl_s: float) -> bool:
    if not len(layouts):
        return False
    points = search(s, layouts, context, batch)
    return bool(len(points)) and float(np.min(points.ttl_s)) <= ttl_s
