"""`helicube bench helix`: what each layout holds, sends and takes here, and how far it is from one device."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table
from torch import Tensor

from helicube.errors import InputError
from helicube.models.llm_config import LlmConfig
from helicube.models.loading_open import open_model
from helicube.models.loading_sources import TensorSource
from helicube.models.tiny import SMALL, TINY, random_source, tiny_config, tiny_spec
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.collectives_threads import ThreadPool
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.parallel.kv_shard import Sequence as CachedSequence
from helicube.parallel.launch import as_rank, launch
from helicube.parallel.pool import join_pool, num_gpus, pool_size, rank_device
from helicube.parallel.round_robin import RoundRobin
from helicube.pipelines.measured import write_measured
from helicube.specs.layout import HelixLayout, legal_layouts
from helicube.specs.model import ModelSpec

__all__ = ["BenchOptions", "Row", "bench_helix", "table", "write_rows"]

# Prompt tokens per step; and the seconds that a collective may take on an overloaded machine.
CHUNK, TIMEOUT_S = 512, 300.0
# Environment of a rank: where rank 0 leaves its rows.
ROWS = "HELICUBE_BENCH_ROWS"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What is measured."""

    # A name of `helicube.models.tiny`, or a checkpoint.
    model: str
    # Tokens of the longest sequence; the others are shorter, all different.
    context: int
    # Sequences side by side.
    batch: int
    # Sizes of the pool.
    ranks: tuple[int, ...]
    # Decode steps timed.
    steps: int
    # Parts of the batch with HOP-B on.
    hopb: int
    # Ranks are threads of one process on one device, and not processes.
    in_process: bool = False

    def __post_init__(self) -> None:
        for name, low in (("context", 16), ("batch", 1), ("steps", 2), ("hopb", 1)):
            if getattr(self, name) < low:
                raise InputError(f"{name}={getattr(self, name)} is too small; choose at least {low}")
        if not self.ranks or min(self.ranks) < 1:
            raise InputError("give the sizes of the pool, each at least 1, such as --ranks 1,2,4")

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence before the timed steps."""
        return [self.context - 3 * i for i in range(self.batch)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One layout, measured."""

    layout: str
    num_ranks: int
    # Of the first rank.
    device: str
    # Of the rank that holds the most, and of all ranks.
    weight_bytes: int
    weight_bytes_all: int
    cache_bytes: int
    # Cached tokens of the emptiest and the fullest KVP rank.
    least_tokens: int
    most_tokens: int
    # Bytes that one rank sends per step, in all and in all-to-alls.
    sent_bytes: int
    exchanged_bytes: int
    # Median and slowest time of a step, HOP-B off, and the median with it on; seconds.
    ttl_s: float
    ttl_worst_s: float
    ttl_overlapped_s: float
    # Largest difference of logits from one device, HOP-B off and on.
    difference: float
    # Whether the likeliest ids agree at every step and place.
    same_ids: bool


def bench_helix(options: BenchOptions, argv: Sequence[str]) -> list[Row]:
    """Measure every legal layout of every pool size, one pool after the other.

    Args:
        argv: the command line of this process, run again by each rank.

    Raises:
        HelicubeError: a layout or a model that cannot be run, or a rank that failed.
    """
    if "RANK" in os.environ:
        as_rank(lambda: _rank(options))
        return []
    rows: list[Row] = []
    for size in options.ranks:
        if size == 1 or options.in_process:
            rows += _in_process(options, size)
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.json")
            launch([sys.executable, "-m", "helicube", *argv], size, {ROWS: str(path)})
            rows += [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    return rows


def _in_process(options: BenchOptions, size: int) -> list[Row]:
    model = replace(_open(options.model), device=rank_device(num_gpus(), 0, 1))
    layouts = legal_layouts(model.spec, size)
    return ThreadPool(size, TIMEOUT_S).run(lambda c: _measure_all(options, model, layouts, c))[0]


def _rank(options: BenchOptions) -> None:
    model = _open(options.model)
    layouts = legal_layouts(model.spec, pool_size())
    pool = join_pool(layouts, TIMEOUT_S)
    rows = _measure_all(options, replace(model, device=pool.device), layouts, pool.collectives)
    if pool.collectives.rank == 0:
        Path(os.environ[ROWS]).write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
    pool.ready("done")
    pool.leave()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    config: LlmConfig
    source: TensorSource
    spec: ModelSpec
    # Where it runs.
    device: torch.device | str = "cpu"


def _open(name: str) -> _Model:
    if name in {**TINY, **SMALL}:
        config = tiny_config(name)
        return _Model(config=config, source=random_source(config), spec=tiny_spec(name))
    opened = open_model(name)
    return _Model(config=opened.config, source=opened.source, spec=opened.spec)


def _measure_all(
    options: BenchOptions, model: _Model, layouts: Sequence[HelixLayout], collectives: Collectives
) -> list[Row]:
    # Every rank computes the reference for itself, so that none waits for another in a collective.
    alone = _Subject(options, model, HelixLayout(), SoloCollectives()).decode()
    rows = []
    for layout in layouts:
        plain = _Subject(options, model, layout, collectives)
        off = plain.decode()
        on = _Subject(options, model, layout, collectives, options.hopb).decode()
        rows.append(_row(options, plain, (alone, off, on)))
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoded:
    # (steps, B, V), and seconds of each step.
    logits: Tensor
    times_s: list[float]


class _Subject:
    """One layout with its sequences in the cache."""

    def __init__(
        self,
        options: BenchOptions,
        model: _Model,
        layout: HelixLayout,
        collectives: Collectives,
        overlap_parts: int = 1,
    ) -> None:
        self.options, self.config, self.device = options, model.config, model.device
        placement = RoundRobin(num_shards=layout.kvp)
        totals = [length + options.steps + 1 for length in options.lengths]
        slots = sum(map(placement.most_held, totals))
        helix = HelixOptions(layout=layout, cache_slots=slots, overlap_parts=overlap_parts, device=model.device)
        self.decoder = HelixDecoder(model.config, model.source, helix, collectives)
        self.sequences: list[CachedSequence] = []
        for total in totals:
            sequence = self.decoder.cache.allocate(total)
            assert sequence is not None, "the cache was made to measure"
            self.sequences.append(sequence)

    def decode(self) -> _Decoded:
        """Take in the prompts, then decode all sequences side by side with given ids."""
        generator = torch.Generator().manual_seed(0)
        traffic = self.decoder.collectives.traffic
        for sequence, length in zip(self.sequences, self.options.lengths, strict=True):
            ids = torch.randint(self.config.vocab_size, (1, length), generator=generator).to(self.device)
            for piece in torch.split(ids, CHUNK, dim=1):
                self.decoder.step([sequence], piece)
        shape = (self.options.steps + 1, len(self.sequences), 1)
        fed = torch.randint(self.config.vocab_size, shape, generator=generator).to(self.device)
        logits, times = [], []
        for step, ids in enumerate(fed):
            if step == 1:
                # The first step pays for what is allocated once.
                traffic.reset()
            started = time.perf_counter()
            # Copied, as a GPU has not yet done what it was told when the step returns.
            found = self.decoder.step(self.sequences, ids).cpu()
            times.append(time.perf_counter() - started)
            logits.append(found)
        return _Decoded(logits=torch.stack(logits[1:]), times_s=times[1:])


def _row(options: BenchOptions, subject: _Subject, decoded: tuple[_Decoded, _Decoded, _Decoded]) -> Row:
    alone, off, on = decoded
    decoder, collectives = subject.decoder, subject.decoder.collectives
    held = sum(decoder.cache.held(s.length) for s in subject.sequences)
    traffic = collectives.traffic
    mine = torch.tensor(
        [decoder.weight_bytes, decoder.cache.num_bytes, held, traffic.total, traffic.bytes_sent["all_to_all"]],
        dtype=torch.float64,
        device=subject.device,
    )
    every = collectives.all_gather(mine, decoder.grid.pool).cpu()
    weights, cache, tokens, sent, exchanged = every.T
    return Row(
        layout=str(decoder.options.layout),
        num_ranks=decoder.options.layout.num_ranks,
        device=str(subject.device),
        weight_bytes=int(weights.max()),
        weight_bytes_all=int(weights.sum()),
        cache_bytes=int(cache.max()),
        least_tokens=int(tokens.min()),
        most_tokens=int(tokens.max()),
        sent_bytes=int(sent.max()) // options.steps,
        exchanged_bytes=int(exchanged.max()) // options.steps,
        ttl_s=statistics.median(off.times_s),
        ttl_worst_s=max(off.times_s),
        ttl_overlapped_s=statistics.median(on.times_s),
        difference=max(float((d.logits - alone.logits).abs().max()) for d in (off, on)),
        same_ids=all(torch.equal(d.logits.argmax(-1), alone.logits.argmax(-1)) for d in (off, on)),
    )


def table(options: BenchOptions, rows: Sequence[Row]) -> Table:
    """The rows for a terminal."""
    ranks = "ranks in one process" if options.in_process else "a process per rank"
    title = (
        f"{options.model}, float32, {options.batch} sequences of about {options.context} tokens, {ranks}, "
        f"{rows[0].device}, measured"
    )
    found = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    heads = ("kvp·tpa\ntpf·ep", "weights\nMB", "of all\nranks", "cache\nMB", "tokens\nmin–max", "sent kB\na step",
             "of it\na2a", "TTL\nms", "HOP-B\nms", "differ-\nence", "\nids")  # fmt: skip
    for name in heads:
        found.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        found.add_row(
            _short(row.layout),
            f"{row.weight_bytes / 1e6:.2f}",
            f"{row.weight_bytes_all / 1e6:.2f}",
            f"{row.cache_bytes / 1e6:.2f}",
            f"{row.least_tokens}–{row.most_tokens}",
            f"{row.sent_bytes / 1e3:.1f}",
            f"{row.exchanged_bytes / 1e3:.1f}",
            f"{row.ttl_s * 1e3:.1f}",
            f"{row.ttl_overlapped_s * 1e3:.1f}",
            f"{row.difference:.1e}",
            "same" if row.same_ids else "differ",
        )
    return found


def _short(layout: str) -> str:
    found = HelixLayout.parse(layout)
    return f"{found.kvp}·{found.tpa} {found.tpf}·{found.ep}"


def write_rows(options: BenchOptions, rows: Sequence[Row], path: Path) -> None:
    """All rows with machine, versions and date."""
    write_measured({"options": asdict(options), "rows": [asdict(row) for row in rows]}, path)
