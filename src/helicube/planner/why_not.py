"""Why a given layout is not the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.errors import InputError, LayoutError
from helicube.planner.answer import Answer
from helicube.planner.candidate import Candidate, count, make_candidate
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow
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
    layout: LayoutArrays
    # (1,) as it was read.


def parse_layout(text: str, *, overlap: bool = False) -> LayoutArrays:
    """Read "[family] kvp=8,tpa=2[,tpf=16][,ep=1][,dp=…][,pp=…]"; without a family, kvp > 1 means helix.

    Raises:
        LayoutError: a key, a number or a family is not understood, or the grids of Helix do not match.
    """
    words = [word for word in text.replace(",", " ").split() if word != "hop-b"]
    family = words.pop(0) if words and "=" not in words[0] else ""
    if family and family not in FAMILIES:
        raise LayoutError(f"layout family {family!r} is unknown; choose {', '.join(FAMILIES)}")
    w = _widths(words)
    pp, dp = w.pop("pp", 1), w.pop("dp", 1)
    if dp > 1 or family == "medha":
        return LayoutArrays.stack([_free_form(family or "dp", w, pp=pp, dp=dp)])
    helix = HelixLayout.of(**w) if w else HelixLayout()
    chosen = family or ("helix" if helix.kvp > 1 else "pp" if pp > 1 else "tp")
    hop = chosen == "helix" and (overlap or "hop-b" in text)
    return LayoutArrays.stack([
        LayoutRow(FAMILIES.index(chosen), pp, 1, helix.kvp, helix.tpa, helix.tpf, helix.ep, hop)
    ])  # fmt: skip


def _widths(words: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in _KEYS:
            raise LayoutError(f"layout key {key!r} is unknown; choose {', '.join(_KEYS)}")
        if not equals or not value.isdecimal() or int(value) < 1:
            raise LayoutError(f"layout part {word!r}: {key} must be a whole number from 1 on, such as {key}=2")
        if key in found:
            raise LayoutError(f"the layout gives {key} twice; give it once")
        found[key] = int(value)
    return found


def _free_form(family: str, w: dict[str, int], *, pp: int, dp: int) -> LayoutRow:
    """Families whose FFN grid is not that of their attention grid."""
    kvp, tpa = w.get("kvp", 1), w.get("tpa", 1)
    ranks = tpa if family == "medha" else dp * kvp * tpa
    ep = w.get("ep", 1)
    tpf = w.get("tpf", tpa if family == "medha" else max(1, ranks // ep))
    return LayoutRow(FAMILIES.index(family), pp, dp, kvp, tpa, tpf, ep)


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


def _preface(text: str, x: LayoutArrays, answer: Answer) -> list[str]:
    """How the text was read, and whether the layout has the size asked for."""
    q, gpus, lines = answer.question, int(x.num_gpus[0]), []
    if "=" in text.replace(",", " ").split()[0] and int(x.kvp[0]) > 1:
        lines.append(f"read as a Helix layout; 'dcp {text}' and 'medha {text}' are other families")
    if not q.min_gpus <= gpus <= q.max_gpus:
        asked = f"not the {q.pool} asked for" if q.min_gpus == q.max_gpus else f"outside the {q.pool} asked for"
        lines.append(f"it takes {count(gpus, 'GPU')}, {asked}")
    return lines


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
        return Explanation(candidate=None, lines=(f"not legal: {rule}",), layout=x)
    lines = _preface(text.strip(), x, answer)
    batch = _largest_batch(answer, x)
    if not batch:
        lines.append(_too_large(answer, x))
        return Explanation(candidate=None, lines=tuple(lines), layout=x)
    own = make_candidate(s, x, 0, batch, q.context)
    if batch < best.batch:
        lines.append(f"its memory holds {count(batch, 'user')}, that of the best {best.batch}")
    if (own.layout, own.batch) == (best.layout, best.batch):
        return Explanation(candidate=own, lines=(*lines, "it is the best layout"), layout=x)
    lines.append(
        f"{own.ttl_s * 1e3:.2f} ms per token at {count(own.batch, 'user')} on {count(own.num_gpus, 'GPU')} "
        f"({own.tokens_per_s_gpu:.2f} tokens/s/GPU); the best, {best.layout}: {best.ttl_s * 1e3:.2f} ms "
        f"at {count(best.batch, 'user')} on {best.num_gpus} ({best.tokens_per_s_gpu:.2f})"
    )
    change = {phase: own.phases_s[phase] - best.phases_s[phase] for phase in CATEGORIES}
    for phase, seconds in sorted(change.items(), key=lambda item: -abs(item[1]))[:4]:
        if abs(seconds) > 1e-5:
            lines.append(
                f"{phase.replace('_', ' ')}: {own.phases_s[phase] * 1e3:.2f} ms, {seconds * 1e3:+.2f} against the best"
            )
    if q.ttl_s is not None and own.ttl_s > q.ttl_s:
        lines.append(f"it misses the target of {q.ttl_s * 1e3:g} ms by {(own.ttl_s - q.ttl_s) * 1e3:.2f} ms")
    return Explanation(candidate=own, lines=tuple(lines), layout=x)
