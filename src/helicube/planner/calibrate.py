"""Calibration: kernel tables and served runs in, a constants file and pictures out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from helicube.errors import InputError
from helicube.planner.constants import EngineConstants, GpuConstants
from helicube.planner.constants_file import write_constants
from helicube.planner.errors_table import summarise
from helicube.planner.fit_kernels import fit_gpu
from helicube.planner.fit_serving import ServingFit, fit_engines
from helicube.planner.kernel_fit import KernelFit
from helicube.planner.kernel_tables import find_gpus
from helicube.planner.report import Table
from helicube.planner.serving_table import read_serving
from helicube.planner.shipped import shipped_constants
from helicube.specs.hardware import load_hardware

__all__ = ["calibrate"]


def _fit_table(name: str, fits: list[KernelFit]) -> Table:
    rows = []
    for fit in fits:
        size = np.abs(fit.errors)
        rows.append((fit.name, str(len(size)), f"{np.median(size):.1%}", f"{np.mean(size):.1%}",
                     f"{np.quantile(size, 0.9):.1%}", f"{np.mean(size <= 0.2):.0%}"))  # fmt: skip
    header = ("operation", "rows", "median |error|", "mean |error|", "90th percentile", "within 20 %")
    return Table(title=f"{name}: fitted against measured kernels", header=header, rows=tuple(rows))


def _bound_table(fits: dict[str, list[KernelFit]]) -> Table:
    """Constants that ended on an end of their range."""
    rows = tuple((name, fit.name, ", ".join(fit.on_bound)) for name, own in fits.items() for fit in own if fit.on_bound)
    title = "Warning: constants on an end of their range, which the tables do not identify"
    return Table(title=title, header=("GPU", "operation", "constants"), rows=rows)


def _moved_table(fit: ServingFit) -> Table:
    """Constants of engines that left their prior by more than a factor of 2."""
    factor = {name: fit.values[name] / prior for name, prior in fit.priors.items()}
    moved = sorted(
        (name for name in factor if abs(np.log2(factor[name])) > 1.0), key=lambda name: -abs(np.log(factor[name]))
    )
    rows = tuple((name, f"{fit.priors[name]:.3g}", f"{fit.values[name]:.3g}", f"{factor[name]:.2f}") for name in moved)
    title = f"Engines: {len(fit.priors)} constants fitted, {len(moved)} of them moved by more than a factor of 2"
    return Table(title=title, header=("constant", "prior", "fitted", "fitted / prior"), rows=rows)


_Constants = tuple[dict[str, GpuConstants], dict[str, EngineConstants]]


def _serving(path: Path, gpus: dict[str, GpuConstants]) -> tuple[_Constants, list[Table]]:
    rows = [row for row in read_serving(path) if not row.speculative and row.tpot_s > 0]
    if not rows:
        raise InputError(f"{path} holds no measured row without speculative decoding; engines cannot be fitted to it")
    fit = fit_engines(rows, gpus)
    predicted = fit.predict(rows)
    errors = predicted / np.array([row.tpot_s for row in rows]) - 1.0
    engines, body = {}, []
    for name, engine in fit.engines.items():
        own = np.array([row.engine == name for row in rows])
        summary = summarise(errors[own])
        source = f"{summary.count} served runs of {path.name}, median error {summary.median_absolute:.1%} (in the fit)"
        models = tuple(sorted({row.model.name for row in rows if row.engine == name}))
        engines[name] = replace(engine, source=source, models=models)
        body.append((name, *summary.cells))
    header = ("engine", "rows", "median |error|", "mean |error|", "within 20 %", "bias")
    title = "Engines: fitted against measured TPOT (in the fit)"
    return (fit.gpus, engines), [Table(title=title, header=header, rows=tuple(body)), _moved_table(fit)]


def calibrate(kernels: Path, output: Path, *, serving: Path | None = None, plots: Path | None = None) -> list[Table]:
    """Fit all GPUs of a folder, and engines when served runs are given; otherwise keep the shipped engines and scales.

    Args:
        kernels: folder of <gpu>/*.parquet.
        output: constants file to write.
        serving: CSV of served runs.
        plots: folder for pictures.

    Raises:
        InputError: a file is missing or unreadable.
        MissingExtraError: pyarrow or matplotlib is not installed.
    """
    folders = find_gpus(kernels)
    if not output.parent.is_dir():
        raise InputError(f"folder {output.parent} does not exist; make it first")
    gpus: dict[str, GpuConstants] = {}
    every: dict[str, list[KernelFit]] = {}
    for name, folder in folders.items():
        gpus[name], fits = fit_gpu(load_hardware(name), folder)
        every[name] = fits
        if plots is not None:
            from helicube.planner.chart_image import draw_errors, draw_fits

            plots.mkdir(parents=True, exist_ok=True)
            draw_fits(name, fits, plots / f"calibration-{name}.png")
            draw_errors(name, fits, plots / f"calibration-{name}-error.png")
    tables = [*(_fit_table(name, fits) for name, fits in every.items()), _bound_table(every)]
    shipped_gpus, engines = shipped_constants()
    if serving is None:
        gpus = {name: _with_scales(gpu, shipped_gpus.get(name)) for name, gpu in gpus.items()}
    else:
        (gpus, engines), more = _serving(serving, gpus)
        tables += more
    write_constants(output, gpus, engines)
    return tables


def _with_scales(gpu: GpuConstants, shipped: GpuConstants | None) -> GpuConstants:
    """Kernel constants of a new fit with the serving scales that ship."""
    if shipped is None:
        return gpu
    gemm = {
        fmt: replace(c, serving_scale=shipped.gemm[fmt].serving_scale if fmt in shipped.gemm else 1.0)
        for fmt, c in gpu.gemm.items()
    }
    moe = {
        fmt: replace(c, serving_scale=shipped.moe[fmt].serving_scale if fmt in shipped.moe else 1.0)
        for fmt, c in gpu.moe.items()
    }
    return replace(gpu, gemm=gemm, moe=moe)
