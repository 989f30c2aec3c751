"""Everything that a GPU is needed for, in one command and within ten minutes: tests, bandwidth, kernels, whole steps.

    python benchmarks/gpu.py [--size cube-v0.5] [--minutes 9] [--no-tests] [--sweep] [--output FILE.json]

Without a CUDA device it says so and ends with status 0. Sections that do not fit the time, or fail, are named, not
dropped in silence; the file is written anew after each section.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
# Layers, single layers, heads, width; shape tokens per object.
SIZES = {"cube-v0.5": ((23, 1, 12, 1536), 1024), "small": ((7, 1, 4, 256), 1024)}
FORMATS = ("bfloat16", "fp8", "int8", "int4")


class Report:
    """Sections, one after the other, until the time is over.

    Args:
        minutes: after which no further section starts.
    """

    def __init__(self, output: Path, minutes: float, facts: dict[str, Any]) -> None:
        self.console = Console(width=150)
        self.output, self.end = output, time.monotonic() + 60 * minutes
        self.content: dict[str, Any] = {"machine": facts, "left_out": [], "failed": {}}

    def section(self, name: str, run: Callable[[], Any], show: Callable[[Any], None]) -> None:
        if time.monotonic() > self.end:
            self.content["left_out"].append(name)
            self.console.print(f"[yellow]{name}: left out, the time is over[/]")
            return
        started = time.monotonic()
        self.console.rule(name)
        try:
            rows = run()
            rows = rows if isinstance(rows, dict) else list(rows)
            show(rows)
            self.content[name] = rows if isinstance(rows, dict) else [plain(r) for r in rows]
        except Exception as error:  # noqa: BLE001 - one broken section must not cost the others on a borrowed GPU
            self.console.print_exception()
            self.content["failed"][name] = repr(error)
        self.console.print(f"{time.monotonic() - started:.0f} s")
        partial = self.output.with_suffix(".part")
        partial.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.output)

    def lines(self, rows: list[dict[str, Any]]) -> None:
        """Records, a line each."""
        for row in rows:
            self.console.print(
                ", ".join(
                    f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
                )
            )

    def table(self, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
        table = Table(*columns)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)


def plain(row: Any) -> Any:
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else row


def run_tests() -> dict[str, Any]:
    """tests/gpu in a process of its own, over four workers where pytest-xdist is there: compilation is their time."""
    command = [sys.executable, "-m", "pytest", "tests/gpu", "-q", "--no-header", "--tb=short"]
    if importlib.util.find_spec("xdist"):
        command += ["-n", "4"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return {
        "command": " ".join(command[1:]),
        "status": done.returncode,
        "tail": done.stdout[-3000:] + done.stderr[-1000:],
    }


def bandwidth() -> dict[str, float]:
    """Bytes per second of a copy of 4 GiB (bytes read and written) and of reading 4 GiB alone."""
    from gpu_timing import clock

    from helicube.engine.metrics import probe_bandwidth

    source = torch.ones(1 << 30, device="cuda")
    return {
        "copy_bytes_per_s": probe_bandwidth("cuda", mebibytes=4096),
        "read_bytes_per_s": source.nbytes / clock(source.sum, repeats=10).median_s,
    }


def measure(report: Report, arguments: argparse.Namespace) -> None:
    import gpu_kernels
    import gpu_objects
    import gpu_steps

    from helicube.models.cube.decoder import DecoderConfig

    (layers, single, heads, width), tokens = SIZES[arguments.size]
    config = DecoderConfig(n_layer=layers, n_single_layer=single, n_head=heads, n_embd=width)
    ceiling = report.content["bandwidth"]["copy_bytes_per_s"]
    decoder = gpu_steps.random_decoder(config)

    def steps(forms: tuple[str, ...], batches: tuple[int, ...]) -> Callable[[], Any]:
        return lambda: gpu_steps.time_steps(decoder, forms, batches, tokens)

    def show_steps(rows: list[Any]) -> None:
        report.table(STEP_COLUMNS, (step_line(r, ceiling) for r in rows))

    def show_kernels(rows: list[Any]) -> None:
        report.table(KERNEL_COLUMNS, (kernel_line(r, ceiling) for r in rows))

    def before_kernels() -> Iterator[Any]:
        for batch in (1, 4, 16):
            yield gpu_steps.time_uncached(decoder, batch, tokens)
            yield gpu_steps.time_plain(decoder, batch, tokens)
            yield gpu_steps.time_plain_graph(decoder, batch, tokens)

    prefix = gpu_steps.NUM_TEXT + int(config.use_bbox)
    report.section("set-up", lambda: gpu_objects.time_setup(decoder, tokens), report.lines)
    report.section("steps", steps(FORMATS, (1,)), show_steps)
    report.section("objects", lambda: gpu_objects.time_objects(decoder, tokens), report.lines)
    report.section("object and mesh", lambda: gpu_objects.time_mesh(decoder, tokens), report.lines)
    report.section("steps before kernels", before_kernels, show_steps)
    report.section("steps of several prompts", steps(FORMATS, (4, 16)), show_steps)
    report.section("ablation", lambda: ablation(report.content), report.lines)
    report.section("targets", lambda: targets(report.content), report.lines)
    report.section("products", lambda: gpu_kernels.time_products(config, (2, 32)), show_kernels)
    report.section("attention", lambda: gpu_kernels.time_attention(config, (2, 32), prefix, tokens), show_kernels)
    report.section("sampling", lambda: gpu_kernels.time_sampling(config, (1, 16)), show_kernels)
    if arguments.sweep:
        report.section("sweep", lambda: gpu_kernels.sweep(config), lambda rows: report.table(SWEEP_COLUMNS, best(rows)))


def ablation(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Every way to make a step beside the first, by number of prompts."""
    rows = [r for name in STEP_SECTIONS for r in content.get(name, ())]
    first = {r["subject"]["batch"]: r["tpot"]["median_s"] for r in rows if r["subject"]["mode"] == "no cache"}
    lines = [
        {
            "batch": r["subject"]["batch"],
            "mode": r["subject"]["mode"],
            "weights": r["subject"]["weights"],
            "tpot_ms": 1e3 * r["tpot"]["median_s"],
            "speed_up": first[r["subject"]["batch"]] / r["tpot"]["median_s"]
            if r["subject"]["batch"] in first
            else None,
        }
        for r in rows
    ]
    return sorted(lines, key=lambda line: (line["batch"], -line["tpot_ms"]))


def targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures to reach on an H200, and what was measured in this run; None where its section did not run."""
    step = {(r["weights"], r["mode"]): r["tpot_ms"] for r in content.get("ablation", ()) if r["batch"] == 1}
    meshes = [r["total_s"] for r in content.get("object and mesh", ())]
    batches = {(r["weights"], r["batch"]): r["times_one"] for r in content.get("objects", ())}
    setups = [r["graphs_s"] for r in content.get("set-up", ())]
    found = [
        ("TPOT of one guided prompt, bfloat16, ms", 0.8, step.get(("bfloat16", "triton graph"))),
        ("TPOT of one guided prompt, fp8, ms", 0.5, step.get(("fp8", "triton graph"))),
        ("TPOT of one guided prompt, int4, ms", 0.5, step.get(("int4", "triton graph"))),
        ("1,024 tokens and the surface at 2^8 cells, s", 1.2, min(meshes, default=None)),
        ("16 objects at once / one", 3.0, batches.get(("bfloat16", 16))),
        ("set-up of all graphs, kernels compiled before, s", 5.0, setups[-1] if setups else None),
    ]
    return [
        {"figure": name, "at_most": most, "measured": got, "reached": None if got is None else got <= most}
        for name, most, got in found
    ]


STEP_SECTIONS = ("steps before kernels", "steps", "steps of several prompts")
STEP_COLUMNS = (
    "mode",
    "weights",
    "prompts",
    "TPOT ms",
    "p95 ms",
    "± %",
    "GB/s",
    "of copy %",
    "tokens/s",
    "set-up s",
    "GiB",
)
KERNEL_COLUMNS = ("kernel", "weights", "rows", "µs", "± %", "torch µs", "GB/s", "of copy %", "error")
SWEEP_COLUMNS = ("kernel", "weights", "µs", "chosen", "block_n", "block_k", "stages")


def step_line(r: Any, ceiling: float) -> tuple[str, ...]:
    about, tpot = r.subject, r.tpot
    rate = about.num_bytes / tpot.median_s
    numbers = (
        f"{1e3 * tpot.median_s:.3f}", f"{1e3 * tpot.p95_s:.3f}", f"{100 * tpot.spread:.1f}", f"{rate / 1e9:.0f}",
        f"{100 * rate / ceiling:.0f}", f"{about.batch / tpot.median_s:.0f}", f"{r.setup_s:.1f}",
        f"{r.peak_bytes / 2**30:.1f}",
    )  # fmt: skip
    return (about.mode, about.weights, str(about.batch), *numbers)


def kernel_line(r: Any, ceiling: float) -> tuple[str, ...]:
    rate = r.num_bytes / r.clock.median_s
    theirs = "-" if r.torch_s is None else f"{1e6 * r.torch_s:.1f}"
    numbers = (
        f"{1e6 * r.clock.median_s:.1f}", f"{100 * r.clock.spread:.1f}", theirs,
        f"{rate / 1e9:.0f}", f"{100 * rate / ceiling:.0f}", "-" if r.error is None else f"{r.error:.1e}",
    )  # fmt: skip
    return (r.kernel, r.weights, str(r.rows), *numbers)


def best(rows: list[dict[str, Any]]) -> Iterable[tuple[str, ...]]:
    """The three fastest tiles of each product and the table's own."""
    seen: dict[tuple[str, str], int] = {}
    for r in rows:
        place = seen[r["kernel"], r["weights"]] = seen.get((r["kernel"], r["weights"]), 0) + 1
        if place <= 3 or r["is_chosen"]:
            mark = "chosen" if r["is_chosen"] else ""
            tile = (str(r[key]) for key in ("block_n", "block_k", "num_stages"))
            yield (r["kernel"], r["weights"], f"{1e6 * r['median_s']:.1f}", mark, *tile)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=tuple(SIZES), default="cube-v0.5")
    parser.add_argument("--minutes", type=float, default=9.0, help="no section starts after this")
    parser.add_argument("--no-tests", action="store_true")
    parser.add_argument("--sweep", action="store_true", help="try other tiles, for minutes")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no CUDA device; the kernels' arithmetic is tested by tests/unit/test_kernels_triton_*.py")
        return 0
    sys.path.insert(0, str(ROOT / "src"))
    from gpu_timing import machine

    report = Report(arguments.output, arguments.minutes, machine())
    report.console.print(report.content["machine"])
    torch.manual_seed(0)
    report.section("bandwidth", bandwidth, report.console.print)
    if not arguments.no_tests:
        report.section("tests", run_tests, lambda r: report.console.print(r["tail"]))
    with torch.inference_mode():
        measure(report, arguments)
    broken = [*report.content["failed"], *(["tests"] if report.content.get("tests", {}).get("status") else [])]
    report.console.print(
        f"{arguments.output}: left out {report.content['left_out'] or 'nothing'}, failed {broken or 'nothing'}"
    )
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
