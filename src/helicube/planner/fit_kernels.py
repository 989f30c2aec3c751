"""Fit the constants of a GPU to its kernel tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array
from helicube.planner.constants import (
    AttentionConstants,
    CollectiveConstants,
    GemmConstants,
    GpuConstants,
    MoeConstants,
    OneShotConstants,
)
from helicube.planner.cost_attention import attention_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.cost_moe import moe_time
from helicube.planner.kernel_tables import Columns, read_table, unique_rows
from helicube.specs.attention import AttentionSpec
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import FfnSpec

__all__ = ["GENERATIONS", "KernelFit", "fit_gpu"]

# A spec, and the rows of a table that it describes.
_Calls = list[tuple[AttentionSpec, NDArray[np.bool_]]]

# Kernels of one generation are the same code.
GENERATIONS = {"a100": "ampere", "h100": "hopper", "h200": "hopper", "b200": "blackwell", "gb200": "blackwell"}

_GEMM_FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "fp4"}
_CACHE_FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}
# Hopper has no fp4 arithmetic; its 4-bit experts multiply in bf16.
_MOE_FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4", "w4a16_mxfp4": "fp4"}


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelFit:
    """One fitted operation: measured and predicted seconds of its rows."""

    name: str
    # Such as "gemm fp8".
    measured_s: Array
    # (rows,)
    predicted_s: Array
    # (rows,)

    @property
    def errors(self) -> Array:
        """(rows,) predicted over measured, minus 1."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def median_error(self) -> float:
        """Median absolute relative error."""
        return float(np.median(np.abs(self.errors)))


def _fit(
    predict: Callable[[Array], Array], start: list[float], lower: list[float], upper: list[float], measured: Array
) -> Array:
    """Minimise the robust log error over parameters in log space."""
    from scipy.optimize import least_squares

    low, high = np.log(lower), np.log(upper)
    found = least_squares(
        lambda p: np.log(predict(np.exp(p))) - np.log(measured), np.clip(np.log(start), low + 1e-6, high - 1e-6),
        bounds=(low, high), loss="soft_l1", f_scale=0.1,
    )  # fmt: skip
    solution: Any = found.x
    return np.array([float(np.exp(value)) for value in solution])


def _fit_gemm(hardware: HardwareSpec, columns: Columns, dtype: str) -> tuple[GemmConstants, KernelFit]:
    fmt = _GEMM_FORMATS[dtype]
    # Shapes of real layers: below 512 columns or 256 rows launches are all there is; above 51,200 there are no layers.
    n, k = columns["n"], columns["k"]
    mask = (columns["gemm_dtype"] == dtype) & (n >= 512) & (k >= 256) & (n < 60000) & (k < 60000)
    rows = unique_rows(columns, ("m", "n", "k"), mask)

    def constants(p: Array) -> GemmConstants:
        return GemmConstants(launch_s=p[0], hbm_efficiency=p[1], math_efficiency=p[2], loop_s=p[3])

    def predict(p: Array) -> Array:
        return float(p[0]) + gemm_time(hardware, constants(p), fmt, m=rows["m"], n=rows["n"], k=rows["k"])

    best = _fit(
        predict, [4e-6, 0.8, 0.7, 0.7e-9], [0.5e-6, 0.2, 0.05, 0.01e-9], [40e-6, 1, 1, 10e-9], rows["latency_s"]
    )
    return constants(best), KernelFit(name=f"gemm {fmt}", measured_s=rows["latency_s"], predicted_s=predict(best))


def _fit_attention(hardware: HardwareSpec, name: str, cache: str, rows: dict[str, Array],
                   calls: _Calls) -> tuple[AttentionConstants, KernelFit]:  # fmt: skip
    element = 2.0 if cache == "bf16" else 1.0

    def constants(p: Array) -> AttentionConstants:
        return AttentionConstants(
            launch_s=p[0], hbm_efficiency=p[1], math_efficiency=p[2], split_s=p[3], query_passes=p[4]
        )

    def predict(p: Array) -> Array:
        total = np.empty_like(rows["latency_s"])
        for spec, chosen in calls:
            total[chosen] = p[0] + attention_time(
                hardware, constants(p), spec, batch=rows["batch_size"][chosen], heads=rows["num_heads"][chosen],
                kv_heads=rows["kv_heads"][chosen], tokens=rows["step"][chosen] + 1.0, cache_bytes=element,
            )  # fmt: skip
        return total

    lower, upper = [1e-6, 0.2, 0.01, 1e-10, 0.1], [40e-6, 1, 1, 1e-6, 100]
    best = _fit(predict, [8e-6, 0.8, 0.1, 80e-9, 10], lower, upper, rows["latency_s"])
    fit = KernelFit(name=f"attention {name} {cache}", measured_s=rows["latency_s"], predicted_s=predict(best))
    return constants(best), fit


def _gqa_rows(columns: Columns, dtype: str) -> tuple[dict[str, Array], _Calls]:
    # More than 32 query heads per KV head run on a fallback kernel, equal head counts on another one: no model here is
    # served by either. Contexts below 16 tokens and batches above 512 measure launches.
    group = columns["num_heads"] // columns["num_key_value_heads"]
    mask = (columns["kv_cache_dtype"] == dtype) & (columns["window_size"] == 0) & (group > 1) & (group <= 32)
    mask &= (columns["step"] >= 15) & (columns["batch_size"] <= 512) & np.isin(columns["head_dim"], (64, 128))
    keys = ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "step")
    rows = unique_rows(columns, keys, mask)
    rows["kv_heads"] = rows["num_key_value_heads"]
    calls: _Calls = []
    for size in (64, 128):
        spec = AttentionSpec(num_query_heads=32, num_kv_heads=8, qk_head_size=size, v_head_size=size)
        calls.append((spec, rows["head_dim"] == size))
    return rows, calls


def _mla_rows(columns: Columns, dtype: str) -> tuple[dict[str, Array], _Calls]:
    mask = (columns["kv_cache_dtype"] == dtype) & (columns["step"] >= 15) & (columns["batch_size"] <= 512)
    rows = unique_rows(columns, ("batch_size", "num_heads", "step"), mask)
    rows["kv_heads"] = np.ones_like(rows["step"])
    spec = AttentionSpec(num_query_heads=128, num_kv_heads=1, qk_head_size=192, v_head_size=128, kv_lora_rank=512,
                         q_lora_rank=1536, rope_head_size=64)  # fmt: skip
    return rows, [(spec, np.ones(len(rows["step"]), dtype=np.bool_))]


def _fit_moe(hardware: HardwareSpec, columns: Columns, dtype: str) -> tuple[MoeConstants, KernelFit]:
    fmt = _MOE_FORMATS[dtype]
    # Skewed routing, gated experts, shards of 64 columns at least.
    mask = (columns["moe_dtype"] == dtype) & (columns["distribution"] == "power_law_1.01")
    mask &= ~np.char.endswith(columns["kernel_source"].astype(str), "nongated")
    mask &= columns["inter_size"] // columns["moe_tp_size"] >= 64
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

    def constants(p: Array) -> MoeConstants:
        return MoeConstants(launch_s=p[0], hbm_efficiency=p[1], math_efficiency=p[2], spread=p[3], token_passes=p[4])

    def predict(p: Array) -> Array:
        total = np.empty_like(rows["latency_s"])
        for spec, hidden, chosen in calls:
            total[chosen] = p[0] + moe_time(
                hardware, constants(p), spec, fmt, hidden=hidden, tokens=rows["num_tokens"][chosen],
                tpf=rows["moe_tp_size"][chosen], ep=rows["moe_ep_size"][chosen],
            )  # fmt: skip
        return total

    # A spread below a fifth cannot be told apart from a lower bandwidth.
    lower, upper = [2e-6, 0.1, 0.02, 0.2, 0.1], [200e-6, 1, 1, 10, 60]
    best = _fit(predict, [25e-6, 0.6, 0.4, 0.5, 5], lower, upper, rows["latency_s"])
    return constants(best), KernelFit(name=f"moe {fmt}", measured_s=rows["latency_s"], predicted_s=predict(best))


def _received(op: str, ranks: Array, buffer: Array) -> Array:
    return (2.0 if op == "all_reduce" else 1.0) * (ranks - 1) / ranks * buffer


def _fit_collective(hardware: HardwareSpec, columns: Columns, op: str) -> tuple[CollectiveConstants, KernelFit]:
    # message_size counts elements of the whole receive buffer: n 16-bit elements take as long as 2n 8-bit ones, and a
    # per-rank share would need 2.7 TB/s of an H100's 450 GB/s links at 8 ranks (docs/planner.md).
    chosen = columns["op_name"] == op
    ranks, measured = columns["num_gpus"][chosen].astype(np.float64), columns["latency"][chosen] * 1e-3
    element = np.where(columns["nccl_dtype"][chosen] == "half", 2.0, 1.0)
    received = _received(op, ranks, columns["message_size"][chosen] * element)

    def predict(p: Array) -> Array:
        transfer = received / (hardware.link_bytes_per_s * p[2])
        return np.asarray(p[0] + p[1] * np.log2(ranks) + transfer + p[3] * np.sqrt(received))

    lower, upper = [0.5e-6, 1e-9, 0.2, 1e-11], [40e-6, 20e-6, 1, 1e-7]
    best = _fit(predict, [4e-6, 3e-6, 0.8, 5e-9], lower, upper, measured)
    constants = CollectiveConstants(base_s=best[0], step_s=best[1], efficiency=best[2], root_s=best[3])
    return constants, KernelFit(name=f"nccl {op}", measured_s=measured, predicted_s=predict(best))


def _fit_one_shot(hardware: HardwareSpec, columns: Columns) -> tuple[OneShotConstants, KernelFit]:
    # As above, elements. Decode sends at most a few MB; larger buffers leave the fused kernels.
    chosen = columns["message_size"] <= 2**25
    ranks, measured = columns["num_gpus"][chosen].astype(np.float64), columns["latency"][chosen] * 1e-3
    buffer = columns["message_size"][chosen] * 2.0
    link, doublings = hardware.link_bytes_per_s, np.log2(ranks)

    def predict(p: Array) -> Array:
        one = p[0] + p[1] * doublings + (ranks - 1) * buffer / (link * p[2])
        two = p[3] + p[4] * doublings + _received("all_reduce", ranks, buffer) / (link * p[5])
        return np.asarray(np.minimum(one, two))

    lower, upper = [0.5e-6, 1e-9, 0.2, 0.5e-6, 1e-9, 0.2], [20e-6, 5e-6, 1, 60e-6, 10e-6, 1]
    best = _fit(predict, [3e-6, 0.3e-6, 0.6, 12e-6, 4e-6, 0.6], lower, upper, measured)
    keys = ("base_s", "step_s", "efficiency", "two_base_s", "two_step_s", "two_efficiency")
    constants = OneShotConstants(**dict(zip(keys, map(float, best), strict=True)))
    return constants, KernelFit(name="one-shot all-reduce", measured_s=measured, predicted_s=predict(best))


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
    fits: list[KernelFit] = []

    def keep(result: tuple[Any, KernelFit]) -> Any:
        fits.append(result[1])
        return result[0]

    gemm, moe = read_table(folder / "gemm.parquet"), read_table(folder / "moe.parquet")
    attention, mla = read_table(folder / "decode_attention.parquet"), read_table(folder / "decode_mla.parquet")
    nccl = read_table(folder / "nccl.parquet")
    formats = {dtype: fmt for dtype, fmt in _GEMM_FORMATS.items() if np.any(gemm["gemm_dtype"] == dtype)}
    experts = {dtype: fmt for dtype, fmt in _MOE_FORMATS.items() if np.any(moe["moe_dtype"] == dtype)}
    if "nvfp4" in experts:
        experts.pop("w4a16_mxfp4", None)
    calls = {}
    for dtype, cache in _CACHE_FORMATS.items():
        calls[f"gqa_{cache}"] = keep(_fit_attention(hardware, "gqa", cache, *_gqa_rows(attention, dtype)))
        calls[f"mla_{cache}"] = keep(_fit_attention(hardware, "mla", cache, *_mla_rows(mla, dtype)))
    constants = GpuConstants(
        name=hardware.name,
        source=_source(attention, nccl),
        gemm={fmt: keep(_fit_gemm(hardware, gemm, dtype)) for dtype, fmt in formats.items()},
        attention=calls,
        moe={fmt: keep(_fit_moe(hardware, moe, dtype)) for dtype, fmt in experts.items()},
        collectives={op: keep(_fit_collective(hardware, nccl, op)) for op in np.unique(nccl["op_name"])},
        one_shot=keep(_fit_one_shot(hardware, read_table(folder / "custom_allreduce.parquet"))),
        generation=GENERATIONS[hardware.name],
        max_ranks=int(np.max(nccl["num_gpus"])),
    )
    return constants, fits
