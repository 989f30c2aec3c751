"""From a field to a GLB: where the milliseconds go.

Fields are analytic, so that their own time is small; it is left out of the totals. The machine's speed is given by a
probe (float32 matrix product), and each time also in units of it, because shared machines flip between speeds; CPU is
the processor time of the same stages, which waiting for a core does not lengthen.

    python benchmarks/geometry.py [--cells 128] [--repeats 5] [--output benchmarks/results/geometry.json]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from helicube.geometry.attributes import with_colors, with_normals
from helicube.geometry.budget import simplify
from helicube.geometry.export import encode
from helicube.geometry.placement import Placement, place
from helicube.geometry.repair import repair
from helicube.geometry.surface import SurfaceOptions, extract_surface

Points = NDArray[np.float32]
STAGES = ("sampling", "marching", "repair", "simplify", "attributes", "export")
PACKAGES = ("numpy", "scipy", "scikit-image", "fast-simplification", "trimesh", "embreex")


def box(points: Points, centre: tuple[float, float, float], half: tuple[float, float, float]) -> Points:
    q = np.abs(points - np.asarray(centre, dtype=np.float32)) - np.asarray(half, dtype=np.float32)
    return np.asarray(-(np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(axis=1), 0)), dtype=np.float32)


def sphere(points: Points) -> Points:
    return np.asarray(0.8 - np.linalg.norm(points, axis=1), dtype=np.float32)


def torus(points: Points) -> Points:
    return np.asarray(0.15 - np.hypot(np.hypot(points[:, 0], points[:, 2]) - 0.6, points[:, 1]), dtype=np.float32)


def chair(points: Points) -> Points:
    field = np.maximum(box(points, (0, 0, 0), (0.5, 0.04, 0.5)), box(points, (0, 0.45, -0.46), (0.5, 0.45, 0.03)))
    for x in (-0.45, 0.45):
        for z in (-0.45, 0.45):
            field = np.maximum(field, box(points, (x, -0.45, z), (0.025, 0.45, 0.025)))
    return field


def wavy(points: Points) -> Points:
    """Saturated and uneven, as a network's logits are."""
    rng = np.random.default_rng(7)
    field = sphere(points) - 0.1
    for _ in range(12):
        field = field + 0.02 * np.sin(points @ (rng.normal(size=3) * rng.uniform(3, 14)).astype(np.float32))
    return np.asarray(8 * np.tanh(12 * field), dtype=np.float32)


FIELDS: dict[str, Callable[[Points], Points]] = {"chair": chair, "torus": torus, "sphere": sphere, "wavy": wavy}


def probe_ms() -> float:
    """Best of five products of 1024 x 1024 float32 matrices."""
    a = np.ones((1024, 1024), dtype=np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def timed(times: dict[str, float], stage: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = work()
    times[stage] = 1000 * (time.perf_counter() - start)
    return result


class CpuMeter:
    """A field that counts the CPU seconds it takes."""

    def __init__(self, query: Callable[[Points], Points]) -> None:
        self.query, self.seconds = query, 0.0

    def __call__(self, points: Points) -> Points:
        start = time.process_time()
        answer = self.query(points)
        self.seconds += time.process_time() - start
        return answer


def run_once(field: Callable[[Points], Points], cells: int, max_triangles: int) -> dict[str, float]:
    cpu, query = time.process_time(), CpuMeter(field)
    surface = extract_surface(query, SurfaceOptions(cells=cells))
    times = {"sampling": 1000 * surface.sampling_s, "marching": 1000 * surface.marching_s}
    clean = timed(times, "repair", lambda: repair(surface.mesh).mesh)
    small = timed(times, "simplify", lambda: simplify(clean, max_triangles))
    # A colour field that costs nothing: what is left is our own part.
    painted = timed(
        times,
        "attributes",
        lambda: place(with_normals(with_colors(small, lambda p: np.zeros((len(p), 3), np.uint8))), Placement(size_m=1)),
    )
    data = timed(times, "export", lambda: encode(painted, "glb")[""])
    times["total"] = sum(times[stage] for stage in STAGES)
    times["cpu"] = 1000 * (time.process_time() - cpu - query.seconds)
    times |= {
        "queries": surface.num_queries,
        "dense": surface.num_dense,
        "triangles": surface.mesh.num_faces,
        "kept": painted.num_faces,
        "bytes": len(data),
    }
    return times


def measure(cells: int, max_triangles: int, repeats: int) -> dict[str, dict[str, float]]:
    """Medians over the repeats, by field."""
    out = {}
    for name, query in FIELDS.items():
        run_once(query, cells, max_triangles)
        runs = [run_once(query, cells, max_triangles) for _ in range(repeats)]
        out[name] = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return out


def show(console: Console, results: dict[str, dict[str, float]], probe: float) -> None:
    table = Table(title=f"milliseconds (probe: {probe:.1f} ms for a 1024³ matrix product)")
    for column in ("field", "triangles", "queries", "of dense", *STAGES, "total", "CPU", "in probes"):
        table.add_column(column, justify="left" if column == "field" else "right")
    for name, row in results.items():
        table.add_row(
            name,
            f"{row['triangles']:,.0f} > {row['kept']:,.0f}",
            f"{row['queries']:,.0f}",
            f"1/{row['dense'] / row['queries']:.0f}",
            *(f"{row[stage]:.1f}" for stage in STAGES),
            f"{row['total']:.1f}",
            f"{row['cpu']:.1f}",
            f"{row['total'] / probe:.1f}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--max-triangles", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    before = probe_ms()
    results = measure(options.cells, options.max_triangles, options.repeats)
    probe = (before + probe_ms()) / 2
    show(Console(width=150), results, probe)
    if options.output:
        record = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": {
                "system": f"{platform.system()} {platform.machine()}",
                "cpu": cpu_name(),
                "python": platform.python_version(),
            },
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
            "command": f"python benchmarks/geometry.py --cells {options.cells} --repeats {options.repeats}",
            "max_triangles": options.max_triangles,
            "probe_ms": probe,
            # Runnable processes; above the number of cores, only the CPU column can be trusted.
            "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "fields": results,
        }
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
