"""A planning request from options to tables and files."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

from helicube.errors import InputError
from helicube.planner.answer import Answer, Question, ask
from helicube.planner.candidate import Candidate
from helicube.planner.crossover import Crossover, crossover
from helicube.planner.emit import emit
from helicube.planner.layouts import FAMILIES, LayoutArrays
from helicube.planner.output import csv_text, write_text
from helicube.planner.report import Table, answer_tables, crossover_table, frontier_rows, notes
from helicube.planner.setting import Formats, Setting, checkpoint_formats, make_setting, uniform_formats
from helicube.planner.why_not import explain, parse_layout
from helicube.specs.catalog import load_model
from helicube.specs.hardware import HardwareSpec, load_hardware
from helicube.specs.model import ModelSpec
from helicube.specs.names import nearest_names
from helicube.specs.precision import get_precision

__all__ = ["PlanOptions", "PlanReport", "run_plan"]

_SUFFIXES = (".html", ".json", ".csv", ".png", ".svg")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanOptions:
    """What the command line takes."""

    model: str
    # Name, or path of a config.json.
    gpu: str
    # Name, or path of a TOML file.
    context: int
    # Cached tokens per user.
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


def _formats(o: PlanOptions, model: ModelSpec, hardware: HardwareSpec) -> Formats:
    weights = o.weights or o.precision
    cache = o.cache or o.precision
    if weights is None:
        native = model.native_precision
        runs = (
            native in {"bf16", "int4", "int8"} or (native == "fp4" and model.ffn.is_moe) or hardware.flops(native) > 0
        )
        chosen = native if runs else "bf16"
        quantised = chosen != "bf16" and hardware.flops("fp8") > 0
        return checkpoint_formats(model, chosen, cache or ("fp8" if quantised else "bf16"))
    name = get_precision(weights).name
    if cache is None:
        cache = "fp8" if name != "bf16" and hardware.flops("fp8") else "bf16"
    if o.precision is None and name in {"fp4", "int4"} and not hardware.flops("fp4"):
        return checkpoint_formats(model, name, cache)
    return uniform_formats(model, name, cache)


def _families(text: str | None) -> tuple[str, ...]:
    if text is None:
        return FAMILIES
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in FAMILIES:
            raise InputError(f"family {name!r} is unknown; choose {nearest_names(name, FAMILIES, most=len(FAMILIES))}")
    return names


def _question(o: PlanOptions, hardware: HardwareSpec) -> Question:
    most = o.gpus or o.max_gpus or hardware.link_domain
    for name, value in (("--gpus", o.gpus), ("--max-gpus", o.max_gpus)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be positive")
    if most > 4096:
        raise InputError(f"--max-gpus is {most}; at most 4096 are searched")
    return Question(
        context=o.context, max_gpus=most, min_gpus=o.gpus or 1, ttl_s=None if o.ttl_ms is None else o.ttl_ms * 1e-3,
        users=o.users, families=_families(o.families), overlap=o.hop_b,
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
    if path.suffix == ".json":
        write_text(path, _document(s, answer, found))
    elif path.suffix == ".csv":
        write_text(path, csv_text(frontier_rows(answer, 200)))
    elif path.suffix == ".html":
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
        if path.suffix not in _SUFFIXES:
            raise InputError(f"output {path} ends in {path.suffix or 'nothing'}; choose {', '.join(_SUFFIXES)}")
        if not path.parent.is_dir():
            raise InputError(f"folder {path.parent} does not exist; make it first")


def _served_name(model: str) -> str:
    """The model as an engine takes it: a folder for a config.json, or else what the user wrote."""
    path = Path(model)
    return str(path.parent) if path.name == "config.json" else model


def _best_layout(best: Candidate) -> LayoutArrays:
    return parse_layout(best.layout.replace(",hop-b", ""), overlap=best.overlap)


def run_plan(o: PlanOptions) -> PlanReport:
    """Search, and write and collect what the options ask for.

    Raises:
        InputError: an option breaks a rule, or nothing fits it; LayoutError for `why_not`.
    """
    _check_outputs(o.output)
    model, hardware = load_model(o.model), load_hardware(o.gpu)
    s = make_setting(model, hardware, engine=o.engine, formats=_formats(o, model, hardware), graphs=o.graphs)
    start = time.perf_counter()
    answer = ask(s, _question(o, hardware))
    seconds = time.perf_counter() - start
    tables, lines, commands = answer_tables(answer), notes(answer), []
    if o.why_not is not None:
        lines += [f"why not {o.why_not}: {line}" for line in explain(answer, o.why_not).lines]
    found = crossover(s, o.gpus or answer.best.num_gpus) if o.crossover else None
    if found is not None:
        tables.append(crossover_table(found))
    if o.emit is not None:
        launch = emit(o.emit, s, answer.best, _best_layout(answer.best), name=_served_name(o.model), context=o.context)
        lines += [f"{o.emit}: {text}" for text in launch.cannot]
        commands += [f"# {name}\n{text}" for name, text in launch.files] + ([launch.command] if launch.command else [])
    for path in o.output:
        _write(path, s, answer, found)
    return PlanReport(headline=_headline(s, answer, seconds), tables=tuple(tables), notes=tuple(lines),
                      commands=tuple(commands), written=o.output)  # fmt: skip
