"""A planning request from options to tables and files."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

from helicube.errors import InputError
from helicube.planner.answer import Answer, ask
from helicube.planner.candidate import Candidate
from helicube.planner.choose_formats import choose_formats
from helicube.planner.crossover import Crossover, crossover
from helicube.planner.emit import emit
from helicube.planner.layouts import FAMILIES, LayoutArrays
from helicube.planner.output import csv_text, target_of, write_text
from helicube.planner.question import Question
from helicube.planner.report import (
    Table,
    answer_tables,
    crossover_notes,
    crossover_rows,
    crossover_table,
    frontier_rows,
    notes,
)
from helicube.planner.setting import Setting, make_setting
from helicube.planner.why_not import explain, parse_layout
from helicube.specs.catalog import load_model
from helicube.specs.hardware import HardwareSpec, load_hardware
from helicube.specs.model import ModelSpec
from helicube.specs.names import nearest_names

__all__ = ["PlanOptions", "PlanReport", "run_plan"]

_SUFFIXES = (".html", ".json", ".csv", ".png", ".svg")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanOptions:
    """What the command line takes."""

    model: str
    # Name, or path of a config.json.
    gpu: str
    # Name, or path of a TOML file.
    context: int | str
    # Cached tokens per user; "128k" counts 1,024s, "1m" 1,048,576s.
    max_gpus: int | None = None
    # Default: the domain of the fast links.
    gpus: int | None = None
    # Exactly this many.
    ttl_ms: float | None = None
    users: int | None = None
    precision: str | None = None
    # Of weights and cache; default: that of the published checkpoint.
    weights: str | None = None
    cache: str | None = None
    engine: str = "trtllm"
    graphs: bool = True
    hop_b: bool = True
    padding: bool = True
    # Consider layouts whose widths must be padded.
    families: str | None = None
    # Comma-separated.
    output: tuple[Path, ...] = ()
    why_not: str | None = None
    crossover: bool = False
    emit: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReport:
    """What is printed."""

    headline: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    commands: tuple[str, ...]
    # Launch lines, verbatim.
    written: tuple[Path, ...]


def _families(text: str | None) -> tuple[str, ...]:
    if text is None:
        return FAMILIES
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in FAMILIES:
            raise InputError(f"family {name!r} is unknown; choose {nearest_names(name, FAMILIES, most=len(FAMILIES))}")
    return names


def _context(value: int | str) -> int:
    """Tokens of a context, such as 131072, 128k or 1m."""
    text = str(value).strip().lower().replace(",", "").replace("_", "")
    unit = {"k": 1024, "m": 1024**2}.get(text[-1:], 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.removeprefix("-").isdecimal():
        raise InputError(f"context {value!r} is no number of tokens; write 131072, 128k or 1m")
    return int(digits) * unit


def _question(o: PlanOptions, hardware: HardwareSpec) -> Question:
    most = o.gpus or o.max_gpus or hardware.link_domain
    for name, value in (("--gpus", o.gpus), ("--max-gpus", o.max_gpus)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be positive")
    if o.gpus and o.max_gpus and o.gpus != o.max_gpus:
        raise InputError(f"--gpus {o.gpus} and --max-gpus {o.max_gpus} contradict each other; give one of them")
    if most > 4096:
        name = "--gpus" if o.gpus else "--max-gpus" if o.max_gpus else f"link_domain of {hardware.name}"
        raise InputError(f"{name} is {most}; at most 4096 are searched")
    return Question(
        context=_context(o.context), max_gpus=most, min_gpus=o.gpus or 1,
        ttl_s=None if o.ttl_ms is None else o.ttl_ms * 1e-3,
        users=o.users, families=_families(o.families), overlap=o.hop_b,
        padding=o.padding,
    )  # fmt: skip


def _headline(s: Setting, answer: Answer, seconds: float) -> str:
    m, q = s.model, answer.question
    size = f"{m.num_params / 1e9:.1f} G parameters"
    if m.ffn.is_moe:
        size += f", {m.num_active_params / 1e9:.1f} G per token"
    f = s.formats
    parts = {"attention": f.attention, "FFN": f.ffn, **({"experts": f.experts} if m.ffn.is_moe else {})}
    # Block scales are a matter of kernels, not of what a reader calls the precision.
    parts = {part: fmt.removesuffix("_block") for part, fmt in parts.items()}
    formats = parts["FFN"] if len(set(parts.values())) == 1 else ", ".join(f"{k} {v}" for k, v in parts.items())
    pool = f"{q.max_gpus}" if q.min_gpus == q.max_gpus else f"up to {q.max_gpus}"
    return (
        f"{m.name} ({size}; weights {formats}; cache {f.cache}) on {pool} × {s.hardware.name}, context {q.context:,}, "
        f"engine {s.engine.name}: {len(answer.points):,} points in {seconds:.2f} s"
    )


def _document(s: Setting, answer: Answer, found: Crossover | None) -> str:
    body: dict[str, object] = {
        "model": s.model.name, "gpu": s.hardware.name, "engine": s.engine.name, "context": answer.question.context,
        "goal": answer.question.goal, "kind_of_times": s.kind, "notes": notes(answer),
        "best": answer.best.as_dict(), "ratio_to_best_baseline": answer.ratio,
        "others": [{"family": f, "point": c.as_dict() if c else None, "why_it_loses": w} for f, c, w in answer.others],
        "frontier": frontier_rows(answer, 200),
    }  # fmt: skip
    if found is not None:
        # JSON has no NaN (nothing fits) and no infinity (only KV-parallel layouts fit).
        ratio = [[None if math.isnan(v) else "inf" if math.isinf(v) else round(v, 4) for v in row]
                 for row in found.ratio.tolist()]  # fmt: skip
        body["crossover"] = {"num_gpus": found.num_gpus, "contexts": found.contexts.tolist(),
                             "users": found.batches.tolist(), "latency_without_over_with_kvp": ratio}  # fmt: skip
    return json.dumps(body, indent=2) + "\n"


def _write(path: Path, s: Setting, answer: Answer, found: Crossover | None) -> None:
    kind = path.suffix.lower()
    if kind == ".json":
        write_text(path, _document(s, answer, found))
    elif kind == ".csv":
        write_text(path, csv_text(frontier_rows(answer, 200) if found is None else crossover_rows(found)))
    elif kind == ".html":
        from helicube.planner.chart_html import answer_page

        write_text(path, answer_page(answer, found))
    else:
        from helicube.planner.chart_image import draw_answer, draw_crossover

        if found is not None:
            draw_crossover(found, path)
        else:
            draw_answer(answer, path)


def _check_outputs(paths: tuple[Path, ...]) -> None:
    for path in paths:
        if path.suffix.lower() not in _SUFFIXES:
            raise InputError(f"output {path} ends in {path.suffix or 'nothing'}; choose {', '.join(_SUFFIXES)}")
        if not path.parent.is_dir():
            raise InputError(f"folder {path.parent} does not exist; make it first")
        target_of(path)


def _served_name(o: PlanOptions, model: ModelSpec) -> str:
    """The model as an engine takes it: a folder for a config.json, the hub's id for a known name."""
    path = Path(o.model)
    return model.hub or (str(path.parent) if path.name == "config.json" else o.model)


def _launch(o: PlanOptions, answer: Answer, chosen: Candidate, x: LayoutArrays) -> tuple[list[str], list[str]]:
    """(remarks, verbatim texts) of the launch line of a layout."""
    assert o.emit is not None, "asked only for an engine"
    s = answer.setting
    found = emit(o.emit, s, chosen, x, name=_served_name(o, s.model), context=answer.question.context)
    remarks = [f"{o.emit}: {text}" for text in found.remarks]
    texts = [f"# {name}\n{text}" for name, text in found.files] + ([found.command] if found.command else [])
    return remarks, texts


def run_plan(o: PlanOptions) -> PlanReport:
    """Search, and write and collect what the options ask for.

    Raises:
        InputError: an option breaks a rule, or nothing fits it; LayoutError for `why_not`.
    """
    _check_outputs(o.output)
    model, hardware = load_model(o.model), load_hardware(o.gpu)
    formats, remarks = choose_formats(model, hardware, precision=o.precision, weights=o.weights, cache=o.cache)
    s = make_setting(model, hardware, engine=o.engine, formats=formats, graphs=o.graphs)
    s = replace(s, remarks=(*remarks, *s.remarks))
    start = time.perf_counter()
    answer = ask(s, _question(o, hardware))
    seconds = time.perf_counter() - start
    tables, lines, commands = answer_tables(answer), notes(answer), list[str]()
    chosen, layout = answer.best, parse_layout(answer.best.layout, overlap=answer.best.overlap)
    if o.why_not is not None:
        why = explain(answer, o.why_not)
        lines += [f"why not {o.why_not}: {line}" for line in why.lines]
        if why.candidate is not None:
            chosen, layout = why.candidate, why.layout
    found = crossover(s, o.gpus or answer.best.num_gpus) if o.crossover else None
    if found is not None:
        tables.append(crossover_table(found))
        lines += crossover_notes(found)
    if o.emit is not None:
        more, commands = _launch(o, answer, chosen, layout)
        lines += more
    for path in o.output:
        _write(path, s, answer, found)
    return PlanReport(headline=_headline(s, answer, seconds), tables=tuple(tables), notes=tuple(lines),
                      commands=tuple(commands), written=o.output)  # fmt: skip
