"""Tables of an answer: plain strings, for a terminal, Markdown or CSV."""

from __future__ import annotations

import math
from dataclasses import dataclass

from helicube.planner.answer import Answer
from helicube.planner.candidate import Candidate, count
from helicube.planner.crossover import Crossover, context_label
from helicube.planner.layouts import FAMILIES, FAMILY_NAMES
from helicube.planner.pareto import frontier, thin_index
from helicube.planner.ranges import outside_range
from helicube.planner.search import Points
from helicube.planner.step import CATEGORIES

__all__ = [
    "Table",
    "answer_tables",
    "crossover_notes",
    "crossover_rows",
    "crossover_table",
    "frontier_rows",
    "markdown",
    "notes",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of strings."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def markdown(table: Table) -> str:
    """The table as GitHub Markdown, its title as a bold line."""
    head, *body = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (table.header, *table.rows)
    )
    return "\n".join([f"**{table.title}**", "", head, "|" + "---|" * len(table.header), *body]) + "\n"


def _limits(c: Candidate) -> str:
    return ", ".join(f"{name} {value / c.ttl_s:.0%}" for name, value in list(c.limits_s.items())[:2])


def _row(c: Candidate, remark: str) -> tuple[str, ...]:
    return (
        FAMILY_NAMES[c.family], c.layout.partition(" ")[2], str(c.num_gpus), str(c.batch), f"{c.ttl_s * 1e3:.2f}",
        f"{c.tokens_per_s_user:.1f}", f"{c.tokens_per_s_gpu:.2f}", _limits(c),
        f"{c.memory_bytes['weights'] / 1e9:.0f} + {c.memory_bytes['cache'] / 1e9:.0f}",
        "yes" if c.outside else "no", remark,
    )  # fmt: skip


def _families(answer: Answer) -> Table:
    header = ("family", "layout", "GPUs", "users", "ms/token", "tok/s/user", "tok/s/GPU", "limited by",
              "GB weights + cache", "extrapolated", "why it loses")  # fmt: skip
    rows = [_row(answer.best, "best")]
    for family, found, why in answer.others:
        rows.append(_row(found, why) if found else (FAMILY_NAMES[family], "–", *[""] * 8, why))
    return Table(
        title=f"Best of each family: {answer.question.goal} ({answer.setting.kind} times)",
        header=header,
        rows=tuple(rows),
    )


def _phases(c: Candidate, kind: str) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, seconds in sorted(c.phases_s.items(), key=lambda item: -item[1]):
        if seconds > 0.0005 * c.ttl_s:
            share = f"{seconds / c.ttl_s:.0%}"
            rows.append((name.replace("_", " "), f"{seconds * 1e3:.3f}", share, CATEGORIES[name], c.phase_kinds[name]))
    rows.append(("all", f"{c.ttl_s * 1e3:.3f}", "100%", "", kind))
    header = ("phase of one token", "ms", "share", "counts as", "kind")
    return Table(title=f"Where the time goes: {c.layout}", header=header, rows=tuple(rows))


def _memory(c: Candidate) -> Table:
    order = ("weights", "cache", "activations", "free", "kept free", "capacity")
    names = {"kept free": "kept free for driver and graphs (10 %)"}
    rows = tuple((names.get(name, name), f"{c.memory_bytes[name] / 1e9:.1f}") for name in order)
    return Table(title="Memory of the fullest GPU", header=("part", "GB"), rows=rows)


def _point_row(answer: Answer, points: Points, family: str, i: int, *, extrapolated: bool) -> dict[str, object]:
    s, q = answer.setting, answer.question
    weights = s.formats.experts if s.model.ffn.is_moe else s.formats.ffn
    return {
        "family": family,
        "layout": points.layouts.describe(i),
        "num_gpus": int(points.layouts.num_gpus[i]),
        "users": int(points.batch[i]),
        "ttl_ms": float(points.ttl_s[i]) * 1e3,
        "tokens_per_s_user": float(points.tokens_per_s_user[i]),
        "tokens_per_s_gpu": float(points.tokens_per_s_gpu[i]),
        "kind": s.kind,
        "extrapolated": extrapolated,
        "model": s.model.name,
        "gpu": s.hardware.name,
        "engine": s.engine.name,
        "context": q.context,
        "weights": weights.removesuffix("_block"),
        "cache": s.formats.cache,
    }


def frontier_rows(answer: Answer, most: int = 40) -> list[dict[str, object]]:
    """At most `most` points of the Pareto frontier of each family, fastest first."""
    found: list[dict[str, object]] = []
    for family in FAMILIES:
        front = frontier(answer.points.of_family(family))
        if len(front):
            kept = front.take(thin_index(front.tokens_per_s_user, most))
            outside = outside_range(answer.setting, kept.layouts, kept.batch, answer.question.context)
            found += [_point_row(answer, kept, family, i, extrapolated=bool(outside[i])) for i in range(len(kept))]
    return found


def answer_tables(answer: Answer) -> list[Table]:
    """The tables of an answer, most important first."""
    return [_families(answer), _phases(answer.best, answer.setting.kind), _memory(answer.best)]


def _trust(answer: Answer) -> list[str]:
    """How far the times can be trusted."""
    s, best = answer.setting, answer.best
    if s.kind == "bound":
        return ["all times are bounds: peak rates, no latency, no overhead; real ones are longer"]
    lines = [f"times are fitted: kernels to tables of {s.gpu.name} ({s.gpu.source}); overheads to {s.engine.source}"]
    if s.engine.name != "bound" and s.model.name not in s.engine.models:
        lines.append(
            f"no served run of {s.model.name} was in that fit ({', '.join(s.engine.models)}): on models that a fit "
            "has not seen, errors are about twice as large (docs/validation.md)"
        )
    if best.outside:
        lines.append("outside the calibrated range: " + "; ".join(best.outside))
    return lines


def notes(answer: Answer) -> list[str]:
    """What a reader must know to trust the numbers."""
    s, q, best = answer.setting, answer.question, answer.best
    lines = []
    if answer.ratio is not None and answer.baseline is not None:
        what = "tokens/s per GPU at that latency" if q.ttl_s is not None else "tokens/s per user"
        lines.append(f"{answer.ratio:.2f} × the best layout that is not Helix in {what} ({answer.baseline.layout})")
    lines += _trust(answer)
    lines += s.remarks
    lines.append(f"{s.hardware.name}: {s.hardware.source}")
    if best.padded:
        lines.append(
            f"{best.layout} does not divide all heads or columns: zeros fill them up, which helicube run does "
            "and other engines refuse; --no-padding leaves such layouts out"
        )
    if s.model.max_context and q.context > s.model.max_context:
        lines.append(
            f"warning: a context of {q.context:,} exceeds the {s.model.max_context:,} that {s.model.name} is made for"
        )
    return lines


def crossover_notes(found: Crossover) -> list[str]:
    """Where KV parallelism pays, in words."""
    rows = [(int(batch), found.pays_from(i)) for i, batch in enumerate(found.batches)]
    never = [count(users, "user") for users, start in rows if start is None]
    pays = [f"{context_label(start)} tokens for {count(users, 'user')}" for users, start in rows if start is not None]
    if not pays:
        return [f"{found.subject}: KV parallelism pays nowhere on this map"]
    text = f"{found.subject}: KV parallelism pays from " + ", ".join(pays)
    return [text + (f"; never for {', '.join(never)}" if never else "")]


def crossover_rows(found: Crossover) -> list[dict[str, object]]:
    """The map as rows of equal keys; the ratio is empty where nothing fits, inf where only KV-parallel layouts do."""
    return [
        {
            "num_gpus": found.num_gpus, "users": int(batch), "context": int(context),
            "latency_without_over_with_kvp": "" if math.isnan(found.ratio[i, j]) else float(found.ratio[i, j]),
            "best_without": found.plain[i][j], "best_with": found.sharded[i][j],
        }
        for i, batch in enumerate(found.batches)
        for j, context in enumerate(found.contexts)
    ]  # fmt: skip


def crossover_table(found: Crossover) -> Table:
    """The ratio over context (columns) and batch (rows); above 1, KV parallelism pays."""

    def cell(value: float) -> str:
        if math.isnan(value):
            return "–"
        return "only KVP" if math.isinf(value) else "only TP/PP/DP" if value == 0 else f"{value:.2f}"

    header = ("users", *map(context_label, found.contexts))
    rows = tuple((str(int(batch)), *(cell(float(v)) for v in found.ratio[i])) for i, batch in enumerate(found.batches))
    title = f"Latency without KV parallelism over latency with it, {found.subject}: above 1 it pays"
    return Table(title=title, header=header, rows=rows)
