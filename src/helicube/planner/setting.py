"""Setting: everything that a search holds fixed: model, accelerator, engine and number formats."""

from __future__ import annotations

from dataclasses import dataclass

from helicube.errors import InputError
from helicube.planner.constants import AttentionConstants, EngineConstants, GpuConstants, Kind
from helicube.planner.shipped import engine_constants, gpu_constants
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import ModelSpec
from helicube.specs.precision import get_precision

__all__ = ["Formats", "Setting", "checkpoint_formats", "make_setting", "uniform_formats"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Formats:
    """Number format of each part: bf16, fp8, fp8_block, fp4 or int4; fp8_block has a scale for each 128 × 128 block."""

    attention: str
    # Projections of attention.
    ffn: str
    # Dense FFN and shared experts.
    experts: str
    # Routed experts.
    cache: str
    # KV cache: bf16, fp8 or fp4.
    head: str = "bf16"
    # Output embedding.

    @property
    def cache_element_bytes(self) -> float:
        """Bytes of one cached value."""
        return get_precision(self.cache).element_bytes

    @property
    def cache_stored_bytes(self) -> float:
        """Bytes of one cached value with its share of the scales: fp4 has one for 16 values, fp8 one for a tensor."""
        return get_precision(self.cache).stored_bytes if self.cache == "fp4" else self.cache_element_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What a search holds fixed."""

    model: ModelSpec
    hardware: HardwareSpec
    gpu: GpuConstants
    # Fitted shares of the accelerator's peaks.
    engine: EngineConstants
    # Overheads of the engine.
    formats: Formats
    kind: Kind
    # "fitted", or "bound" when the accelerator has no calibration.
    remarks: tuple[str, ...] = ()
    # What a reader must know about where the constants come from.
    graphs: bool = True
    # Decode steps are captured as graphs.

    @property
    def attention_constants(self) -> AttentionConstants:
        """Constants of this model's attention; an fp4 cache takes those of fp8 at half the bytes."""
        kind = "mla" if self.model.attention.is_mla else "gqa"
        return self.gpu.attention[f"{kind}_{'bf16' if self.formats.cache == 'bf16' else 'fp8'}"]


def _kernel_format(model: ModelSpec, precision: str) -> str:
    # Published fp8 checkpoints of MoE models have block scales, those of dense models one scale for each matrix.
    return "fp8_block" if precision == "fp8" and model.ffn.is_moe else precision


def uniform_formats(model: ModelSpec, weights: str, cache: str) -> Formats:
    """All linear layers in one precision; the output embedding stays in bf16.

    Args:
        model: decides whether fp8 has block scales.
        weights: precision of every linear layer.
        cache: precision of the cache.
    """
    fmt = _kernel_format(model, get_precision(weights).name)
    return Formats(attention=fmt, ffn=fmt, experts=_expert_format(fmt), cache=get_precision(cache).name)


def _expert_format(fmt: str) -> str:
    return {"fp8_block": "fp8", "int4": "fp4"}.get(fmt, fmt)


def checkpoint_formats(model: ModelSpec, precision: str, cache: str) -> Formats:
    """Formats of the checkpoints published at a precision: 4-bit ones of MoE models quantise the experts alone.

    Args:
        model: the model.
        precision: what the checkpoint is called: bf16, fp8, fp4 or int4.
        cache: precision of the cache.
    """
    name = get_precision(precision).name
    if model.ffn.is_moe and name in {"fp4", "int4"}:
        return Formats(attention="bf16", ffn="bf16", experts="fp4", cache=get_precision(cache).name)
    return uniform_formats(model, name, cache)


def _check_formats(hardware: HardwareSpec, formats: Formats) -> None:
    # 4-bit weights run on bf16 arithmetic anywhere; fp8 kernels and fp8 caches need fp8 arithmetic.
    for part, fmt in (("attention weights", formats.attention), ("FFN weights", formats.ffn),
                      ("expert weights", formats.experts), ("the cache", formats.cache)):  # fmt: skip
        needed = {"fp8": "fp8", "fp8_block": "fp8", "fp4": "fp4"}.get(fmt)
        if needed == "fp4" and part == "expert weights":
            continue
        if needed and not hardware.flops(needed):
            legal = ", ".join(p for p in hardware.precisions if p != "int8")
            experts = (
                "; --weights fp4 keeps fp4 in the experts of a MoE model alone"
                if needed == "fp4" and part != "the cache"
                else ""
            )
            raise InputError(f"{hardware.name} has no {needed} arithmetic for {part}; choose {legal}{experts}")


def _check_constants(gpu: GpuConstants, formats: Formats) -> None:
    # The tables hold no int8 and no dense int4 kernels; a GPU may also borrow constants that lack one of its formats.
    for part, fmt, known in (("attention weights", formats.attention, gpu.gemm), ("FFN weights", formats.ffn, gpu.gemm),
                             ("the output embedding", formats.head, gpu.gemm),
                             ("expert weights", formats.experts, gpu.moe),
                             ("the cache", formats.cache, ("bf16", "fp8", "fp4"))):  # fmt: skip
        if fmt not in known:
            legal = ", ".join(name for name in known if name != "fp8_block")
            raise InputError(f"no kernel constants of {gpu.name} cover {fmt} for {part}; choose {legal}")


def make_setting(
    model: ModelSpec, hardware: HardwareSpec, *, engine: str, formats: Formats, graphs: bool = True
) -> Setting:
    """Resolve the constants for a model on an accelerator.

    Raises:
        InputError: the engine is unknown, the accelerator lacks a format, or no constants cover it.
    """
    _check_formats(hardware, formats)
    gpu, kind, remark = gpu_constants(hardware)
    _check_constants(gpu, formats)
    remarks = [remark] if remark else []
    chosen = engine_constants("bound" if kind == "bound" else engine)
    if formats.cache == "fp4":
        remarks.append("no kernel table holds an fp4 cache: its attention is that of fp8 at half the bytes")
    if "fp4" in {formats.attention, formats.ffn} and "fp8" in gpu.gemm:
        walk = {fmt: gpu.gemm[fmt].loop_s * gpu.gemm[fmt].serving_scale for fmt in ("fp4", "fp8")}
        if walk["fp4"] > 1.2 * walk["fp8"] > 0:
            remarks.append(
                f"fp4 GEMMs walk along their inner dimension at {walk['fp4'] / walk['fp8']:.1f} × the time of fp8 ones "
                "in the tables, so that narrow shards can be slower in fp4 although they read half the bytes"
            )
    if model.num_linear_layers:
        remarks.append("linear-attention layers are not in the kernel tables: their time is the read of their state")
    if model.attention.index_heads:
        remarks.append("the sparse-attention indexer is not in the kernel tables: its time is the read of its keys")
    return Setting(model=model, hardware=hardware, gpu=gpu, engine=chosen, formats=formats, kind=kind,
                   remarks=tuple(remarks), graphs=graphs)  # fmt: skip
