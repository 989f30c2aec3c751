"""Number formats of a plan: what was asked for, or those of the published checkpoint."""

from __future__ import annotations

from helicube.planner.setting import Formats, checkpoint_formats, uniform_formats
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import ModelSpec
from helicube.specs.precision import get_precision

__all__ = ["choose_formats"]


def choose_formats(model: ModelSpec, hardware: HardwareSpec, *, precision: str | None, weights: str | None,
                   cache: str | None) -> tuple[Formats, tuple[str, ...]]:  # fmt: skip
    """(formats, what a reader should know about them).

    Args:
        model: its checkpoint decides what is not asked for.
        hardware: a format without arithmetic here gives way to bf16.
        precision: of weights and cache.
        weights: of the weights alone.
        cache: of the cache alone.
    """
    asked, kept = weights or precision, cache or precision
    remarks: list[str] = []
    name = get_precision(asked).name if asked else _native(model, hardware, remarks)
    if kept is None:
        quantised = name != "bf16" and hardware.flops("fp8") > 0
        kept = "fp8" if quantised else "bf16"
        if quantised:
            remarks.append(
                "the cache is taken as fp8, as engines set it beside quantised weights; change it with --cache"
            )
    if asked is None or (precision is None and name in {"fp4", "int4"} and not hardware.flops("fp4")):
        chosen = checkpoint_formats(model, name, kept)
    else:
        chosen = uniform_formats(model, name, kept)
    if name == "int4" and chosen.experts == "fp4":
        remarks.append("int4 experts are timed as fp4 ones: the tables hold no int4 kernels")
    return chosen, tuple(remarks)


def _native(model: ModelSpec, hardware: HardwareSpec, remarks: list[str]) -> str:
    """The checkpoint's format where the hardware has kernels for it, or else bf16."""
    native = model.native_precision
    in_experts = native == "fp4" and model.ffn.is_moe
    if native in {"bf16", "int4", "int8"} or in_experts or hardware.flops(native) > 0:
        return native
    remarks.append(f"{model.name} is published in {native}, which {hardware.name} does not multiply: planned in bf16")
    return "bf16"
