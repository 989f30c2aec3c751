"""Everything that is said about speed on a CPU, in one command and within ten minutes on two cores.

    python benchmarks/cpu.py [--only ablation,floor,batch,objects,whole] [--quick] [--output benchmarks/results]

ablation: every speed feature, for the default model and for cube-v0.5; floor: time per token of cube-v0.5 (one prompt
with guidance, 600 keys) over the time of reading its bytes, in bfloat16, int8 and int4; batch: eight prompts over one;
objects: 64 prompts of the default model at once over one at a time; whole: an object of cube-v0.5 at 2⁸ cells. The
read bandwidth is probed beside each measurement. cube-v0.5 always has random weights.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from cpu_objects import objects_per_minute, whole_object
from rich.console import Console

from helicube.engine.metrics import BandwidthProbe, probe_bandwidth
from helicube.engine.options import EngineOptions
from helicube.kernels.cpu.library import describe
from helicube.pipelines.ablation import Variant, ablate, measure_row
from helicube.pipelines.ablation_report import as_data, chart, markdown, table
from helicube.pipelines.ablation_subject import load_subject
from helicube.pipelines.measured import machine, write_measured

PARTS = ("objects", "floor", "batch", "whole", "ablation")
console = Console(width=max(120, Console().width))


def native(form: str) -> Variant:
    return Variant(name=form, options=EngineOptions(weights=form))


def floor(steps: int, repeats: int) -> dict[str, Any]:
    """TPOT over the floor, best of the repeats and all of them."""
    found: dict[str, Any] = {}
    cube, probe = load_subject("cube-v0.5"), BandwidthProbe()
    for form in ("bfloat16", "int8", "int4"):
        rows = [measure_row(cube, native(form), 1, steps, probe) for _ in range(repeats)]
        best = min(rows, key=lambda row: row.floor_ratio)
        found[form] = {
            "tpot_ms": 1e3 * best.tpot_s,
            "floor_ratio": best.floor_ratio,
            "all_floor_ratios": [row.floor_ratio for row in rows],
            "gigabytes": best.num_bytes / 1e9,
            "bandwidth_gb_s": best.bandwidth_bytes_per_s / 1e9,
            # A token of the published code on another two-core machine: float32 weights, autocast to bfloat16.
            "speedup_over_265_ms": 0.265 / best.tpot_s,
        }
    return found


def batch(steps: int, repeats: int) -> dict[str, Any]:
    """Time per step of eight prompts over that of one, in int8, in turns."""
    cube, probe, ratios, times = load_subject("cube-v0.5"), BandwidthProbe(), [], []
    for _ in range(repeats):
        one, eight = (measure_row(cube, native("int8"), n, steps, probe).tpot_s for n in (1, 8))
        ratios.append(eight / one)
        times.append((1e3 * one, 1e3 * eight))
    return {"ratio": statistics.median(ratios), "ratios": ratios, "ms_of_one_and_eight": times}


def ablation(output: Path, steps: int, model: str, quick: bool) -> dict[str, Any]:
    found = {}
    names = ("default",) if quick else ("default", "cube-v0.5")
    for name in names:
        subject = load_subject(model if name == "default" else name)
        rows = ablate(subject, batches=(1, 4, 16), num_steps=steps if name == "default" else steps // 2)
        console.print(table(rows))
        found[name] = as_data(rows)
        write_measured(found[name], output / f"ablation-{name}.json")
        (output / f"ablation-{name}.md").write_text(markdown(rows), encoding="utf-8")
        chart(rows, output / f"ablation-{name}.png")
    return found


def probes() -> dict[str, float]:
    """Bandwidth and matmul speed now."""
    found = {"read_gb_s": probe_bandwidth() / 1e9}
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.randn(1024, 1024).to(dtype)
        best = min(_seconds(lambda a=a: a @ a) for _ in range(5))  # type: ignore[misc]
        found[f"{str(dtype).removeprefix('torch.')}_gflops"] = 2 * 1024**3 / best / 1e9
    return found


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--model", default="default", help="or the folder of a model like it")
    parser.add_argument("--quick", action="store_true", help="few steps, and no ablation of cube-v0.5: does it run?")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    steps, repeats = (16, 1) if options.quick else (64, 3)
    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "objects": lambda: objects_per_minute(load_subject(options.model), repeats),
        "floor": lambda: floor(steps, repeats),
        "batch": lambda: batch(24, repeats),
        "whole": lambda: whole_object("int8"),
        "ablation": lambda: ablation(options.output, steps, options.model, options.quick),
    }
    content: dict[str, Any] = {"kernels": describe().split(",")[0], "threads": torch.get_num_threads()}
    content["command"] = " ".join(["python", *sys.argv])
    for part in (p for p in PARTS if p in parts):
        started = time.perf_counter()
        content[part] = {"before": probes(), **runs[part]()}
        content[part]["seconds"] = time.perf_counter() - started
        gc.collect()
        write_measured(content, options.output / "cpu.json")
        shown = {key: value for key, value in content[part].items() if part != "ablation" or key == "seconds"}
        console.print(part, json.dumps(shown, indent=1))
    console.print(machine())


if __name__ == "__main__":
    main()
