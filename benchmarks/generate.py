"""Prompt to GLB with the bundled model: warm, and as the first call of the command.

    python benchmarks/generate.py [--repeats 9] [--cells 128] [--output benchmarks/results/generate.json]

Machines are shared and noisy, so a matrix product and `import torch` are timed in the same run, and the results are
quoted as ratios too.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import helicube
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.text_to_shape import TextToShape

PROMPTS = ("a red wooden chair", "a blue car", "a tall green lamp", "a small house with a brown roof", "a wooden table")


def probe_gflops() -> float:
    """float32 matrix product, GFLOP/s."""
    a = torch.randn(1024, 1024)
    a @ a
    started = time.perf_counter()
    for _ in range(10):
        a @ a
    return 10 * 2 * 1024**3 / (time.perf_counter() - started) / 1e9


def warm(pipeline: TextToShape, repeats: int, cells: int) -> dict[str, float]:
    """Median seconds of each stage and of the whole, over prompts and repeats."""
    stages: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(repeats + 1):
            for prompt in PROMPTS:
                started = time.perf_counter()
                made = pipeline.generate_many([prompt], [pipeline.model.sampling], options=MeshOptions(cells=cells))[0]
                built = time.perf_counter()
                made.mesh.export(Path(folder) / "mesh.glb")
                ended = time.perf_counter()
                if repeat:  # the first round warms up
                    t = made.times
                    row = {"text_s": t.text_s, "tokens_s": made.decoded.own_tokens_s, "choice_s": t.choice_s,
                           "surface_s": t.surface_s, "clean_up_s": t.clean_up_s, "export_s": ended - built,
                           "tpot_s": made.decoded.tpot_s, "total_s": ended - started}  # fmt: skip
                    for key, value in row.items():
                        stages.setdefault(key, []).append(value)
    return {key: statistics.median(values) for key, values in stages.items()}


def first_call(repeats: int) -> dict[str, float]:
    """Median seconds of the whole command, and of importing torch alone, taken in turns."""
    with tempfile.TemporaryDirectory() as folder:
        generate = [sys.executable, "-m", "helicube", "generate", PROMPTS[0], "-o", str(Path(folder) / "chair.glb")]
        commands = {"import_torch_s": [sys.executable, "-c", "import torch"], "command_s": generate}
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {**medians, "limit_s": 3 * medians["import_torch_s"] + 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    before = probe_gflops()
    figures = {
        "warm": warm(helicube.load(), options.repeats, options.cells),
        "first_call": first_call(max(3, options.repeats // 3)),
    }
    machine = {"processor": platform.processor() or platform.machine(), "threads": torch.get_num_threads(),
               "torch": torch.__version__, "helicube": helicube.__version__,
               "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
               "matmul_gflops": [round(before), round(probe_gflops())]}  # fmt: skip
    for group, rows in figures.items():
        for name, value in rows.items():
            print(f"{group:10s} {name:16s} {value * 1e3:9.1f} ms")
    print(json.dumps(machine))
    if options.output:
        options.output.write_text(json.dumps({"machine": machine, **figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
