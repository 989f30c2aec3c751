"""Frontiers, crossover maps and fits as PNG or SVG (matplotlib, extra "plan")."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from helicube.errors import InputError, MissingExtraError
from helicube.planner.answer import Answer
from helicube.planner.crossover import Crossover, context_label
from helicube.planner.kernel_fit import KernelFit
from helicube.planner.layouts import FAMILIES, FAMILY_NAMES
from helicube.planner.output import target_of
from helicube.planner.pareto import frontier
from helicube.planner.ranges import outside_range

__all__ = ["draw_answer", "draw_crossover", "draw_errors", "draw_fits"]

_COLORS = {"tp": "#8a8f9c", "pp": "#b08968", "dp": "#5b8c5a", "medha": "#c9a227", "dcp": "#3f7cac", "helix": "#d1495b"}


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plan") from error
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path, dpi: int = 110) -> None:
    from matplotlib import rc_context

    path = target_of(path)
    temporary = path.with_name(f".{path.stem[:40]}.{os.getpid()}.part{path.suffix}")
    try:
        # The same answer gives the same bytes: no date, and ids from a fixed salt.
        with rc_context({"svg.hashsalt": "helicube"}):
            figure.savefig(temporary, dpi=dpi, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written ({error.strerror}); choose another folder") from error


def draw_answer(answer: Answer, path: Path) -> None:
    """Draw the frontier of each family; the suffix of `path` decides the format."""
    figure = _figure(8, 5)
    axes = figure.subplots()
    s, q = answer.setting, answer.question
    for family in FAMILIES:
        front = frontier(answer.points.of_family(family))
        if len(front):
            label, color = FAMILY_NAMES[family], _COLORS[family]
            axes.plot(front.tokens_per_s_user, front.tokens_per_s_gpu, "-", color=color, label=label)
            outside = outside_range(s, front.layouts, front.batch, q.context)
            for mask, face in ((~outside, color), (outside, "white")):
                part = front.where(mask)
                axes.plot(part.tokens_per_s_user, part.tokens_per_s_gpu, ".", ms=7, mew=0.8, color=color, mfc=face)
    axes.plot(answer.best.tokens_per_s_user, answer.best.tokens_per_s_gpu, "o", ms=12, mfc="none", mec="black")
    if q.ttl_s:
        axes.axvline(1 / q.ttl_s, color="black", ls="--", lw=1)
    axes.set(xscale="log", yscale="log", xlabel=f"tokens/s per user ({s.kind})", ylabel=f"tokens/s per GPU ({s.kind})")
    axes.set_title(
        f"{s.model.name} on up to {q.max_gpus} × {s.hardware.name}, context {q.context:,} (hollow: extrapolated)",
        fontsize=10,
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}")
    axes.tick_params(which="minor", labelsize=7)
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, path)


def draw_crossover(found: Crossover, path: Path) -> None:
    """Draw the map: red where KV parallelism pays, blue where it hurts, grey where nothing fits."""
    from matplotlib import colormaps

    figure = _figure(9, 5)
    axes = figure.subplots()
    log_ratio = np.log2(np.clip(found.ratio, 0.25, 4.0))
    colors = colormaps["RdBu_r"].with_extremes(bad="#cccccc")
    image = axes.imshow(np.ma.masked_invalid(log_ratio), origin="lower", aspect="auto", cmap=colors, vmin=-2, vmax=2)
    for (i, j), value in np.ndenumerate(found.ratio):
        if not np.isnan(value):
            axes.text(
                j,
                i,
                "KVP" if np.isinf(value) else "–" if value == 0 else f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=7,
            )
    axes.set_xticks(range(len(found.contexts)), list(map(context_label, found.contexts)))
    axes.set_yticks(range(len(found.batches)), [str(int(b)) for b in found.batches])
    axes.set(
        xlabel="context (tokens)",
        ylabel="users",
        title=f"Latency without over with KV parallelism: {found.subject}",
    )
    bar = figure.colorbar(image, label="ratio: above 1 it pays")
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["¼", "½", "1", "2", "4"])
    _save(figure, path)


def draw_errors(name: str, fits: Sequence[KernelFit], path: Path) -> None:
    """Draw the spread of predicted over measured time of each operation: median, quartiles, 5th to 95th percentile."""
    figure = _figure(7, 0.32 * len(fits) + 1)
    axes = figure.subplots()
    axes.axvspan(-20, 20, color="#dddddd")
    for i, fit in enumerate(fits[::-1]):
        ends = np.quantile(100 * fit.errors, (0.05, 0.25, 0.5, 0.75, 0.95))
        axes.plot(ends[[0, 4]], [i, i], color="#3f7cac", lw=1)
        axes.plot(ends[[1, 3]], [i, i], color="#3f7cac", lw=5)
        axes.plot(ends[2], i, "k.")
    axes.set_yticks(range(len(fits)), [fit.name for fit in fits[::-1]], fontsize=8)
    axes.set(xlabel="fitted over measured time, minus 1 (%); grey: within 20 %", title=name, xlim=(-80, 80))
    _save(figure, path, dpi=80)


def draw_fits(name: str, fits: Sequence[KernelFit], path: Path) -> None:
    """Draw predicted against measured times of each operation of one GPU."""
    columns = 4
    rows = -(-len(fits) // columns)
    figure = _figure(3.1 * columns, 2.9 * rows)
    for axes, fit in zip(figure.subplots(rows, columns, squeeze=False).ravel(), fits, strict=False):
        # At most 500 points of an operation keep the picture small.
        step = max(1, len(fit.measured_s) // 500)
        measured, predicted = fit.measured_s[::step] * 1e6, fit.predicted_s[::step] * 1e6
        ends = [measured.min(), measured.max()]
        axes.plot(measured, predicted, ".", ms=2, alpha=0.4, rasterized=True)
        axes.plot(ends, ends, "k-", lw=0.8)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{fit.name}: median {fit.median_error:.1%}", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.tick_params(which="minor", labelleft=False, labelbottom=False)
    for axes in figure.axes[len(fits) :]:
        axes.set_visible(False)
    figure.supxlabel("measured µs")
    figure.supylabel("fitted µs")
    figure.suptitle(name)
    _save(figure, path, dpi=75)
