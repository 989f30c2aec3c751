"""Fit the constants of a GPU to its kernel tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.errors import InputError
from helicube.planner.arrays import Array
from helicube.planner.constants import (
    AttentionConstants,
    FitRange,
    GemmConstants,
    GpuConstants,
    MoeConstants,
)
from helicube.planner.cost_attention import attention_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.cost_moe import moe_time
from helicube.planner.fit_collectives import fit_collective, fit_fused
from helicube.planner.kernel_fit import KernelFit, Parameter, fit_constants
from helicube.planner.kernel_tables import Columns, read_table, unique_rows
from helicube.specs.attention import AttentionSpec
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import FfnSpec

__all__ = ["fit_gpu"]

# A spec, and the rows of a table that it describes.
_Calls = list[tuple[AttentionSpec, NDArray[np.bool_]]]

# Ends of the fits, which ship with the constants so that a plan can flag what lies beyond. Narrower GEMMs are all
# launch; beyond 51,200 columns there are no layers.
_MIN_COLUMNS = 512
_MIN_INNER = 256
_MIN_EXPERT_COLUMNS = 64
_MAX_SEQUENCES = 512

_GEMM_FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "fp4"}
_CACHE_FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}
# Hopper has no fp4 arithmetic; its 4-bit experts multiply in bf16.
_MOE_FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4", "w4a16_mxfp4": "fp4"}


def _fit_gemm(hardware: HardwareSpec, columns: Columns, dtype: str) -> tuple[GemmConstants, KernelFit]:
    fmt = _GEMM_FORMATS[dtype]
    n, k = columns["n"], columns["k"]
    mask = (columns["gemm_dtype"] == dtype) & (n >= _MIN_COLUMNS) & (k >= _MIN_INNER) & (n < 60000) & (k < 60000)
    rows = unique_rows(columns, ("m", "n", "k"), mask)

    def predict(p: dict[str, float]) -> Array:
        return p["launch_s"] + gemm_time(hardware, GemmConstants(**p), fmt, m=rows["m"], n=rows["n"], k=rows["k"])

    parameters = (
        Parameter(name="launch_s", start=4e-6, low=0.5e-6, high=40e-6),
        Parameter(name="hbm_efficiency", start=0.8, low=0.2, high=1.0),
        Parameter(name="math_efficiency", start=0.7, low=0.05, high=1.0),
        Parameter(name="loop_s", start=0.7e-9, low=0.01e-9, high=10e-9),
    )
    best, fit = fit_constants(f"gemm {fmt}", predict, parameters, rows["latency_s"])
    return GemmConstants(**best), fit


def _fit_attention(hardware: HardwareSpec, name: str, cache: str, rows: dict[str, Array],
                   calls: _Calls) -> tuple[AttentionConstants, KernelFit]:  # fmt: skip
    element = 2.0 if cache == "bf16" else 1.0

    def predict(p: dict[str, float]) -> Array:
        total = np.empty_like(rows["latency_s"])
        for spec, chosen in calls:
            total[chosen] = p["launch_s"] + attention_time(
                hardware, AttentionConstants(**p), spec, batch=rows["batch_size"][chosen],
                heads=rows["num_heads"][chosen], kv_heads=rows["kv_heads"][chosen], tokens=rows["step"][chosen] + 1.0,
                cache_bytes=element,
            )  # fmt: skip
        return total

    parameters = (
        Parameter(name="launch_s", start=8e-6, low=1e-6, high=40e-6),
        Parameter(name="hbm_efficiency", start=0.8, low=0.2, high=1.0),
        Parameter(name="math_efficiency", start=0.1, low=0.01, high=1.0),
        Parameter(name="split_s", start=80e-9, low=1e-10, high=1e-6),
        Parameter(name="query_passes", start=10.0, low=0.1, high=100.0),
    )
    best, fit = fit_constants(f"attention {name} {cache}", predict, parameters, rows["latency_s"])
    return AttentionConstants(**best), fit


def _gqa_rows(columns: Columns, dtype: str) -> tuple[dict[str, Array], _Calls]:
    # More than 32 query heads per KV head run on a fallback kernel, equal head counts on another one: no model here is
    # served by either. Contexts below 16 tokens and batches above 512 measure launches.
    group = columns["num_heads"] // columns["num_key_value_heads"]
    mask = (columns["kv_cache_dtype"] == dtype) & (columns["window_size"] == 0) & (group > 1) & (group <= 32)
    mask &= (
        (columns["step"] >= 15) & (columns["batch_size"] <= _MAX_SEQUENCES) & np.isin(columns["head_dim"], (64, 128))
    )
    keys = ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "step")
    rows = unique_rows(columns, keys, mask)
    rows["kv_heads"] = rows["num_key_value_heads"]
    calls: _Calls = []
    for size in (64, 128):
        spec = AttentionSpec(num_query_heads=32, num_kv_heads=8, qk_head_size=size, v_head_size=size)
        calls.append((spec, rows["head_dim"] == size))
    return rows, calls


def _mla_rows(columns: Columns, dtype: str) -> tuple[dict[str, Array], _Calls]:
    mask = (columns["kv_cache_dtype"] == dtype) & (columns["step"] >= 15)
    mask &= columns["batch_size"] <= _MAX_SEQUENCES
    rows = unique_rows(columns, ("batch_size", "num_heads", "step"), mask)
    rows["kv_heads"] = np.ones_like(rows["step"])
    spec = AttentionSpec(num_query_heads=128, num_kv_heads=1, qk_head_size=192, v_head_size=128, kv_lora_rank=512,
                         q_lora_rank=1536, rope_head_size=64)  # fmt: skip
    return rows, [(spec, np.ones(len(rows["step"]), dtype=np.bool_))]


def _moe_calls(columns: Columns, dtype: str) -> tuple[Columns, list[tuple[FfnSpec, int, NDArray[np.bool_]]]]:
    """Measured rows of one format: skewed routing, gated experts; and per shape its layer, hidden size and rows."""
    mask = (columns["moe_dtype"] == dtype) & (columns["distribution"] == "power_law_1.01")
    mask &= ~np.char.endswith(columns["kernel_source"].astype(str), "nongated")
    mask &= columns["inter_size"] // columns["moe_tp_size"] >= _MIN_EXPERT_COLUMNS
    keys = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    rows = unique_rows(columns, keys, mask, fastest=True)
    shapes = np.stack([rows[key] for key in ("hidden_size", "inter_size", "topk", "num_experts")])
    calls = []
    for shape in np.unique(shapes, axis=1).T:
        hidden, width, top_k, experts = shape
        spec = FfnSpec(
            dense_size=0, num_dense_layers=0, num_experts=int(experts), top_k=int(top_k), expert_size=int(width)
        )
        calls.append((spec, int(hidden), np.all(shapes == shape[:, None], axis=0)))
    return rows, calls


def _fit_moe(hardware: HardwareSpec, columns: Columns, dtype: str,
             spread: float | None) -> tuple[MoeConstants, KernelFit]:  # fmt: skip
    """Fit the experts of one format; with `spread` given, that of the routing is not fitted."""
    fmt = _MOE_FORMATS[dtype]
    rows, calls = _moe_calls(columns, dtype)

    def constants(p: dict[str, float]) -> MoeConstants:
        return MoeConstants(**(p if spread is None else {**p, "spread": spread}))

    def predict(p: dict[str, float]) -> Array:
        total = np.empty_like(rows["latency_s"])
        for spec, hidden, chosen in calls:
            total[chosen] = p["launch_s"] + moe_time(
                hardware, constants(p), spec, fmt, hidden=hidden, tokens=rows["num_tokens"][chosen],
                tpf=rows["moe_tp_size"][chosen], ep=rows["moe_ep_size"][chosen],
            )  # fmt: skip
        return total

    parameters = [
        Parameter(name="launch_s", start=25e-6, low=2e-6, high=200e-6),
        Parameter(name="hbm_efficiency", start=0.6, low=0.1, high=1.0),
        Parameter(name="math_efficiency", start=0.4, low=0.02, high=1.0),
        Parameter(name="token_passes", start=5.0, low=0.1, high=60.0),
    ]
    if spread is None:
        # A spread below a fifth cannot be told apart from a lower bandwidth.
        parameters.append(Parameter(name="spread", start=0.5, low=0.2, high=10.0))
    best, fit = fit_constants(f"moe {fmt}", predict, parameters, rows["latency_s"])
    return constants(best), fit


def _source(attention: Columns, nccl: Columns) -> str:
    engine = f"{attention['framework'][0]} {attention['version'][0]}"
    return f"{engine}, NCCL {nccl['version'][0]} on {attention['device'][0]}"


def fit_gpu(hardware: HardwareSpec, folder: Path) -> tuple[GpuConstants, list[KernelFit]]:
    """Fit one GPU.

    Args:
        hardware: its peaks.
        folder: its tables.

    Returns:
        the constants, and the fit of each operation.
    """
    if not hardware.generation:
        raise InputError(f'{hardware.name} names no generation; add a line such as generation = "hopper" to its file')
    fits: list[KernelFit] = []

    def keep(result: tuple[Any, KernelFit]) -> Any:
        fits.append(result[1])
        return result[0]

    gemm, moe = read_table(folder / "gemm.parquet"), read_table(folder / "moe.parquet")
    attention, mla = read_table(folder / "decode_attention.parquet"), read_table(folder / "decode_mla.parquet")
    nccl = read_table(folder / "nccl.parquet")
    formats = {dtype: fmt for dtype, fmt in _GEMM_FORMATS.items() if np.any(gemm["gemm_dtype"] == dtype)}
    calls = {}
    for dtype, cache in _CACHE_FORMATS.items():
        calls[f"gqa_{cache}"] = keep(_fit_attention(hardware, "gqa", cache, *_gqa_rows(attention, dtype)))
        calls[f"mla_{cache}"] = keep(_fit_attention(hardware, "mla", cache, *_mla_rows(mla, dtype)))
    one_shot, two_shot = keep(fit_fused(hardware, read_table(folder / "custom_allreduce.parquet")))
    constants = GpuConstants(
        name=hardware.name,
        source=_source(attention, nccl),
        gemm={fmt: keep(_fit_gemm(hardware, gemm, dtype)) for dtype, fmt in formats.items()},
        attention=calls,
        moe=_fit_all_experts(hardware, moe, keep),
        collectives={op: keep(fit_collective(hardware, nccl, op)) for op in np.unique(nccl["op_name"])},
        one_shot=one_shot,
        two_shot=two_shot,
        generation=hardware.generation,
        range=_range(gemm, attention, mla, nccl),
    )
    return constants, fits


def _fit_all_experts(hardware: HardwareSpec, moe: Columns, keep: Callable[[Any], Any]) -> dict[str, MoeConstants]:
    """Constants by format. The spread of popularity is one of routing: small 4-bit tables take that of the others."""
    experts = {dtype: fmt for dtype, fmt in _MOE_FORMATS.items() if np.any(moe["moe_dtype"] == dtype)}
    if "nvfp4" in experts:
        experts.pop("w4a16_mxfp4", None)
    found: dict[str, MoeConstants] = {}
    for dtype, fmt in experts.items():
        spread = float(np.mean([c.spread for c in found.values()])) if fmt == "fp4" and found else None
        found[fmt] = keep(_fit_moe(hardware, moe, dtype, spread))
    return found


def _range(gemm: Columns, attention: Columns, mla: Columns, nccl: Columns) -> FitRange:
    """Ends of the rows that the fits used."""
    # Batches of one table alone reach its longest contexts, so that the shorter of the two ends counts.
    tokens = min(int(np.max(t["step"])) + 1 for t in (attention, mla))
    return FitRange(
        max_rows=int(np.max(gemm["m"])), min_columns=_MIN_COLUMNS, min_inner=_MIN_INNER, max_cached_tokens=tokens,
        max_sequences=min(_MAX_SEQUENCES, *(int(np.max(t["batch_size"])) for t in (attention, mla))),
        min_expert_columns=_MIN_EXPERT_COLUMNS, max_ranks=int(np.max(nccl["num_gpus"])),
    )  # fmt: skip
