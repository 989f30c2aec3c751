"""KV-parallel measurements that others published, and what this planner says to them.

The publications give hardware and load only in part. What is assumed is named, and swept where the sign may hang on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from helicube.planner.cost_attention import attention_time
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow
from helicube.planner.report import Table
from helicube.planner.serving import cache_capacity, predict_serving
from helicube.planner.setting import Setting, make_setting
from helicube.planner.setting import checkpoint_formats as formats_of
from helicube.planner.step import decode_phases, total_time
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

__all__ = ["published_table"]

_Row = tuple[str, str, str, str, str, str]
# (case, assumed, published, planner, planner over published, verdict)
_SWEEP = (16.0, 64.0, 128.0, 256.0)
# Concurrencies where none is published.


def _setting(gpu: str, engine: str, precision: str, *, cache: str, calibrated_as: str = "") -> Setting:
    """DeepSeek-R1 on a GPU, with efficiencies borrowed where the GPU has none."""
    spec, hardware = get_model("deepseek-r1"), load_hardware(gpu)
    if calibrated_as:
        hardware = replace(hardware, calibrated_as=calibrated_as)
    return make_setting(spec, hardware, engine=engine, formats=formats_of(spec, precision, cache))


def _tp8(dcp: int = 1) -> LayoutArrays:
    family = FAMILIES.index("dcp" if dcp > 1 else "tp")
    return LayoutArrays.stack([LayoutRow(family, kvp=dcp, tpa=8 // dcp, tpf=8)])


def _sign(published: float, planned: float) -> str:
    """Whether two changes, each as a ratio, go the same way."""
    return "right" if (published > 1.0) == (planned > 1.0) else "wrong"


def _within(low: float, value: float | None, high: float) -> str:
    """Whether a planned value lies in a published interval, or how far from it."""
    if value is None:
        return "wrong"
    return "right" if low <= value <= high else "near" if low / 2 <= value <= 2 * high else "wrong"


def _factor(planned: Sequence[float], published: Sequence[float]) -> str:
    found = [a / b for a, b in zip(planned, published, strict=True)]
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return f"{low} ×" if low == high else f"{low} … {high} ×"


def _b200_vllm() -> list[_Row]:
    s = _setting("b200", "vllm", "fp8", cache="fp8")
    published = (1.98, 3.96, 7.85)
    room = [float(cache_capacity(s, _tp8(d), 32768.0)[0]) for d in (1, 2, 4, 8)]
    ratios = [r / room[0] for r in room[1:]]
    near = all(abs(a / b - 1) < 0.05 for a, b in zip(ratios, published, strict=True))
    phases = decode_phases(s, _tp8(8), np.array([32.0]), 32768.0)
    links = float(phases["exchange"][0] + phases["norms"][0]) * 1e3
    case = "8 × B200, vLLM"
    return [
        (
            f"{case}: KV capacity at DCP 2 / 4 / 8",
            "DeepSeek-R1 fp8",
            "1.98 / 3.96 / 7.85 ×",
            " / ".join(f"{r:.2f}" for r in ratios) + " ×",
            _factor(ratios, published),
            "right" if near else "wrong",
        ),
        (
            f"{case}: collectives and element-wise kernels of DCP 8, batch 32, 32 k",
            "DeepSeek-R1 fp8",
            "5.0 ms per step",
            f"{links:.1f} ms",
            _factor([links], [5.0]),
            "no sign",
        ),
    ]


def _serve(s: Setting, dcp: int, concurrency: float, *, prompt: float, output: float) -> tuple[float, float]:
    """(output tokens/s, TPOT in seconds); requests whose cache does not fit wait outside."""
    x = _tp8(dcp)
    v = predict_serving(s, x, concurrency=np.array([concurrency]), prompt=np.array([prompt]), output=np.array([output]))
    held = min(concurrency, float(np.floor(v.capacity[0])))
    # Little's law: each request inside stays for its own prefill and its decode steps.
    return held * output / float(output * v.tpot_s[0] + v.prefill_s[0]), float(v.tpot_s[0])


def _gain(s: Setting, context: float, concurrency: float) -> float:
    """Throughput at DCP 8 over that at DCP 1, prompts of `context` and 1,024 tokens out."""
    sharded, plain = (_serve(s, d, concurrency, prompt=context, output=1024.0)[0] for d in (8, 1))
    return sharded / plain


def _sglang_mla() -> list[_Row]:
    s = _setting("h200", "sglang", "fp8", cache="bf16")
    case, assumed = "SGLang, MLA, DCP 8 against 1", "8 × H200, DeepSeek-R1 fp8, 1 k out"
    rows: list[_Row] = []
    for kilo, measured in ((32, 1.57), (64, 1.57), (128, 1.68), (256, 1.52)):
        gain = _gain(s, kilo * 1024.0, 64.0)
        rows.append(
            (
                f"{case}: throughput at concurrency 64, {kilo} k",
                assumed,
                f"{measured - 1:+.0%}",
                f"{gain - 1:+.0%}",
                _factor([gain], [measured]),
                _sign(measured, gain),
            )
        )
    for kilo, low, high in ((32, 8, 16), (64, 4, 8), (128, 2, 4), (256, 0, 1)):
        found = next((c for c in (1, 2, 4, 8, 16, 32, 64) if _gain(s, kilo * 1024.0, float(c)) > 1.0), None)
        rows.append(
            (
                f"{case}: pays from concurrency, {kilo} k",
                assumed,
                f"{low}–{high}" if low else f"below {high}",
                "never" if found is None else str(found),
                "",
                _within(low, found, high),
            )
        )
    return rows


def _amd() -> list[_Row]:
    """No concurrency is published, and the sign hangs on it: how many of a sweep agree."""
    s = _setting("mi300x", "vllm", "fp8", cache="bf16", calibrated_as="h200")
    rows: list[_Row] = []
    for prompt, output, before, after in ((1, 1, 59, 76), (8, 1, 167, 142), (8, 8, 139, 93)):
        published, planned = after / before, []
        for concurrency in _SWEEP:
            load = {"prompt": prompt * 1024.0, "output": output * 1024.0}
            plain, sharded = (_serve(s, d, concurrency, **load)[1] for d in (1, 8))
            planned.append(sharded / plain)
        right = sum(_sign(published, change) == "right" for change in planned)
        rows.append(
            (
                f"8 AMD GPUs, TP8 → DCP 8: {prompt} k in, {output} k out",
                "MI300X with H200's efficiencies, DeepSeek-R1 fp8, concurrency 16 / 64 / 128 / 256",
                f"{before} → {after} ms ({published - 1:+.0%})",
                " / ".join(f"{change - 1:+.0%}" for change in planned),
                _factor(planned, [published] * len(planned)),
                f"{right} of {len(planned)}",
            )
        )
    return rows


def _pcie() -> list[_Row]:
    s = _setting("rtx-pro-6000", "vllm", "fp4", cache="fp8", calibrated_as="b200")
    one, published = np.array([1.0]), (39.6, 33.2, 34.0, 27.0)
    speeds = [1.0 / float(total_time(decode_phases(s, _tp8(d), one, 8192.0))[0]) for d in (1, 2, 4, 8)]
    return [
        (
            "8 PCIe cards, one user, DCP 1 / 2 / 4 / 8",
            "RTX PRO 6000 with B200's efficiencies, DeepSeek-R1 fp4, 8 k",
            "39.6 / 33.2 / 34.0 / 27.0 tokens/s",
            " / ".join(f"{v:.1f}" for v in speeds) + " tokens/s",
            _factor([speeds[3] / speeds[0]], [published[3] / published[0]]) + " (of the change)",
            _sign(published[3] / published[0], speeds[3] / speeds[0]),
        )
    ]


def _gb200() -> list[_Row]:
    s = _setting("gb200", "trtllm", "fp8", cache="fp8")
    c, one = s.gpu.collectives["alltoall"], s.gpu.one_shot
    pair, fused = 2e6 * (c.base_s + 2 * c.step_s), 1e6 * (one.base_s + 2 * one.step_s)
    a, k = s.model.attention, s.attention_constants

    def call(heads: float) -> float:
        work = attention_time(s.hardware, k, a, batch=1.0, heads=heads, kv_heads=1.0, tokens=131072.0, cache_bytes=1.0)
        return (k.launch_s + float(work)) * 1e6

    wide, narrow = call(128.0), call(16.0)
    case, assumed = "4 × GB200, small messages", "kernels alone, without what an engine adds"
    ratio, published = fused / pair, 34.0 / 158.0
    sign = _sign(published, ratio)
    heads = "right" if abs(narrow / wide - 40.5 / 39.8) < 0.15 else "wrong"
    rows = [
        ("two NCCL all-to-alls", "140 to 176 µs", f"{pair:.0f} µs", _factor([pair], [158.0]), "no sign"),
        ("one fused all-to-all", "33 to 35 µs", f"{fused:.0f} µs", _factor([fused], [34.0]), "no sign"),
        ("fused over the NCCL pair", "0.21 ×", f"{ratio:.2f} ×", _factor([ratio], [published]), sign),
    ]
    kernel = ("39.8 / 40.5 µs", f"{wide:.1f} / {narrow:.1f} µs", _factor([wide, narrow], [39.8, 40.5]), heads)
    return [
        *((f"{case}: {name}", assumed, paper, ours, error, told) for name, paper, ours, error, told in rows),
        ("GB200, MLA decode kernel, batch 1, 128 k: 128 / 16 heads", "", *kernel),
    ]


def published_table() -> Table:
    """All cases, with the size beside each sign."""
    rows = [*_b200_vllm(), *_sglang_mla(), *_amd(), *_pcie(), *_gb200()]
    header = ("case", "assumed", "published measurement", "this planner (fitted)", "planner / published", "sign")
    return Table(title="Published KV-parallel measurements", header=header, rows=tuple(rows))
