"""What each speed feature is worth: the published ablation, continued to what the memory allows.

Every row decodes from the middle of a sequence, where the cache is half full, so that its time stands for the average
step; the ids are random, which changes no time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from rich.progress import track

from helicube.engine.build import make_engine
from helicube.engine.engine import Engine
from helicube.engine.metrics import BandwidthProbe, held_bytes
from helicube.engine.options import EngineOptions
from helicube.engine.request import Request
from helicube.errors import DeviceError
from helicube.kernels.choose import FP8_CAPABILITY, Facts, facts_of
from helicube.pipelines.ablation_subject import Subject

__all__ = ["Ablation", "AblationRow", "Variant", "ablate", "measure_row", "time_steps", "variants_of"]

# A row stops after this long, whatever the number of steps asked for; one that is expected to take longer for a single
# step is left out.
ROW_BUDGET_S = 12.0
MIN_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One set of features."""

    name: str
    options: EngineOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """One feature set at one batch size, measured."""

    name: str
    batch: int
    num_steps: int
    # Seconds per step, median and 95th percentile; steps of one launch count as equally long.
    tpot_s: float
    tpot_p95_s: float
    # Tokens of one object times the step, shared by the batch.
    object_s: float
    # Weights and cache that a step reads, that per second, and the bandwidth probed beside it.
    num_bytes: int
    read_bytes_per_s: float
    bandwidth_bytes_per_s: float
    # Over the first row of the same batch, where that was measured.
    speedup: float | None
    # Memory that the process holds on the device with this decoder and its cache, without the probe of the bandwidth.
    resident_bytes: int

    @property
    def bandwidth_share(self) -> float:
        """Above 1 where weights and cache stay in the caches of the processor."""
        return self.read_bytes_per_s / self.bandwidth_bytes_per_s

    @property
    def floor_ratio(self) -> float:
        """Time over the time of reading alone."""
        return 1 / self.bandwidth_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """All rows of a run."""

    subject: str
    random: bool
    device: str
    threads: int
    rows: tuple[AblationRow, ...]
    # Rows that would have taken too long, or more memory than there is, as "name, batch (why)".
    left_out: tuple[str, ...]


def variants_of(subject: Subject, facts: Facts) -> list[Variant]:
    """From the slowest to the fastest that the device has; each adds to the one before until the formats begin."""
    base = EngineOptions(graph=False, cache=False, kernels="plain", weights=subject.base_format)
    found = [
        Variant(name=f"no cache, {subject.base_format}", options=base),
        Variant(name="+ cache", options=replace(base, cache=True)),
    ]
    if facts.device == "cuda":
        found.append(Variant(name="+ graph", options=replace(base, cache=True, graph=True)))
        kernels = replace(base, cache=True, graph=True, kernels="auto")
        found.append(Variant(name="+ kernels", options=kernels))
    elif facts.has_native:
        # What a graph is on a GPU, one native call for whole steps is here: it needs the kernels first.
        kernels = replace(base, cache=True, graph=False, kernels="native")
        found.append(Variant(name="+ kernels", options=kernels))
        kernels = replace(kernels, graph=True)
        found.append(Variant(name="+ graph (one call)", options=kernels))
    else:
        kernels = replace(base, cache=True)
    formats = [f for f in ("bfloat16", "int8", "int4") if f != subject.base_format]
    if facts.capability is not None and facts.capability >= FP8_CAPABILITY:
        formats.append("fp8")
    return found + [Variant(name=f"{f} weights", options=replace(kernels, weights=f)) for f in formats]


def ablate(subject: Subject, *, batches: Sequence[int], num_steps: int) -> Ablation:
    """Time every variant at every batch size.

    Args:
        num_steps: steps of a row, fewer where they take long.
    """
    rows: list[AblationRow] = []
    left_out: list[str] = []
    first: dict[int, float] = {}
    variants, probe = variants_of(subject, facts_of(subject.device)), BandwidthProbe(subject.device)
    for variant in track(variants, description="ablation"):
        alone: float | None = None
        for batch in sorted(batches):
            # Without a cache, the time grows with the batch; with one, never more than that.
            if alone is not None and alone * batch > ROW_BUDGET_S:
                left_out.append(f"{variant.name}, batch {batch} (too slow)")
                continue
            try:
                row = measure_row(subject, variant, batch, num_steps, probe)
            except DeviceError as error:
                # What was measured so far took minutes.
                left_out.append(f"{variant.name}, batch {batch} ({error})")
                continue
            alone = row.tpot_s / batch if alone is None else alone
            if variant is variants[0]:
                first[batch] = row.tpot_s
            rows.append(replace(row, speedup=first[batch] / row.tpot_s if batch in first else None))
    return Ablation(
        subject=subject.name,
        random=subject.random,
        device=str(subject.device),
        threads=torch.get_num_threads(),
        rows=tuple(sorted(rows, key=lambda row: row.batch)),
        left_out=tuple(left_out),
    )


def measure_row(subject: Subject, variant: Variant, batch: int, num_steps: int, probe: BandwidthProbe) -> AblationRow:
    """One variant at one batch size, with a probe of the bandwidth on either side."""
    decoder = subject.decoder(variant.options)
    engine = make_engine(decoder, subject.cache_spec, subject.plan, num_slots=batch, options=variant.options)
    bandwidth = probe(2)
    seconds = time_steps(engine, subject, num_steps)
    bandwidth = max(bandwidth, probe(2))
    read = sum(engine.step_bytes(batch, subject.start))
    tpot = statistics.median(seconds)
    return AblationRow(
        name=variant.name,
        batch=batch,
        num_steps=len(seconds),
        tpot_s=tpot,
        tpot_p95_s=sorted(seconds)[int(0.95 * (len(seconds) - 1))],
        object_s=tpot * subject.plan.num_steps / batch,
        num_bytes=read,
        read_bytes_per_s=read / tpot,
        bandwidth_bytes_per_s=bandwidth,
        speedup=None,
        resident_bytes=max(0, held_bytes(subject.device) - probe.num_bytes),
    )


def time_steps(engine: Engine, subject: Subject, num_steps: int) -> list[float]:
    """Seconds per step of launches from the subject's start on; the first one warms up and is left out."""
    total = subject.plan.num_steps
    for _ in range(engine.runner.num_slots):
        engine.join(Request(prompt=None, num_tokens=total))
    engine.seek(subject.start)
    warm_up, seconds = 0.0, list[float]()
    began, before = time.perf_counter(), engine.num_steps
    while engine.slots and len(seconds) < num_steps:
        started = time.perf_counter()
        engine.step()
        _wait(subject.device)
        spent, count = time.perf_counter() - started, engine.num_steps - before
        before = engine.num_steps
        if warm_up:
            seconds += [spent / count] * count
        else:
            warm_up = spent / count
        enough = len(seconds) >= MIN_STEPS or warm_up > 1
        if enough and time.perf_counter() - began > ROW_BUDGET_S:
            break
    for slot in list(engine.slots):
        engine.leave(slot.handle)
    return seconds or [warm_up]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
