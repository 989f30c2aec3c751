"""Why a given layout is not the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.errors import InputError, LayoutError
from helicube.planner.answer import Answer
from helicube.planner.candidate import Candidate, make_candidate
from helicube.planner.layouts import FAMILIES, LayoutArrays
from helicube.planner.legal import broken_rule
from helicube.planner.memory import memory_of
from helicube.planner.step import CATEGORIES
from helicube.specs.layout import HelixLayout

__all__ = ["Explanation", "explain", "parse_layout"]

_KEYS = ("pp", "dp", "kvp", "tpa", "tpf", "ep")


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """What a layout would do at the batch of the best one, and why that one wins."""

    candidate: Candidate | None
    # The layout at the largest batch up to that of the best one; None where it is illegal or fits no user.
    lines: tuple[str, ...]
    # In words.


def parse_layout(text: str, *, overlap: bool = False) -> LayoutArrays:
    """Read "[family] kvp=8,tpa=2[,tpf=16][,ep=1][,dp=…][,pp=…]"; without a family, kvp > 1 means helix.

    Raises:
        LayoutError: a key, a number or a family is not understood.
    """
    words = text.replace(",hop-b", "").split()
    family = words.pop(0) if words and "=" not in words[0] else ""
    if family and family not in FAMILIES:
        raise LayoutError(f"layout family {family!r} is unknown; choose {', '.join(FAMILIES)}")
    parts = dict(part.partition("=")[::2] for part in "".join(words).strip(",").split(",") if part)
    outer = {key: parts.pop(key, "1") for key in ("pp", "dp")}
    if not all(value.isdecimal() and int(value) > 0 for value in outer.values()):
        raise LayoutError(f"layout {text!r}: pp and dp must be whole numbers from 1 on")
    pp, dp = int(outer["pp"]), int(outer["dp"])
    inner = ",".join(f"{key}={value}" for key, value in parts.items()) or "tpa=1"
    if dp > 1 or family == "medha":
        return _free_form(text, family or "dp", parts, pp=pp, dp=dp)
    helix = HelixLayout.parse(inner)
    chosen = family or ("helix" if helix.kvp > 1 else "pp" if pp > 1 else "tp")
    hop = chosen == "helix" and (overlap or "hop-b" in text)
    return LayoutArrays.stack([(FAMILIES.index(chosen), pp, 1, helix.kvp, helix.tpa, helix.tpf, helix.ep, hop)])


def _free_form(text: str, family: str, parts: dict[str, str], *, pp: int, dp: int) -> LayoutArrays:
    """Families whose FFN grid is not that of their attention grid."""
    for key, value in parts.items():
        if key not in _KEYS or not value.isdecimal() or int(value) < 1:
            raise LayoutError(f"layout {text!r}: {key}={value} is not understood; write kvp=8,tpa=2,tpf=2,ep=8")
    width = {key: int(value) for key, value in parts.items()}
    kvp, tpa = width.get("kvp", 1), width.get("tpa", 1)
    ranks = tpa if family == "medha" else dp * kvp * tpa
    ep = width.get("ep", 1)
    tpf = width.get("tpf", tpa if family == "medha" else max(1, ranks // ep))
    return LayoutArrays.stack([(FAMILIES.index(family), pp, dp, kvp, tpa, tpf, ep, False)])


def _largest_batch(answer: Answer, x: LayoutArrays) -> int:
    """Largest number of users whose memory fits, up to that of the best point."""
    batches = np.arange(1, answer.best.batch + 1, dtype=np.float64)
    free = np.array(
        [float(memory_of(answer.setting, x, np.array([b]), answer.question.context).free[0]) for b in batches]
    )
    fits = np.flatnonzero(free >= 0)
    return int(batches[fits[-1]]) if len(fits) else 0


def _too_large(answer: Answer, x: LayoutArrays) -> str:
    """By how much one user does not fit."""
    m = memory_of(answer.setting, x, np.array([1.0]), answer.question.context)
    short, weights, cache = (float(v[0]) / 1e9 for v in (-m.free, m.weights, m.cache))
    return (
        f"it does not fit one user: {weights:.1f} GB of weights and {cache:.1f} GB of cache per GPU are "
        f"{short:.1f} GB too much for {m.capacity / 1e9:.0f} GB"
    )


def explain(answer: Answer, text: str) -> Explanation:
    """Explain one layout against the answer.

    Raises:
        LayoutError: the text is not understood.
        InputError: the text is empty.
    """
    if not text.strip():
        raise InputError("the layout is empty; write for example kvp=8,tpa=2")
    s, q, best = answer.setting, answer.question, answer.best
    x = parse_layout(text, overlap=best.overlap)
    rule = broken_rule(s.model, x)
    if rule:
        return Explanation(candidate=None, lines=(f"not legal: {rule}",))
    gpus = int(x.num_gpus[0])
    lines = []
    if not q.min_gpus <= gpus <= q.max_gpus:
        lines.append(f"it takes {gpus} GPUs, outside the {q.pool} asked for")
    batch = _largest_batch(answer, x)
    if not batch:
        lines.append(_too_large(answer, x))
        return Explanation(candidate=None, lines=tuple(lines))
    own = make_candidate(s, x, 0, batch, q.context)
    if batch < best.batch:
        lines.append(f"its memory holds {batch} users, those of the best hold {best.batch}")
    lines.append(
        f"{own.ttl_s * 1e3:.2f} ms per token at {own.batch} users on {own.num_gpus} GPUs "
        f"({own.tokens_per_s_gpu:.2f} tokens/s/GPU); the best, {best.layout}: {best.ttl_s * 1e3:.2f} ms "
        f"at {best.batch} users on {best.num_gpus} ({best.tokens_per_s_gpu:.2f})"
    )
    change = {phase: own.phases_s[phase] - best.phases_s[phase] for phase in CATEGORIES}
    for phase, seconds in sorted(change.items(), key=lambda item: -abs(item[1]))[:4]:
        if abs(seconds) > 1e-5:
            lines.append(
                f"{phase.replace('_', ' ')}: {own.phases_s[phase] * 1e3:.2f} ms, {seconds * 1e3:+.2f} against the best"
            )
    if q.ttl_s is not None and own.ttl_s > q.ttl_s:
        lines.append(f"it misses the target of {q.ttl_s * 1e3:g} ms by {(own.ttl_s - q.ttl_s) * 1e3:.2f} ms")
    return Explanation(candidate=own, lines=tuple(lines))
