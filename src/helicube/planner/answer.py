"""The answer to "which layout": the best one for a target, the best of each other family, and why those lose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.errors import InputError
from helicube.planner.candidate import Candidate, candidate_of
from helicube.planner.layouts import BASELINES, FAMILIES, LayoutArrays, enumerate_layouts
from helicube.planner.memory import memory_of
from helicube.planner.search import Points, default_batches, search
from helicube.planner.setting import Setting

__all__ = ["Answer", "Question", "ask"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked.

    Raises:
        InputError: a size is not positive.
    """

    context: int
    # Cached tokens per user.
    max_gpus: int
    min_gpus: int = 1
    ttl_s: float | None = None
    # Token-to-token latency to keep.
    users: int | None = None
    # Users to serve at a time.
    families: tuple[str, ...] = FAMILIES
    overlap: bool = True
    # Consider HOP-B.

    def __post_init__(self) -> None:
        ttl_ms = None if self.ttl_s is None else self.ttl_s * 1e3
        for name, value in (("context", self.context), ("max-gpus", self.max_gpus), ("min-gpus", self.min_gpus),
                            ("users", self.users), ("ttl-ms", ttl_ms)):  # fmt: skip
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value}; it must be positive")
        for name, size in (("context", self.context), ("users", self.users)):
            if size is not None and size > 10**9:
                raise InputError(f"{name} is {size:,}; at most 1,000,000,000 is planned")
        if self.min_gpus > self.max_gpus:
            raise InputError(f"min-gpus {self.min_gpus} exceeds max-gpus {self.max_gpus}; lower it")

    @property
    def pool(self) -> str:
        """Sizes of the pool, in words."""
        return str(self.max_gpus) if self.min_gpus == self.max_gpus else f"{self.min_gpus} … {self.max_gpus}"

    @property
    def goal(self) -> str:
        """What is maximised, in words."""
        if self.ttl_s is not None:
            floor = f" and at least {self.users} users" if self.users else ""
            return f"most tokens/s per GPU within {self.ttl_s * 1e3:g} ms per token{floor}"
        return f"lowest latency for {self.users} users" if self.users else "lowest latency"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Result of a search."""

    question: Question
    setting: Setting
    points: Points
    # All points that fit.
    best: Candidate
    others: tuple[tuple[str, Candidate | None, str], ...]
    # (family, its best point, why it loses), best first; no point where nothing of it qualifies.
    baseline: Candidate | None
    # Best point of the paper's baselines, when the best is none of them.

    @property
    def ratio(self) -> float | None:
        """Best over best baseline: tokens/s/GPU at the latency, or else tokens/s/user."""
        if self.baseline is None:
            return None
        if self.question.ttl_s is not None:
            return self.best.tokens_per_s_gpu / self.baseline.tokens_per_s_gpu
        return self.best.tokens_per_s_user / self.baseline.tokens_per_s_user


def _qualifies(q: Question, points: Points) -> Points:
    mask = np.ones(len(points), dtype=np.bool_)
    if q.users is not None:
        mask &= points.batch >= q.users if q.ttl_s is not None else points.batch == q.users
    if q.ttl_s is not None:
        mask &= points.ttl_s <= q.ttl_s
    return points.where(mask)


def _score(q: Question, points: Points) -> int:
    """Position of the best point; equal latencies are decided by throughput."""
    if q.ttl_s is not None:
        return int(np.argmax(points.tokens_per_s_gpu))
    return int(np.lexsort((-points.tokens_per_s_gpu, points.ttl_s))[0])


def _why_it_loses(q: Question, loser: Candidate, best: Candidate) -> str:
    """The largest difference in time per token, category by category, and in memory where that keeps users out."""
    worse = {key: value - best.limits_s[key] for key, value in loser.limits_s.items()}
    key = max(worse, key=lambda name: worse[name])
    words = {"cache": "reading the cache", "weights": "reading weights", "links": "collectives", "launches": "launches"}
    text = f"{words[key]}: {loser.limits_s[key] * 1e3:.2f} ms against {best.limits_s[key] * 1e3:.2f}"
    if q.ttl_s is None:
        return text
    if loser.batch / loser.num_gpus < best.batch / best.num_gpus and worse[key] <= 0.05 * best.ttl_s:
        held = loser.memory_bytes["cache"] + loser.memory_bytes["weights"]
        return f"holds {loser.batch} users on {loser.num_gpus} GPUs, {held / 1e9:.0f} GB of weights and cache each"
    return f"{text}, at {loser.batch} users on {loser.num_gpus} GPUs"


def _missing(q: Question, s: Setting, points: Points, layouts: LayoutArrays, family: str) -> str:
    """Why a family has no point that qualifies."""
    listed = layouts.take(np.flatnonzero(layouts.family == FAMILIES.index(family)))
    if not len(listed):
        return f"no such layout of {q.pool} GPUs for this model"
    own = points.of_family(family)
    if not len(own):
        short = -float(np.max(memory_of(s, listed, listed.dp * listed.pp, q.context).free))
        return f"does not fit: {short / 1e9:.1f} GB more per GPU needed at the least"
    if q.ttl_s is not None and not np.any(own.ttl_s <= q.ttl_s):
        return f"its fastest point takes {float(np.min(own.ttl_s)) * 1e3:.1f} ms per token"
    return f"holds at most {int(np.max(own.batch))} users"


def _refuse(q: Question, s: Setting, points: Points, layouts: LayoutArrays) -> InputError:
    """Nothing qualifies: say which limit fails, and what would make it possible."""
    name, gpu = s.model.name, s.hardware.name
    if not len(layouts):
        return InputError(f"no layout of {q.pool} GPUs for {name} in these families; widen the range")
    if not len(points):
        m = memory_of(s, layouts, layouts.dp * layouts.pp, q.context)
        i = int(np.argmax(m.free))
        short = -float(m.free[i]) / 1e9
        weights, cache = float(m.weights[i]) / 1e9, float(m.cache[i]) / 1e9
        return InputError(
            f"{name} with a context of {q.context:,} does not fit {q.max_gpus} × {gpu}: the roomiest layout, "
            f"{layouts.describe(i)}, needs {weights:.1f} GB for weights and {cache:.1f} GB for cache per GPU, "
            f"{short:.1f} GB too much; use more GPUs, a lower precision or a shorter context"
        )
    users = points.where(points.batch >= q.users) if q.users else points
    if not len(users):
        most = int(np.max(points.batch))
        return InputError(
            f"{q.users} users do not fit {q.max_gpus} × {gpu}: the most is {most} at this context; use more GPUs, "
            "a lower precision or a shorter context"
        )
    i = int(np.argmin(users.ttl_s))
    fastest = candidate_of(s, users, i, q.context)
    limit, seconds = next(iter(fastest.limits_s.items()))
    assert q.ttl_s is not None, "without a latency every point qualifies"
    return InputError(
        f"{q.ttl_s * 1e3:g} ms per token is impossible here: the fastest point takes {fastest.ttl_s * 1e3:.2f} ms "
        f"({fastest.layout} at {fastest.batch} users), {seconds * 1e3:.2f} ms of it {limit}; "
        + _possible(q, s, users, layouts)
    )


def _possible(q: Question, s: Setting, users: Points, layouts: LayoutArrays) -> str:
    """A context at which the latency becomes possible, or the floor that none removes."""
    assert q.ttl_s is not None, "asked only for a latency"
    batch = np.array([float(q.users or 1)])
    context = q.context
    while context > 1:
        context //= 2
        shorter = search(s, layouts, context, batch)
        if len(shorter) and float(np.min(shorter.ttl_s)) <= q.ttl_s:
            return (
                f"a context of {context:,} makes it possible, or a target of {float(np.min(users.ttl_s)) * 1e3:.2f} ms"
            )
    return f"no context makes it possible; ask for {float(np.min(users.ttl_s)) * 1e3:.2f} ms or more"


def ask(s: Setting, q: Question) -> Answer:
    """Search all layouts for the best one.

    Raises:
        InputError: nothing qualifies; the message says which limit fails and what would make it possible.
    """
    layouts = enumerate_layouts(s.model, q.max_gpus, min_gpus=q.min_gpus, families=q.families, overlap=q.overlap)
    batches = default_batches() if q.users is None else np.union1d(default_batches(), [float(q.users)])
    points = search(s, layouts, q.context, batches) if len(layouts) else None
    if points is None or not len(_qualifies(q, points)):
        empty = Points(layouts=layouts, batch=np.empty(0), ttl_s=np.empty(0), free_bytes=np.empty(0))
        raise _refuse(q, s, points if points is not None else empty, layouts)
    good = _qualifies(q, points)
    best = candidate_of(s, good, _score(q, good), q.context)
    rows: list[tuple[str, Candidate | None, str]] = []
    for family in q.families:
        own = good.of_family(family)
        if family == best.family:
            continue
        if not len(own):
            rows.append((family, None, _missing(q, s, points, layouts, family)))
            continue
        found = candidate_of(s, own, _score(q, own), q.context)
        rows.append((family, found, _why_it_loses(q, found, best)))
    by_throughput = q.ttl_s is not None

    def rank(row: tuple[str, Candidate | None, str]) -> float:
        if row[1] is None:
            return float("inf")
        return -row[1].tokens_per_s_gpu if by_throughput else row[1].ttl_s

    rows.sort(key=rank)
    base = next((c for family, c, _ in rows if c is not None and family in BASELINES), None)
    return Answer(question=q, setting=s, points=points, best=best, others=tuple(rows),
                  baseline=None if best.family in BASELINES else base)  # fmt: skip
