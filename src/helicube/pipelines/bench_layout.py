"""One layout of a model, measured on one rank of its pool."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.models.llm_config import LlmConfig
from helicube.models.loading_open import open_model
from helicube.models.loading_sources import TensorSource
from helicube.models.tiny import SMALL, TINY, random_source, tiny_config, tiny_spec
from helicube.parallel.collectives import Collectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.parallel.kv_shard import Sequence as CachedSequence
from helicube.parallel.round_robin import RoundRobin
from helicube.pipelines.cache_room import cache_slots, check_room, slot_bytes
from helicube.specs.layout import HelixLayout
from helicube.specs.model import ModelSpec

__all__ = ["BenchModel", "Decoded", "Row", "Subject", "Work", "measure_all", "open_bench_model"]

# Prompt tokens per step.
CHUNK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every layout does."""

    # Tokens of each sequence before the timed steps.
    lengths: tuple[int, ...]
    # Decode steps timed.
    steps: int
    # Parts of the batch with HOP-B on.
    hopb: int


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
    # Bytes that one rank sends per step with HOP-B off, in all and in all-to-alls.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchModel:
    """A model to be measured."""

    config: LlmConfig
    source: TensorSource
    spec: ModelSpec
    # Where it runs, and whether the other ranks' caches lie there too.
    device: torch.device | str = "cpu"
    is_shared: bool = True


def open_bench_model(name: str) -> BenchModel:
    """A random model by its name, or a checkpoint.

    Raises:
        InputError, CheckpointError: see `open_model`.
    """
    if name in {**TINY, **SMALL}:
        config = tiny_config(name)
        return BenchModel(config=config, source=random_source(config), spec=tiny_spec(name))
    opened = open_model(name)
    return BenchModel(config=opened.config, source=opened.source, spec=opened.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a layout gave."""

    # (steps, B, V), and seconds of each step.
    logits: Tensor
    times_s: list[float]


def measure_all(
    work: Work, model: BenchModel, layouts: Sequence[HelixLayout], collectives: Collectives, alone: Tensor
) -> list[Row]:
    """Every layout with HOP-B off and on.

    Args:
        alone: logits (steps, B, V) of one device.
    """
    return [_measure(work, model, layout, collectives, alone) for layout in layouts]


def _measure(work: Work, model: BenchModel, layout: HelixLayout, collectives: Collectives, alone: Tensor) -> Row:
    plain = Subject(work, model, layout, collectives)
    off = plain.decode()
    shares = plain.shares()
    del plain
    on = Subject(work, model, layout, collectives, work.hopb).decode()
    weights, cache, tokens, sent, exchanged = shares.T
    return Row(
        layout=str(layout),
        num_ranks=layout.num_ranks,
        device=str(model.device),
        weight_bytes=int(weights.max()),
        weight_bytes_all=int(weights.sum()),
        cache_bytes=int(cache.max()),
        least_tokens=int(tokens.min()),
        most_tokens=int(tokens.max()),
        sent_bytes=int(sent.max()) // work.steps,
        exchanged_bytes=int(exchanged.max()) // work.steps,
        ttl_s=statistics.median(off.times_s),
        ttl_worst_s=max(off.times_s),
        ttl_overlapped_s=statistics.median(on.times_s),
        difference=max(float((d.logits - alone).abs().max()) for d in (off, on)),
        same_ids=all(torch.equal(d.logits.argmax(-1), alone.argmax(-1)) for d in (off, on)),
    )


class Subject:
    """One layout with its sequences in the cache."""

    def __init__(
        self,
        work: Work,
        model: BenchModel,
        layout: HelixLayout,
        collectives: Collectives,
        overlap_parts: int = 1,
    ) -> None:
        self.work, self.config, self.device = work, model.config, model.device
        totals = [length + work.steps + 1 for length in work.lengths]
        slots = cache_slots(RoundRobin(num_shards=layout.kvp), totals)
        ranks_here = layout.num_ranks if model.is_shared else 1
        check_room(slots, slot_bytes(model.config, layout, torch.float32), model.device, ranks_here)
        helix = HelixOptions(layout=layout, cache_slots=slots, overlap_parts=overlap_parts, device=model.device)
        self.decoder = HelixDecoder(model.config, model.source, helix, collectives)
        self.sequences: list[CachedSequence] = []
        for total in totals:
            sequence = self.decoder.cache.allocate(total)
            assert sequence is not None, "the cache was made to measure"
            self.sequences.append(sequence)

    def decode(self) -> Decoded:
        """Take in the prompts, then decode all sequences side by side with given ids."""
        generator = torch.Generator().manual_seed(0)
        traffic = self.decoder.collectives.traffic
        for sequence, length in zip(self.sequences, self.work.lengths, strict=True):
            ids = torch.randint(self.config.vocab_size, (1, length), generator=generator).to(self.device)
            for piece in torch.split(ids, CHUNK, dim=1):
                self.decoder.step([sequence], piece)
        shape = (self.work.steps + 1, len(self.sequences), 1)
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
        return Decoded(logits=torch.stack(logits[1:]), times_s=times[1:])

    def shares(self) -> Tensor:
        """(N, 5) float64, per rank: bytes of weights and cache, tokens held, bytes sent in the timed steps, of these in
        all-to-alls. Call it after `decode`, before anything else is sent."""
        held = sum(self.decoder.cache.held(s.length) for s in self.sequences)
        traffic = self.decoder.collectives.traffic
        sizes = [self.decoder.weight_bytes, self.decoder.cache.num_bytes, held]
        mine = torch.tensor(
            [*sizes, traffic.total, traffic.bytes_sent["all_to_all"]], dtype=torch.float64, device=self.device
        )
        return self.decoder.collectives.all_gather(mine, self.decoder.grid.pool).cpu()
