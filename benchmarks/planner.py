"""Speed of the planner: points per second of the search, and a cold start of the command.

    python benchmarks/planner.py [-o benchmarks/results/planner.json]

Points are layouts × batches of DeepSeek-R1 on up to 72 GB200 at 131,072 tokens, repeated until there are two millions.
On a busy machine the figure by CPU time is the one to read: two free cores give twice that, less what threads wait for.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from helicube.planner.layouts import enumerate_layouts
from helicube.planner.search import default_batches, evaluate_grid
from helicube.planner.setting import make_setting, uniform_formats
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

QUESTION = ("--model", "deepseek-r1", "--gpu", "gb200", "--max-gpus", "64", "--context", "1000000")


def points_per_second() -> dict[str, float]:
    """One search over and over; layouts in the order in which the search takes them."""
    model = get_model("deepseek-r1")
    s = make_setting(model, load_hardware("gb200"), engine="trtllm", formats=uniform_formats(model, "fp4", "fp8"))
    layouts, batches = enumerate_layouts(model, 72), default_batches()
    layouts = layouts.take(np.lexsort((layouts.overlap, layouts.family)))
    one = len(layouts) * len(batches)
    repeats = -(-2_000_000 // one)
    evaluate_grid(s, layouts, batches, 131072.0)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        evaluate_grid(s, layouts, batches, 131072.0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    points = one * repeats
    return {"points": points, "wall_s": wall, "cpu_s": cpu, "points_per_s": points / wall,
            "points_per_cpu_s": points / cpu}  # fmt: skip


def cold_start() -> dict[str, float]:
    """Least time of three fresh processes that answer the question of a million tokens."""
    best: dict[str, float] = {"wall_s": float("inf"), "cpu_s": float("inf")}
    for _ in range(3):
        before, start = os.times(), time.perf_counter()
        subprocess.run([sys.executable, "-m", "helicube", "plan", *QUESTION], check=True, capture_output=True)
        after, wall = os.times(), time.perf_counter() - start
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        best = {"wall_s": min(best["wall_s"], wall), "cpu_s": min(best["cpu_s"], cpu)}
    return best


def cpu_name() -> str:
    """Model name of the processor."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8")) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="also write the record here")
    output = parser.parse_args().output
    result = {
        "date": datetime.now(UTC).date().isoformat(), "command": "python benchmarks/planner.py", "cpu": cpu_name(),
        "cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 2), "python": platform.python_version(),
        "numpy": np.__version__, "search": points_per_second(), "cold_start": cold_start(),
    }  # fmt: skip
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if output is not None:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
