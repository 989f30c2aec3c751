"""The constants that ship with the package, and which of them a GPU or an engine gets.

`constants.toml` is written by `helicube plan calibrate`; the tables it was fitted to do not ship.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from helicube.errors import InputError
from helicube.planner.constants import (
    AttentionConstants,
    CollectiveConstants,
    EngineConstants,
    FusedConstants,
    GemmConstants,
    GpuConstants,
    Kind,
    MoeConstants,
)
from helicube.planner.constants_file import constants_from_toml
from helicube.specs.hardware import HardwareSpec
from helicube.specs.names import nearest_names

__all__ = ["BOUND_ENGINE", "engine_constants", "gpu_constants", "list_engines", "shipped_constants"]


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
    one_shot=FusedConstants(base_s=0, step_s=0, efficiency=1),
    two_shot=FusedConstants(base_s=0, step_s=0, efficiency=1),
    generation="",
    range=None,
)

BOUND_ENGINE = EngineConstants(
    name="bound", source="no overhead: a lower bound on time",
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
