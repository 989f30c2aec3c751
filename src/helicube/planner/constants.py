"""Fitted constants of kernels, GPUs and engines, and where they come from.

`constants.toml` is written by `helicube plan calibrate`; it ships with the package, the tables it was fitted to do not.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from helicube.errors import InputError
from helicube.specs.hardware import HardwareSpec
from helicube.specs.names import nearest_names

__all__ = [
    "AttentionConstants",
    "CollectiveConstants",
    "EngineConstants",
    "GemmConstants",
    "GpuConstants",
    "Kind",
    "MoeConstants",
    "OneShotConstants",
    "constants_from_toml",
    "engine_constants",
    "gpu_constants",
    "list_engines",
    "shipped_constants",
]

Kind = Literal["measured", "fitted", "bound"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GemmConstants:
    """t = launch + sqrt(read² + math² + loop²), see :mod:`helicube.planner.cost_gemm`."""

    hbm_efficiency: float
    # Share of peak memory bandwidth that a large weight matrix reaches.
    math_efficiency: float
    # Share of peak FLOP/s that a large batch reaches.
    loop_s: float
    # Seconds per element of the inner dimension and wave: the serial pace of one tile.
    launch_s: float
    # Fixed time of one stand-alone call.
    serving_scale: float = 1.0
    # Time inside an engine over that of the table, launch aside: tuned kernels are below 1.


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConstants:
    """t = launch + sqrt(read² + math² + split²) + query, see :mod:`helicube.planner.cost_attention`."""

    hbm_efficiency: float
    # Share of peak memory bandwidth when the cache is long.
    math_efficiency: float
    # Share of peak bf16 FLOP/s.
    split_s: float
    # Seconds per square root of the cached tokens of one sequence: the serial part of a split cache.
    query_passes: float
    # Passes over queries and outputs, in units of their bytes at peak bandwidth.
    launch_s: float
    # Fixed time of one stand-alone call.
    linear_beyond: float = math.inf
    # Cached tokens from which the split part grows linearly instead; infinite unless a sensitivity is asked for.


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeConstants:
    """t = launch + sqrt(read² + math²) + tokens, see :mod:`helicube.planner.cost_moe`."""

    hbm_efficiency: float
    # Share of peak memory bandwidth for the weights of the experts hit.
    math_efficiency: float
    # Share of the peak FLOP/s of the format.
    spread: float
    # Shape of the gamma law of expert popularity: large is even, small is skewed.
    token_passes: float
    # Passes over routed activations (permute, un-permute), in units of their bytes at peak bandwidth.
    launch_s: float
    # Fixed time of routing and of one stand-alone call.
    serving_scale: float = 1.0
    # Time inside an engine over that of the table, launch and token passes aside.


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveConstants:
    """t = base + step·log2(n) + bytes/(link·efficiency) + root·sqrt(bytes); bytes as received by one rank."""

    base_s: float
    # Latency of the smallest call.
    step_s: float
    # Latency for each doubling of the ranks.
    efficiency: float
    # Share of link bandwidth for large messages.
    root_s: float
    # Seconds per sqrt(byte): messages between latency and bandwidth.


@dataclass(frozen=True, kw_only=True, slots=True)
class OneShotConstants:
    """Fused all-reduce kernels: every rank reads all others (one-shot), or scatters and gathers (two-shot)."""

    base_s: float
    step_s: float
    efficiency: float
    two_base_s: float
    two_step_s: float
    two_efficiency: float
    # As in CollectiveConstants, for each of the two kernels.


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuConstants:
    """Everything fitted for one GPU; efficiencies are shares of its own peaks, so that they transfer."""

    name: str
    # GPU whose tables were fitted.
    source: str
    # Tables, versions and error of the fit.
    gemm: dict[str, GemmConstants]
    # By math format: bf16, fp8, fp8_block, fp4.
    attention: dict[str, AttentionConstants]
    # By "gqa" or "mla" and cache format: gqa_bf16, gqa_fp8, mla_bf16, mla_fp8.
    moe: dict[str, MoeConstants]
    # By weight format: bf16, fp8, fp4.
    collectives: dict[str, CollectiveConstants]
    # all_gather, all_reduce, alltoall, reduce_scatter.
    one_shot: OneShotConstants
    # Fused all-reduce.
    generation: str
    # hopper or blackwell: GPUs that run the same kernels.
    max_ranks: int
    # Widest collective in the tables.
    fused_moves: bool = True
    # Engines have fused gathers and exchanges beside NCCL's; false only when a sensitivity is asked for.


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConstants:
    """What an engine adds to its kernels, fitted to served requests. Times in seconds."""

    name: str
    # vllm, trtllm, sglang; "bound" has no overhead.
    source: str
    # Rows and error of the fit.
    step_s: float = 0.0
    # Host time of one decode step.
    request_s: float = 0.0
    # Host time per running request and step.
    layer_s: float = 0.0
    # Small kernels and gaps of one layer.
    qk_norm_s: float = 0.0
    # Norms of queries and keys in one layer, for models that have them.
    gemm_s: float = 0.0
    # Launch of one GEMM inside a captured graph.
    attention_s: float = 0.0
    # Fixed time of one attention call.
    attention_scale: float = 1.0
    # Attention time over that of the table.
    moe_s: dict[str, float] = field(default_factory=dict)
    # Fixed time of one MoE layer (routing, permutation, launches), by GPU generation.
    linear_s: float = 0.0
    # Fixed time of one linear-attention layer.
    collective_s: float = 0.0
    # Added to each collective for each doubling of the ranks: launch and waiting for the slowest.
    eager_layer_s: float = 100e-6
    # Launch-bound time of one layer without a captured graph, prefill included.
    prefill_efficiency: dict[str, float] = field(default_factory=dict)
    # Share of peak FLOP/s in prefill, by math format; "moe" multiplies it for experts.
    linear_prefill_s: float = 0.0
    # Seconds per token and value channel of a linear-attention layer in prefill, on one GPU.
    interleave: float = 1.0
    # Share of other requests' prefill that delays a decoding one.
    mixed: bool = False
    # Prefill chunks ride in decode steps and share their reads of the weights.


def _build(kind: type, data: dict[str, Any], where: str) -> Any:
    known = [f.name for f in fields(kind)]
    for key in data:
        if key not in known:
            raise InputError(f"{where}: key {key!r} is unknown; the nearest are {nearest_names(key, known)}")
    try:
        return kind(**data)
    except TypeError as error:
        raise InputError(f"{where}: {error}; run helicube plan calibrate to write a complete file") from error


def _gpu(name: str, data: dict[str, Any]) -> GpuConstants:
    parts: dict[str, Any] = {"name": name, **{key: data[key] for key in ("source", "generation", "max_ranks")}}
    kinds = {
        "gemm": GemmConstants,
        "attention": AttentionConstants,
        "moe": MoeConstants,
        "collectives": CollectiveConstants,
    }
    for part, kind in kinds.items():
        parts[part] = {key: _build(kind, value, f"{name}.{part}.{key}") for key, value in data[part].items()}
    parts["one_shot"] = _build(OneShotConstants, data["one_shot"], f"{name}.one_shot")
    return GpuConstants(**parts)


def constants_from_toml(text: str) -> tuple[dict[str, GpuConstants], dict[str, EngineConstants]]:
    """Read a constants file: GPUs and engines by name.

    Raises:
        InputError: the text is not TOML, or a key is unknown or missing.
    """
    try:
        data = tomllib.loads(text)
        gpus = {name: _gpu(name, table) for name, table in data["gpu"].items()}
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the constants file is not TOML ({error}); run helicube plan calibrate") from error
    except KeyError as error:
        raise InputError(f"the constants file lacks {error}; run helicube plan calibrate") from error
    engines = {
        name: _build(EngineConstants, {"name": name, **table}, f"engine.{name}")
        for name, table in data.get("engine", {}).items()
    }
    return gpus, engines


@cache
def shipped_constants() -> tuple[dict[str, GpuConstants], dict[str, EngineConstants]]:
    """Constants that come with the package: GPUs and engines by name."""
    return constants_from_toml(Path(__file__).with_name("constants.toml").read_text(encoding="utf-8"))


_PEAK = GpuConstants(
    name="bound",
    source="peak rates, no overhead",
    gemm={
        fmt: GemmConstants(hbm_efficiency=1, math_efficiency=1, loop_s=0, launch_s=0)
        for fmt in ("bf16", "fp8", "fp8_block", "fp4")
    },
    attention={
        f"{kind}_{fmt}": AttentionConstants(hbm_efficiency=1, math_efficiency=1, split_s=0, query_passes=1, launch_s=0)
        for kind in ("gqa", "mla")
        for fmt in ("bf16", "fp8")
    },
    moe={
        fmt: MoeConstants(hbm_efficiency=1, math_efficiency=1, spread=1e6, token_passes=1, launch_s=0)
        for fmt in ("bf16", "fp8", "fp4")
    },
    collectives={
        op: CollectiveConstants(base_s=0, step_s=0, efficiency=1, root_s=0)
        for op in ("all_gather", "all_reduce", "alltoall", "reduce_scatter")
    },
    one_shot=OneShotConstants(base_s=0, step_s=0, efficiency=1, two_base_s=0, two_step_s=0, two_efficiency=1),
    generation="",
    max_ranks=0,
)

BOUND_ENGINE = EngineConstants(
    name="bound", source="no overhead: a lower bound on time", eager_layer_s=0.0,
    prefill_efficiency={"bf16": 1.0, "fp8": 1.0, "fp8_block": 1.0, "fp4": 1.0, "moe": 1.0},
)  # fmt: skip


def list_engines() -> tuple[str, ...]:
    """Engines with fitted constants, then the two that need none."""
    return (*shipped_constants()[1], "bound")


def engine_constants(name: str) -> EngineConstants:
    """Look up an engine.

    Raises:
        InputError: the name is unknown; the message lists the known ones.
    """
    engines = shipped_constants()[1]
    if name == "bound":
        return BOUND_ENGINE
    if name not in engines:
        raise InputError(f"engine {name!r} is unknown; choose {nearest_names(name, list_engines(), most=9)}")
    return engines[name]


def gpu_constants(hardware: HardwareSpec) -> tuple[GpuConstants, Kind, str]:
    """Constants for an accelerator, their kind, and a remark when they were fitted on another one.

    A GPU without `calibrated_as` gets peak rates, so that every time is a lower bound; it never gets another GPU's
    figures in silence.

    Raises:
        InputError: `calibrated_as` names no fitted GPU.
    """
    gpus = shipped_constants()[0]
    name = hardware.calibrated_as
    if not name:
        return _PEAK, "bound", f"{hardware.name} has no calibration: times are lower bounds from peak rates"
    if name not in gpus:
        near = nearest_names(name, gpus, most=9)
        raise InputError(f"calibrated_as = {name!r} of {hardware.name} names no fitted GPU; choose {near}")
    remark = ""
    if name != hardware.name:
        remark = f"{hardware.name} has no kernel tables: efficiencies are those of {name}, as shares of its own peaks"
    return gpus[name], "fitted", remark
