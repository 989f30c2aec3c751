"""Tables of an answer: plain strings, for a terminal, Markdown or CSV."""

from __future__ import annotations

import math
from dataclasses import dataclass

from helicube.planner.answer import Answer
from helicube.planner.candidate import Candidate
from helicube.planner.crossover import Crossover
from helicube.planner.layouts import FAMILIES
from helicube.planner.pareto import frontier, thin_index
from helicube.planner.search import Points
from helicube.planner.step import CATEGORIES

__all__ = ["Table", "answer_tables", "crossover_table", "frontier_rows", "markdown", "notes"]

_NAMES = {
    "tp": "TP (× EP)",
    "pp": "PP",
    "dp": "DP attention × EP",
    "medha": "KVP tied to TP (Medha)",
    "dcp": "KVP inside TP (DCP)",
    "helix": "Helix",
}


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
        _NAMES[c.family], c.layout.partition(" ")[2], str(c.num_gpus), str(c.batch), f"{c.ttl_s * 1e3:.2f}",
        f"{c.tokens_per_s_user:.1f}", f"{c.tokens_per_s_gpu:.2f}", _limits(c),
        f"{c.memory_bytes['weights'] / 1e9:.0f} + {c.memory_bytes['cache'] / 1e9:.0f}",
        "yes" if c.outside else "no", remark,
    )  # fmt: skip


def _families(answer: Answer) -> Table:
    header = ("family", "layout", "GPUs", "users", "ms/token", "tok/s/user", "tok/s/GPU", "limited by",
              "GB weights + cache", "extrapolated", "why it loses")  # fmt: skip
    rows = [_row(answer.best, "best")]
    for family, found, why in answer.others:
        rows.append(_row(found, why) if found else (_NAMES[family], "–", *[""] * 8, why))
    return Table(
        title=f"Best of each family: {answer.question.goal} ({answer.setting.kind} times)",
        header=header,
        rows=tuple(rows),
    )


def _phases(c: Candidate, kind: str) -> Table:
    rows = [
        (name.replace("_", " "), f"{seconds * 1e3:.3f}", f"{seconds / c.ttl_s:.0%}", CATEGORIES[name])
        for name, seconds in sorted(c.phases_s.items(), key=lambda item: -item[1])
        if seconds > 0.0005 * c.ttl_s
    ]
    rows.append(("all", f"{c.ttl_s * 1e3:.3f}", "100%", ""))
    header = ("phase of one token", f"ms ({kind})", "share", "counts as")
    return Table(title=f"Where the time goes: {c.layout}", header=header, rows=tuple(rows))


def _memory(c: Candidate) -> Table:
    order = ("weights", "cache", "activations", "free", "kept free", "capacity")
    names = {"kept free": "kept free for driver and graphs (10 %)"}
    rows = tuple((names.get(name, name), f"{c.memory_bytes[name] / 1e9:.1f}") for name in order)
    return Table(title="Memory of the fullest GPU", header=("part", "GB"), rows=rows)


def _point_row(answer: Answer, points: Points, family: str, i: int) -> dict[str, object]:
    return {
        "family": family,
        "layout": points.layouts.describe(i),
        "num_gpus": int(points.layouts.num_gpus[i]),
        "users": int(points.batch[i]),
        "ttl_ms": float(points.ttl_s[i]) * 1e3,
        "tokens_per_s_user": float(points.tokens_per_s_user[i]),
        "tokens_per_s_gpu": float(points.tokens_per_s_gpu[i]),
        "kind": answer.setting.kind,
    }


def frontier_rows(answer: Answer, count: int = 40) -> list[dict[str, object]]:
    """At most `count` points of the Pareto frontier of each family, fastest first."""
    found: list[dict[str, object]] = []
    for family in FAMILIES:
        front = frontier(answer.points.of_family(family))
        if len(front):
            kept = front.take(thin_index(front.tokens_per_s_user, count))
            found += [_point_row(answer, kept, family, i) for i in range(len(kept))]
    return found


def answer_tables(answer: Answer) -> list[Table]:
    """The tables of an answer, most important first."""
    return [_families(answer), _phases(answer.best, answer.setting.kind), _memory(answer.best)]


def notes(answer: Answer) -> list[str]:
    """What a reader must know to trust the numbers."""
    s, best = answer.setting, answer.best
    lines = []
    if answer.ratio is not None and answer.baseline is not None:
        what = "tokens/s per GPU at that latency" if answer.question.ttl_s is not None else "tokens/s per user"
        lines.append(f"{answer.ratio:.2f} × the best baseline in {what} ({answer.baseline.layout})")
    if s.kind == "bound":
        lines.append("all times are bounds: peak rates, no latency, no overhead; real ones are longer")
    else:
        lines.append(
            f"times are fitted: kernels to tables of {s.gpu.name} ({s.gpu.source}), overheads to {s.engine.name} runs"
        )
    lines += s.remarks
    if best.outside:
        lines.append("outside the calibrated range: " + "; ".join(best.outside))
    limit = s.model.max_context
    if limit and answer.question.context > limit:
        lines.append(
            f"warning: a context of {answer.question.context:,} exceeds the {limit:,} that {s.model.name} is made for"
        )
    return lines


def crossover_table(found: Crossover) -> Table:
    """The ratio over context (columns) and batch (rows); above 1, KV parallelism pays."""

    def cell(value: float) -> str:
        if math.isnan(value):
            return "–"
        return "only KVP" if math.isinf(value) else "only TP/PP/DP" if value == 0 else f"{value:.2f}"

    header = ("users", *(f"{int(c) // 1024}k" for c in found.contexts))
    rows = tuple((str(int(batch)), *(cell(float(v)) for v in found.ratio[i])) for i, batch in enumerate(found.batches))
    title = f"Latency without KV parallelism over latency with it, {found.num_gpus} GPUs: above 1 it pays"
    return Table(title=title, header=header, rows=rows)
