"""Fit the constants of engines to served requests.

Each constant has a physical meaning and a prior; the fit minimises a robust log error plus the distance to the priors,
so that what the data do not decide stays where physics puts it. How many there are, and how far they moved, is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from helicube.planner.arrays import Array
from helicube.planner.constants import EngineConstants, GpuConstants
from helicube.planner.predict_rows import RowGroup, group_rows, predict_group
from helicube.planner.serving_table import ServingRow

__all__ = ["ServingFit", "fit_engines"]

_CHUNKED_PREFILL = ("trtllm", "vllm")
# Engines that put prefill chunks into decode steps by default (vLLM's V1 engine; TensorRT-LLM's in-flight batching with
# chunked context); SGLang runs a prefill batch apart unless --enable-mixed-chunk is given.

_STEP = 1e-4
# Relative step of the finite differences.

_NOISE = 0.12
# Scatter of repeated runs and of what no constant explains, as a share of TPOT.


@dataclass(frozen=True, kw_only=True, slots=True)
class _Constant:
    """One constant of the fit, in log space."""

    name: str
    prior: float
    spread: float
    # Standard deviation of the prior, in log space.
    touches: Callable[[RowGroup], bool]
    # Groups whose prediction depends on it.


def _always(_: RowGroup) -> bool:
    return True


def _is_generation(group: RowGroup, name: str) -> bool:
    return group.hardware.generation == name


def _shared() -> list[_Constant]:
    """Constants that all engines share."""

    def moe(g: RowGroup) -> bool:
        return g.model.ffn.is_moe

    def linear(g: RowGroup) -> bool:
        return g.model.num_linear_layers > 0

    found = [
        _Constant(name="gemm_s", prior=1e-6, spread=0.5, touches=_always),
        _Constant(name="qk_norm_s", prior=4e-6, spread=0.7, touches=lambda g: g.model.attention.qk_norm),
        _Constant(name="linear_s", prior=20e-6, spread=1.0, touches=linear),
        _Constant(name="linear_prefill_s", prior=3e-12, spread=1.0, touches=linear),
        _Constant(name="prefill.moe", prior=0.5, spread=0.5, touches=moe),
    ]
    for fmt, prior in (("bf16", 0.65), ("fp8", 0.55), ("fp8_block", 0.5), ("fp4", 0.45)):

        def uses(g: RowGroup, fmt: str = fmt) -> bool:
            return fmt in {g.formats.attention, g.formats.ffn, g.formats.experts}

        found.append(_Constant(name=f"prefill.{fmt}", prior=prior, spread=0.4, touches=uses))
    return found


def _scales(generations: Sequence[str]) -> list[_Constant]:
    """Time of tuned kernels over that of the tables, by generation and format."""
    found = []
    for generation in generations:
        for fmt in ("bf16", "fp8", "fp8_block", "fp4"):

            def weights(g: RowGroup, generation: str = generation, fmt: str = fmt) -> bool:
                f = g.formats
                return _is_generation(g, generation) and fmt in {f.attention, f.ffn, f.head}

            found.append(_Constant(name=f"gemm.{generation}.{fmt}", prior=1.0, spread=0.2, touches=weights))
        for fmt in ("bf16", "fp8", "fp4"):

            def experts(g: RowGroup, generation: str = generation, fmt: str = fmt) -> bool:
                return _is_generation(g, generation) and g.model.ffn.is_moe and g.formats.experts == fmt

            found.append(_Constant(name=f"moe.{generation}.{fmt}", prior=1.0, spread=0.3, touches=experts))

        def moe(g: RowGroup, generation: str = generation) -> bool:
            return _is_generation(g, generation) and g.model.ffn.is_moe

        found.append(_Constant(name=f"moe_s.{generation}", prior=25e-6, spread=0.5, touches=moe))
    return found


def _per_engine(engine: str) -> list[_Constant]:
    def mine(g: RowGroup) -> bool:
        return g.engine == engine

    priors = {"layer_s": (6e-6, 0.5), "step_s": (0.5e-3, 0.5), "request_s": (5e-6, 0.5),
              "collective_step_s": (2e-6, 0.5), "attention_scale": (1.0, 0.15), "attention_s": (5e-6, 0.5),
              "prefill_layer_s": (150e-6, 0.5), "prefill": (1.0, 0.2), "interleave": (1.0, 0.2)}  # fmt: skip
    if engine == "trtllm":
        # The kernel tables measure this engine's own attention kernels.
        priors["attention_scale"] = (1.0, 1e-3)
    found = [
        _Constant(name=f"{engine}.{name}", prior=prior, spread=spread, touches=mine)
        for name, (prior, spread) in priors.items()
    ]

    def moe(g: RowGroup) -> bool:
        return mine(g) and g.model.ffn.is_moe

    found.append(_Constant(name=f"{engine}.moe", prior=1.0, spread=0.4, touches=moe))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingFit:
    """Result of a fit."""

    values: dict[str, float]
    # Constants by name.
    priors: dict[str, float]
    # Where each would be without data.
    engines: dict[str, EngineConstants]
    gpus: dict[str, GpuConstants]

    def predict(self, rows: Sequence[ServingRow]) -> Array:
        """(rows,) predicted TPOT in seconds."""
        found = np.empty(len(rows))
        for group in group_rows(rows):
            gpu, engine = self.gpus[group.hardware.calibrated_as], self.engines[group.engine]
            found[group.index] = predict_group(group, gpu, engine).tpot_s
        return found


def _engine(name: str, v: Mapping[str, Any]) -> EngineConstants:
    scale = v[f"{name}.prefill"]
    # No kernel beats the peak of the tensor cores.
    shares = {fmt: np.minimum(1.0, v[f"prefill.{fmt}"] * scale) for fmt in ("bf16", "fp8", "fp8_block", "fp4")}
    own = {key: v[f"{name}.{key}"] for key in ("layer_s", "step_s", "request_s", "collective_step_s", "attention_scale",
                                               "attention_s", "prefill_layer_s", "interleave")}  # fmt: skip
    shared = {key: v[key] for key in ("gemm_s", "qk_norm_s", "linear_s", "linear_prefill_s")}
    launch = {key.removeprefix("moe_s."): value for key, value in v.items() if key.startswith("moe_s.")}
    moe = {generation: v[f"{name}.moe"] * seconds for generation, seconds in launch.items()}
    return EngineConstants(
        name=name, source="", prefill_efficiency={**shares, "moe": v["prefill.moe"]}, moe_s=moe,
        chunked_prefill=name in _CHUNKED_PREFILL, **shared, **own,
    )  # fmt: skip


def _gpu(gpu: GpuConstants, v: Mapping[str, Any]) -> GpuConstants:
    generation = gpu.generation
    gemm = {fmt: replace(c, serving_scale=v[f"gemm.{generation}.{fmt}"]) for fmt, c in gpu.gemm.items()}
    moe = {fmt: replace(c, serving_scale=v[f"moe.{generation}.{fmt}"]) for fmt, c in gpu.moe.items()}
    return replace(gpu, gemm=gemm, moe=moe)


class _Problem:
    """Residuals and their derivatives; a constant is only moved in the groups it touches."""

    def __init__(self, rows: Sequence[ServingRow], gpus: Mapping[str, GpuConstants], engines: Sequence[str]) -> None:
        self.groups = group_rows(rows)
        self.gpus = gpus
        self.engines = engines
        generations = sorted({gpu.generation for gpu in gpus.values()})
        every = [*_shared(), *_scales(generations), *(c for name in engines for c in _per_engine(name))]
        self.constants = [c for c in every if any(c.touches(g) for g in self.groups)]
        self.rest = {c.name: c.prior for c in every}
        self.start = np.log([c.prior for c in self.constants])
        self.spread = np.array([c.spread for c in self.constants])
        self.num_rows = len(rows)

    def values(self, x: Array) -> dict[str, float]:
        return {**self.rest, **{c.name: float(np.exp(p)) for c, p in zip(self.constants, x, strict=True)}}

    def _group_error(self, group: RowGroup, v: Mapping[str, Any]) -> Array:
        """(rows,) robust log errors; (k, rows) when constants come as (k, 1) arrays."""
        gpu = _gpu(self.gpus[group.hardware.calibrated_as], v)
        predicted = predict_group(group, gpu, _engine(group.engine, v)).tpot_s
        error = (np.log(predicted) - np.log(group.measured_s)) / _NOISE
        # Pseudo-Huber: an outlier pulls with constant force.
        robust: Array = np.sign(error) * np.sqrt(2.0 * (np.sqrt(1.0 + np.square(error)) - 1.0))
        return robust

    def residuals(self, x: Array) -> Array:
        found = np.empty(self.num_rows + len(x))
        v = self.values(x)
        for group in self.groups:
            found[group.index] = self._group_error(group, v)
        found[self.num_rows :] = (x - self.start) / self.spread
        return found

    def jacobian(self, x: Array) -> Array:
        found = np.zeros((self.num_rows + len(x), len(x)))
        found[self.num_rows :] = np.diag(1.0 / self.spread)
        v: dict[str, Any] = self.values(x)
        for group in self.groups:
            columns = [i for i, constant in enumerate(self.constants) if constant.touches(group)]
            # One evaluation for all columns: row k moves the k-th constant, the last row none.
            moved = np.exp(_STEP * np.eye(len(columns) + 1, len(columns)))
            for k, i in enumerate(columns):
                name = self.constants[i].name
                v[name] = v[name] * moved[:, k : k + 1]
            error = self._group_error(group, v)
            found[np.ix_(group.index, np.array(columns))] = ((error[:-1] - error[-1]) / _STEP).T
            v = self.values(x)
        return found


def fit_engines(rows: Sequence[ServingRow], gpus: Mapping[str, GpuConstants], *, rounds: int = 60) -> ServingFit:
    """Fit engines and serving scales to measured rows; rows with speculative decoding must be left out by the caller.

    Args:
        rows: measured runs.
        gpus: constants from the kernel tables.
        rounds: evaluations at the most.
    """
    from scipy.optimize import least_squares

    problem = _Problem(rows, gpus, sorted({row.engine for row in rows}))
    found = least_squares(
        problem.residuals, problem.start, jac=problem.jacobian, max_nfev=rounds, x_scale="jac", ftol=1e-5
    )
    v = problem.values(found.x)
    return ServingFit(
        values=v, priors={c.name: c.prior for c in problem.constants},
        engines={name: _engine(name, v) for name in problem.engines},
        gpus={name: _gpu(gpu, v) for name, gpu in gpus.items()},
    )  # fmt: skip
