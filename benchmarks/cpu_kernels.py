"""CPU kernels beside the memory's speed and PyTorch's own operators.

Floors are bytes of weights and cache / read bandwidth, probed right before and after each measurement (the better of
the two counts): shared machines change their speed within minutes, so compare ratios, not milliseconds. Times are the
best and the median of the repeats. A model that fits the caches can be below its floor.

    OMP_WAIT_POLICY=passive python benchmarks/cpu_kernels.py [--only calls,operators,cube,default] [--repeats 9]
        [--rows 1,2,4,8,16] [--formats bfloat16,int8,int4] [--output benchmarks/results/cpu_kernels.json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from cpu_models import CUBE, SMALL, Sizes, dense_matrix, packed_layers, random_stack
from rich.console import Console
from rich.table import Table
from torch import Tensor

from helicube.kernels.cpu import attention, products
from helicube.kernels.cpu.library import Library, describe, load
from helicube.kernels.cpu.matrix import pack
from helicube.kernels.cpu.products import Norm
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig, Places
from helicube.nn.quantize import parse_format

# Larger than any cache of a CPU of today that one guest may use.
PROBE_BYTES = 1 << 30
PARTS = ("calls", "operators", "cube", "default")
NORM = Norm(kind="layer", eps=1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement."""

    part: str
    what: str
    rows: int
    best_ms: float
    median_ms: float
    # Read from memory, and read bandwidth beside it; 0 where neither matters.
    num_bytes: int
    bytes_per_s: float

    @property
    def ratio(self) -> float:
        """Best time over the floor."""
        return self.best_ms * 1e-3 * self.bytes_per_s / self.num_bytes if self.num_bytes else 0.0


class Bench:
    """Measures, with a probe of the read bandwidth around each measurement."""

    def __init__(self, library: Library, repeats: int) -> None:
        self.library, self.repeats = library, repeats
        self.rows: list[Row] = []
        self.console = Console()
        self.buffer = library.memory.empty((PROBE_BYTES // 4,), torch.int32).fill_(1)

    def bandwidth(self) -> float:
        """Bytes per second that all threads read together."""
        total = ctypes.c_uint64()
        best = float("inf")
        for _ in range(3):
            started = time.perf_counter()
            self.library.read(self.buffer.data_ptr(), PROBE_BYTES, torch.get_num_threads(), ctypes.byref(total))
            best = min(best, time.perf_counter() - started)
        assert total.value == PROBE_BYTES // 4, "the probe read something else"
        return PROBE_BYTES / best

    def measure(self, part: str, what: str, rows: int, run: Callable[[], object], num_bytes: int = 0) -> None:
        run()
        before = self.bandwidth() if num_bytes else 0.0
        times = []
        for _ in range(self.repeats):
            started = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - started))
        speed = max(before, self.bandwidth()) if num_bytes else 0.0
        row = Row(part=part, what=what, rows=rows, best_ms=min(times), median_ms=statistics.median(times),
                  num_bytes=num_bytes, bytes_per_s=speed)  # fmt: skip
        self.rows.append(row)
        floor = f", {num_bytes / row.best_ms / 1e6:.1f} of {speed / 1e9:.1f} GB/s, floor × {row.ratio:.2f}"
        self.console.print(f"{part}: {what}, {rows} rows: {row.best_ms:.3f} ms{floor if num_bytes else ''}")


def calls(bench: Bench) -> None:
    """What one call costs, beside PyTorch's."""
    lib = bench.library
    matrix = pack(lib, torch.randn(64, 64), format="float32", num_inputs=64)
    x, weight = torch.randn(2, 64), torch.randn(64, 64)

    def many(run: Callable[[], object]) -> Callable[[], object]:
        return lambda: [run() for _ in range(1000)]

    # A thousand calls: milliseconds are microseconds a call.
    bench.measure("calls", "1000 × linear 64 × 64", 2, many(lambda: products.linear(lib, x, matrix)))
    bench.measure("calls", "1000 × F.linear 64 × 64", 2, many(lambda: F.linear(x, weight)))
    bench.measure("calls", "1000 × empty call", 0, many(lambda: lib.phases(0, 1)))
    bench.measure("calls", "1000 phases of one task per thread", 0, lambda: lib.phases(1000, torch.get_num_threads()))


def operators(bench: Bench, formats: list[str], all_rows: list[int]) -> None:
    """Each operation over all layers of the real size."""
    lib = bench.library
    for name in formats:
        layers = packed_layers(lib, CUBE, parse_format(name))
        for rows in all_rows:
            x, h = torch.randn(rows, CUBE.width), torch.randn(rows, CUBE.hidden)

            def run(kind: str, x: Tensor = x, h: Tensor = h, layers: list[Any] = layers) -> None:
                for m in layers:
                    if kind == "qkv":
                        products.linear_group(lib, x, m["qkv"], norm=NORM)
                    elif kind == "gate_up":
                        products.gate_up(lib, x, *m["gate_up"], norm=NORM)
                    else:
                        products.linear(lib, x if kind == "proj" else h, m[kind][0], residual=x)

            for kind in CUBE.shapes():
                num_bytes = sum(m.num_bytes for layer in layers for m in layer[kind])
                bench.measure("operators", f"{name} {kind}", rows, lambda kind=kind, run=run: run(kind), num_bytes)  # type: ignore[misc]
        del layers
    pytorch_products(bench, all_rows)
    one_query(bench, all_rows)


def pytorch_products(bench: Bench, all_rows: list[int]) -> None:
    """The same matrices through PyTorch's operators; float32 in a third of the layers, for the memory."""
    shapes = [shape for kind in CUBE.shapes().values() for shape in kind]
    for name, make in PYTORCH.items():
        num_layers = CUBE.layers // (3 if name == "float32" else 1)
        made = [make(dense_matrix(n, k)) for _ in range(num_layers) for n, k in shapes]
        for rows in all_rows:
            dtype = torch.float32 if name == "float32" else torch.bfloat16
            inputs = {k: torch.randn(rows, k).to(dtype) for _, k in shapes}
            order = [inputs[k] for _, k in shapes] * num_layers

            def run(made: list[Any] = made, order: list[Tensor] = order) -> None:
                for (call, _), x in zip(made, order, strict=True):
                    call(x)

            num_bytes = sum(size for _, size in made)
            bench.measure("operators", f"PyTorch {name}, {num_layers} layers", rows, run, num_bytes)
        del made


Product = tuple[Callable[[Tensor], Tensor], int]


def _linear(weight: Tensor) -> Product:
    weight = weight.clone()
    return lambda x: F.linear(x, weight), weight.nbytes


def _int8pack(weight: Tensor) -> Product:
    w8, scale = (weight.float() * 40).round().clamp(-127, 127).to(torch.int8), torch.ones(len(weight)).bfloat16()
    return lambda x: torch._weight_int8pack_mm(x, w8, scale), w8.nbytes


def _int4pack(weight: Tensor) -> Product:
    n, k = weight.shape
    numbers = torch.randint(0, 16, (64, k), dtype=torch.int32).repeat(n // 64, 1)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 2)
    scales = torch.ones(k // 64, n, 2).bfloat16()
    return lambda x: torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, 64, scales), packed.nbytes + scales.nbytes


PYTORCH: dict[str, Callable[[Tensor], Product]] = {
    "bfloat16": _linear,
    "float32": lambda weight: _linear(weight.float()),
    "int8pack": _int8pack,
    "int4pack": _int4pack,
}


def one_query(bench: Bench, all_rows: list[int]) -> None:
    """Attention of one query over the keys of all layers, ours and PyTorch's."""
    head_dim = CUBE.width // CUBE.heads
    for dtype in (torch.bfloat16, torch.float32):
        for rows in all_rows:
            caches = list(_caches(bench.library, CUBE, rows, dtype))
            filled = [(k[:, :, : CUBE.keys], v[:, :, : CUBE.keys]) for k, v in caches]
            q = torch.randn(rows, CUBE.heads, head_dim)
            num_bytes = 2 * CUBE.layers * rows * CUBE.keys * CUBE.width * dtype.itemsize

            def ours(q: Tensor = q, filled: list[Any] = filled) -> None:
                for k, v in filled:
                    attention.attend_one(bench.library, q, k, v)

            one = q[:, :, None].to(dtype)

            def theirs(q: Tensor = one, filled: list[Any] = filled) -> None:
                for k, v in filled:
                    F.scaled_dot_product_attention(q, k, v)

            name = str(dtype).removeprefix("torch.")
            bench.measure("operators", f"attend_one {name} cache", rows, ours, num_bytes)
            bench.measure("operators", f"PyTorch SDPA {name}", rows, theirs, num_bytes)


def _caches(library: Library, sizes: Sizes, rows: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    shape = (rows, sizes.heads, sizes.slots, sizes.width // sizes.heads)
    filled = torch.randn(shape[1:]).to(dtype)
    for _ in range(sizes.layers):
        pair = library.memory.empty(shape, dtype), library.memory.empty(shape, dtype)
        for t in pair:
            t.copy_(filled)
        yield pair


def whole_step(bench: Bench, part: str, sizes: Sizes, formats: list[str], all_rows: list[int]) -> None:
    """A decode step in one call: bf16 cache; all weights, all keys, all logits."""
    for name in formats:
        stack = random_stack(bench.library, sizes, name)
        for rows in all_rows:
            keys, values = zip(*_caches(bench.library, sizes, rows, torch.bfloat16), strict=True)
            stack.bind(keys, values, [0] * sizes.layers)
            ids, positions = torch.zeros(rows, dtype=torch.int64), torch.full((rows,), sizes.keys - 1)
            cache_bytes = 2 * sizes.layers * rows * sizes.keys * sizes.width * 2

            def run(stack: Any = stack, ids: Tensor = ids, positions: Tensor = positions) -> None:
                stack.step(ids, positions, ids_range=(0, sizes.wanted))

            bench.measure(part, f"{name} step", rows, run, stack.num_bytes + cache_bytes)
        del stack


def eager_step(bench: Bench, all_rows: list[int]) -> None:
    """The plain decoder at the default model's size, for comparison; attention over as many keys."""
    config = DecoderConfig(
        n_layer=SMALL.layers - 1, n_head=SMALL.heads, n_embd=SMALL.width, shape_model_vocab_size=SMALL.vocab - 3
    )
    for dtype in (torch.float32, torch.bfloat16):
        decoder = CubeDecoder(config).eval().requires_grad_(False).to(dtype)
        for rows in all_rows:
            caches = [
                _Filled(k[:, :, : SMALL.keys], v[:, :, : SMALL.keys])
                for k, v in _caches(bench.library, SMALL, rows, dtype)
            ]
            ids, places = torch.zeros(rows, 1, dtype=torch.int64), decoder.places(1)

            def run(
                decoder: CubeDecoder = decoder, ids: Tensor = ids, places: Places = places, caches: Any = caches
            ) -> None:
                with torch.inference_mode():
                    decoder.decode(ids, places, caches)

            bench.measure("default", f"eager {str(dtype).removeprefix('torch.')} step", rows, run)


class _Filled:
    """A cache whose last slot is written again and again."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self.k, self.v = k, v

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, None]:
        self.k[:, :, -1:].copy_(k)
        self.v[:, :, -1:].copy_(v)
        return self.k, self.v, None


def report(bench: Bench) -> dict[str, Any]:
    """Table to the console; everything as plain data."""
    table = Table("part", "what", "rows", "ms", "median", "GB/s", "probe", "floor ×")
    for r in bench.rows:
        speed = (f"{r.num_bytes / r.best_ms / 1e6:.1f}", f"{r.bytes_per_s / 1e9:.1f}", f"{r.ratio:.2f}")
        table.add_row(
            r.part,
            r.what,
            str(r.rows),
            f"{r.best_ms:.3f}",
            f"{r.median_ms:.3f}",
            *(speed if r.num_bytes else ("", "", "")),
        )
    bench.console.print(table)
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.is_file()
        else []
    )
    return {
        "machine": {
            "cpu": names[0] if names else platform.processor(),
            "threads": torch.get_num_threads(),
            "load": list(os.getloadavg()),
            "kernels": describe().split(",")[0],
            "torch": torch.__version__,
            "python": platform.python_version(),
            "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", ""),
        },
        "rows": [asdict(r) | {"floor_ratio": r.ratio} for r in bench.rows],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rows", default="1,2,4,8,16")
    parser.add_argument("--formats", default="bfloat16,int8,int4")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    library = load()
    if library is None:
        raise SystemExit("no kernels to measure; install a C++ compiler")
    bench = Bench(library, options.repeats)
    rows, formats = [int(r) for r in options.rows.split(",")], options.formats.split(",")
    parts = options.only.split(",")
    if "calls" in parts:
        calls(bench)
    if "operators" in parts:
        operators(bench, formats, rows)
    if "cube" in parts:
        whole_step(bench, "cube", CUBE, formats, [2, 16])
    if "default" in parts:
        whole_step(bench, "default", SMALL, ["float32", *formats], [2, 128])
        eager_step(bench, [2, 128])
    result = report(bench)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
