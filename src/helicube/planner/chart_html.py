"""An interactive page of an answer: one file, no network, no library."""

from __future__ import annotations

import html
import json
from pathlib import Path

from helicube.planner.answer import Answer
from helicube.planner.crossover import Crossover
from helicube.planner.layouts import FAMILY_NAMES
from helicube.planner.report import Table, answer_tables, crossover_table, frontier_rows, notes

__all__ = ["answer_page"]


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f"<h2>{html.escape(table.title)}</h2><div class=wide><table><tr>{head}</tr>{body}</table></div>"


def answer_page(answer: Answer, map_: Crossover | None = None) -> str:
    """The page as text.

    Args:
        answer: what to show.
        map_: a crossover map to add.
    """
    s, q = answer.setting, answer.question
    weights = s.formats.experts if s.model.ffn.is_moe else s.formats.ffn
    title = f"{s.model.name} on {s.hardware.name}, context {q.context:,}"
    tables = answer_tables(answer) + ([crossover_table(map_)] if map_ else [])
    data = {"points": frontier_rows(answer, 120), "titles": FAMILY_NAMES, "kind": s.kind,
            "best": [answer.best.tokens_per_s_user, answer.best.tokens_per_s_gpu],
            "target": 1.0 / q.ttl_s if q.ttl_s else None}  # fmt: skip
    # "</" would end the script element early if a name held it.
    payload = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    template = Path(__file__).with_name("chart.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(title),
        "SUBTITLE": html.escape(f"{q.goal}; weights {weights}, cache {s.formats.cache}; engine {s.engine.name}; "
                                f"{s.kind} times"),
        "NOTES": "".join(f"<li>{html.escape(line)}</li>" for line in notes(answer)),
        "TABLES": "".join(map(_table, tables)),
        "DATA": payload,
    }  # fmt: skip
    for name, text in parts.items():
        template = template.replace(f"%{name}%", text)
    return template
