"""Speed of the planner: points per second of the search, and a cold start of the command.

    python benchmarks/planner.py

Points are layouts × batches of DeepSeek-R1 on up to 72 GB200 at 131,072 tokens, repeated until there are a million.
On a busy machine the figure by CPU time is the one to read.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime

import numpy as np

from helicube.planner.layouts import enumerate_layouts
from helicube.planner.search import default_batches, evaluate
from helicube.planner.setting import make_setting, uniform_formats
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

COMMAND = [
    "-m",
    "helicube",
    "plan",
    "--model",
    "deepseek-r1",
    "--gpu",
    "gb200",
    "--max-gpus",
    "64",
    "--context",
    "1000000",
]


def points_per_second() -> dict[str, float]:
    model = get_model("deepseek-r1")
    s = make_setting(model, load_hardware("gb200"), engine="trtllm", formats=uniform_formats(model, "fp4", "fp8"))
    layouts, batches = enumerate_layouts(model, 72), default_batches()
    index = np.repeat(np.arange(len(layouts)), len(batches))
    repeats = -(-1_000_000 // len(index))
    index, batch = np.tile(index, repeats), np.tile(np.tile(batches, len(layouts)), repeats)
    wall, cpu = time.perf_counter(), time.process_time()
    evaluate(s, layouts.take(index), batch, 131072.0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"points": len(batch), "wall_s": wall, "cpu_s": cpu, "points_per_s": len(batch) / wall,
            "points_per_cpu_s": len(batch) / cpu}  # fmt: skip


def cold_start() -> dict[str, float]:
    best: dict[str, float] = {"wall_s": float("inf"), "cpu_s": float("inf")}
    for _ in range(3):
        before, start = os.times(), time.perf_counter()
        subprocess.run([sys.executable, *COMMAND], check=True, capture_output=True)
        after, wall = os.times(), time.perf_counter() - start
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        best = {"wall_s": min(best["wall_s"], wall), "cpu_s": min(best["cpu_s"], cpu)}
    return best


def main() -> None:
    result = {
        "date": datetime.now(UTC).date().isoformat(), "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(), "load_average": os.getloadavg()[0], "python": platform.python_version(),
        "numpy": np.__version__, "search": points_per_second(), "cold_start": cold_start(),
    }  # fmt: skip
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
