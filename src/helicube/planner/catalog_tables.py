"""The known models and accelerators as tables."""

from __future__ import annotations

from helicube.planner.report import Table
from helicube.specs.catalog import list_models
from helicube.specs.hardware import list_hardware

__all__ = ["catalog_tables"]


def catalog_tables() -> list[Table]:
    """Models, then accelerators, each with its source."""
    models = tuple(
        (m.name, f"{m.num_params / 1e9:.2f}", f"{m.num_active_params / 1e9:.2f}",
         f"{m.cache_bytes(1000, 2.0) / 1e6:.1f}", f"{m.max_context:,}", m.native_precision, m.source)
        for m in list_models()
    )  # fmt: skip
    gpus = tuple(
        (h.name, f"{h.hbm_bytes_per_s / 1e12:.2f}", f"{h.hbm_bytes / 1e9:.0f}",
         " / ".join(f"{h.flops(p) / 1e12:.0f}" for p in ("bf16", "fp8", "fp4")), f"{h.link_bytes_per_s / 1e9:.0f}",
         str(h.link_domain), h.calibrated_as or "no: bounds only", h.source)
        for h in list_hardware()
    )  # fmt: skip
    return [
        Table(title="Models", rows=models, header=(
            "name", "G parameters", "G per token", "MB of bf16 cache per 1,000 tokens", "max context", "published in",
            "source",
        )),
        Table(title="Accelerators", rows=gpus, header=(
            "name", "HBM TB/s", "GB", "bf16 / fp8 / fp4 TFLOP/s", "link GB/s", "domain", "calibrated on", "source",
        )),
    ]  # fmt: skip
