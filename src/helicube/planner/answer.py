"""The answer to "which layout": the best one for a target, the best of each other family, and why those lose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.planner.candidate import Candidate, candidate_of, count
from helicube.planner.layouts import FAMILIES, LayoutArrays, enumerate_layouts
from helicube.planner.memory import memory_of
from helicube.planner.question import Question
from helicube.planner.refusal import refusal
from helicube.planner.search import Points, default_batches, search
from helicube.planner.setting import Setting

__all__ = ["Answer", "ask"]


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
    # Best point of any other family, DCP included, when the best is a Helix layout.

    @property
    def ratio(self) -> float | None:
        """Best over the best that is not Helix: tokens/s/GPU at the latency, or else tokens/s/user."""
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
        where = f"{count(loser.batch, 'user')} on {count(loser.num_gpus, 'GPU')}"
        return f"holds {where}, {held / 1e9:.0f} GB of weights and cache each"
    return f"{text}, at {count(loser.batch, 'user')} on {count(loser.num_gpus, 'GPU')}"


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
    return f"holds at most {count(int(np.max(own.batch)), 'user')}"


def ask(s: Setting, q: Question) -> Answer:
    """Search all layouts for the best one.

    Raises:
        InputError: nothing qualifies; the message says which limit fails and what would make it possible.
    """
    layouts = enumerate_layouts(s.model, q.max_gpus, min_gpus=q.min_gpus, families=q.families, overlap=q.overlap,
                               padding=q.padding)  # fmt: skip
    batches = default_batches() if q.users is None else np.union1d(default_batches(), [float(q.users)])
    points = search(s, layouts, q.context, batches) if len(layouts) else None
    if points is None or not len(_qualifies(q, points)):
        empty = Points(layouts=layouts, batch=np.empty(0), ttl_s=np.empty(0), free_bytes=np.empty(0))
        raise refusal(q, s, points if points is not None else empty, layouts)
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
    base = next((c for _, c, _ in rows if c is not None), None)
    return Answer(question=q, setting=s, points=points, best=best, others=tuple(rows),
                  baseline=base if best.family == "helix" else None)  # fmt: skip
