"""One rank of the pool that test_gloo.py starts: `python gloo_rank.py FOLDER`, four times.

Runs every case whose layout has this rank, on sub-pools of one process group, and leaves what it found in FOLDER.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from scenario import expected, layouts_of, run_layout, source_of
from texts import requests, run_texts
from torch.profiler import ProfilerActivity, profile

from helicube.models.tiny import tiny_config
from helicube.parallel.collectives_torch import TorchCollectives
from helicube.parallel.grid import RankGrid
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.parallel.launched import watch_lifeline
from helicube.specs.layout import HelixLayout

NUM_RANKS = 4
# Layouts under which requests join and leave.
TEXTS = {
    "tiny-uneven": HelixLayout(kvp=3, tpf=3),
    "tiny-gqa-moe": HelixLayout(kvp=2, tpa=2, tpf=2, ep=2),
    "tiny-mla-moe": HelixLayout(kvp=4, tpf=2, ep=2),
}
# Linux counts what a process writes.
WIRE = Path("/proc/self/io")
WEIGHED = {
    "tiny-gqa": HelixLayout(kvp=2, tpa=2, tpf=4),
    "tiny-gqa-moe": HelixLayout(kvp=4, tpf=2, ep=2),
    "tiny-mla-moe": HelixLayout(kvp=4, tpf=1, ep=4),
}
MODELS = (
    "tiny-mha", "tiny-gqa", "tiny-mqa", "tiny-uneven", "tiny-mha-moe", "tiny-gqa-moe", "tiny-mqa-moe", "tiny-mla",
    "tiny-mla-moe",
)  # fmt: skip


def cases() -> list[tuple[str, HelixLayout]]:
    """All models and layouts of 2 to 4 ranks."""
    return [(model, layout) for model in MODELS for size in (2, 3, 4) for layout in layouts_of(model, size)]


def main(folder: Path) -> None:
    watch_lifeline()
    rank = int(os.environ["RANK"])
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", int(os.environ["MASTER_PORT"]), NUM_RANKS, is_master=False, timeout=timedelta(seconds=120)
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=NUM_RANKS)
    layouts = dict.fromkeys(layout for _, layout in cases())
    groups = [g for layout in layouts for r in range(layout.num_ranks) for g in RankGrid(layout=layout, rank=r).groups]
    collectives = TorchCollectives(groups, store, 60.0)
    found: dict[str, Any] = {}
    for model, layout in cases():
        if rank < layout.num_ranks:
            found[f"{model} {layout}"] = run_layout(model, layout, collectives, expected(model).ids)
    for model, layout in TEXTS.items():
        if rank < layout.num_ranks:
            found[f"texts {model}"] = [r.ids for r in run_texts(model, layout, collectives, requests())]
    layout = HelixLayout(kvp=4, tpf=4)
    given = expected("tiny-gqa").ids
    found["overlap"] = [run_layout("tiny-gqa", layout, collectives, given, overlap_parts=n) for n in (1, 3)]
    found["trace"] = trace(collectives, layout)
    if WIRE.exists():
        found["wire"] = {model: weigh(collectives, model, layout) for model, layout in WEIGHED.items()}
    torch.save(found, folder / f"{rank}.pt")
    dist.destroy_process_group()


def weigh(collectives: TorchCollectives, model: str, layout: HelixLayout) -> list[tuple[int, int]]:
    """Bytes of a step that were counted, and that this process wrote to its sockets, after 5 tokens and after 1990."""
    options = HelixOptions(layout=layout, cache_slots=4096)
    decoder = HelixDecoder(tiny_config(model), source_of(model), options, collectives)
    sequences = [s for _ in range(3) if (s := decoder.cache.allocate(2000)) is not None]
    ids, found = torch.ones(3, 1, dtype=torch.long), []
    for length in (0, 5, 1990):
        for sequence in sequences:
            sequence.length = length
        before = collectives.traffic.total, wire_bytes()
        for _ in range(4):
            decoder.step(sequences, ids)
        found.append((collectives.traffic.total - before[0], wire_bytes() - before[1]))
        # Nobody reads or writes for the next length yet.
        dist.barrier()
    # The first pays for connections.
    return found[1:]


def wire_bytes() -> int:
    """Bytes written by this process, to sockets too."""
    return next(int(line.split()[1]) for line in WIRE.read_text().splitlines() if line.startswith("wchar"))


def trace(collectives: TorchCollectives, layout: HelixLayout) -> list[tuple[str, float, float]]:
    """(name, start, end) of what a few steps of four long sequences do, in µs."""
    options = HelixOptions(layout=layout, cache_slots=4096, overlap_parts=4)
    decoder = HelixDecoder(tiny_config("tiny-gqa"), source_of("tiny-gqa"), options, collectives)
    sequences = [s for _ in range(4) if (s := decoder.cache.allocate(4000)) is not None]
    for sequence in sequences:
        sequence.length = 3900
    ids = torch.ones(4, 1, dtype=torch.long)
    decoder.step(sequences, ids)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(5):
            decoder.step(sequences, ids)
    return [(e.name, e.time_range.start, e.time_range.end) for e in profiler.events() or []]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
