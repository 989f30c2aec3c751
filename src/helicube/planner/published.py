"""KV-parallel measurements that others published, and what this planner says to them.

The publications give hardware and load only in part; what is assumed is named in each row, so that the size is rough
and the direction is what counts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from helicube.planner.cost_attention import attention_time
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow
from helicube.planner.report import Table
from helicube.planner.serving import cache_capacity, predict_serving
from helicube.planner.setting import Setting, checkpoint_formats, make_setting
from helicube.planner.step import decode_phases, total_time
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

__all__ = ["published_table"]

_Row = tuple[str, str, str, str]


def _setting(gpu: str, engine: str, precision: str, *, cache: str, calibrated_as: str = "") -> Setting:
    """DeepSeek-R1 on a GPU, with efficiencies borrowed where the GPU has none."""
    spec, hardware = get_model("deepseek-r1"), load_hardware(gpu)
    if calibrated_as:
        hardware = replace(hardware, calibrated_as=calibrated_as)
    return make_setting(spec, hardware, engine=engine, formats=checkpoint_formats(spec, precision, cache))


def _tp8(dcp: int = 1) -> LayoutArrays:
    family = FAMILIES.index("dcp" if dcp > 1 else "tp")
    return LayoutArrays.stack([LayoutRow(family, 1, 1, dcp, 8 // dcp, 8, 1, False)])


def _verdict(right: bool) -> str:
    return "right" if right else "wrong"


def _b200_vllm() -> list[_Row]:
    s = _setting("b200", "vllm", "fp8", cache="fp8")
    room = [float(cache_capacity(s, _tp8(d), 32768.0)[0]) for d in (1, 2, 4, 8)]
    ratios = " / ".join(f"{r / room[0]:.2f}" for r in room[1:])
    links = float(decode_phases(s, _tp8(8), np.array([32.0]), 32768.0)["exchange"][0]) * 1e3
    case = "8 × B200, vLLM (DeepSeek-R1 fp8 assumed)"
    return [
        (f"{case}: KV capacity at DCP 2 / 4 / 8", "1.98 / 3.96 / 7.85 ×", f"{ratios} ×", _verdict(room[0] < room[3])),
        (f"{case}: collectives and element-wise kernels of DCP 8, batch 32, 32 k", "5.0 ms per step",
         f"{links:.1f} ms, collectives alone", _verdict(links > 0)),
    ]  # fmt: skip


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
    case = "SGLang, MLA, DCP 8 against 1 (8 × H200, DeepSeek-R1 fp8, 1 k out assumed)"
    rows = []
    for kilo, measured in ((32, 57), (64, 57), (128, 68), (256, 52)):
        gain = _gain(s, kilo * 1024.0, 64.0) - 1.0
        label = f"{case}: throughput at concurrency 64, {kilo} k"
        rows.append((label, f"+{measured} %", f"{gain:+.0%}", _verdict(gain > 0)))
    for kilo, low, high in ((32, 8, 16), (64, 4, 8), (128, 2, 4), (256, 0, 1)):
        found = next((c for c in (1, 2, 4, 8, 16, 32, 64) if _gain(s, kilo * 1024.0, float(c)) > 1.0), None)
        near = found is not None and low / 2 <= found <= 2 * high
        label, published = f"{case}: pays from concurrency, {kilo} k", f"{low}–{high}" if low else f"below {high}"
        rows.append((label, published, "never" if found is None else str(found), _verdict(near)))
    return rows


def _amd() -> list[_Row]:
    s = _setting("mi300x", "vllm", "fp8", cache="bf16", calibrated_as="h200")
    case = "8 AMD GPUs, TP8 → DCP 8 (MI300X with H200's efficiencies, DeepSeek-R1 fp8, concurrency 128 assumed)"
    rows = []
    for prompt, output, before, after in ((1, 1, 59, 76), (8, 1, 167, 142), (8, 8, 139, 93)):
        plain, sharded = (_serve(s, d, 128.0, prompt=prompt * 1024.0, output=output * 1024.0)[1] * 1e3 for d in (1, 8))
        rows.append((
            f"{case}: {prompt} k in, {output} k out", f"{before} → {after} ms ({after / before - 1:+.0%})",
            f"{plain:.0f} → {sharded:.0f} ms ({sharded / plain - 1:+.0%})",
            _verdict((after < before) == (sharded < plain)),
        ))  # fmt: skip
    return rows


def _pcie() -> list[_Row]:
    s = _setting("rtx-pro-6000", "vllm", "fp4", cache="fp8", calibrated_as="b200")
    one = np.array([1.0])
    speeds = [1.0 / float(total_time(decode_phases(s, _tp8(d), one, 8192.0))[0]) for d in (1, 2, 4, 8)]
    shown = " / ".join(f"{v:.1f}" for v in speeds)
    case = "8 PCIe cards, one user, DCP 1 / 2 / 4 / 8 (RTX PRO 6000, B200's efficiencies, DeepSeek-R1 fp4, 8 k assumed)"
    return [(case, "39.6 / 33.2 / 34.0 / 27.0 tokens/s", f"{shown} tokens/s", _verdict(speeds[3] < speeds[0]))]


def _gb200() -> list[_Row]:
    s = _setting("gb200", "trtllm", "fp8", cache="fp8")
    c, one = s.gpu.collectives["alltoall"], s.gpu.one_shot
    pair, fused = 2e6 * (c.base_s + 2 * c.step_s), 1e6 * (one.base_s + 2 * one.step_s)
    a, k = s.model.attention, s.attention_constants

    def call(heads: float) -> float:
        work = attention_time(s.hardware, k, a, batch=1.0, heads=heads, kv_heads=1.0, tokens=131072.0, cache_bytes=1.0)
        return (k.launch_s + float(work)) * 1e6

    wide, narrow = call(128.0), call(16.0)
    case = "4 × GB200, small messages"
    return [
        (f"{case}: two NCCL all-to-alls", "140 to 176 µs", f"{pair:.0f} µs (kernels alone)", _verdict(pair > fused)),
        (f"{case}: one fused all-to-all", "33 to 35 µs", f"{fused:.0f} µs (kernel alone)", _verdict(fused < pair)),
        ("GB200, MLA decode kernel, batch 1, 128 k: 128 / 16 heads", "39.8 / 40.5 µs", f"{wide:.1f} / {narrow:.1f} µs",
         _verdict(abs(wide - narrow) < 0.15 * wide)),
    ]  # fmt: skip


def published_table() -> Table:
    """All cases; the last column says whether the direction is right."""
    rows = [*_b200_vllm(), *_sglang_mla(), *_amd(), *_pcie(), *_gb200()]
    header = ("case (what is assumed)", "published measurement", "this planner (fitted)", "direction")
    return Table(title="Published KV-parallel measurements", header=header, rows=tuple(rows))
