"""What each speed feature is worth: the published ablation, continued.

Every row decodes from the middle of a sequence, where the cache is half full, so that its time stands for the average
step; the ids are random, which changes no time.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from rich.progress import track
from rich.table import Table
from torch import nn

from helicube.engine.engine import Engine
from helicube.engine.metrics import cache_bytes, module_bytes, probe_bandwidth
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig
from helicube.errors import InputError
from helicube.models.cube.checkpoint import PUBLISHED
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import load_default

__all__ = ["Ablation", "AblationRow", "Subject", "ablate", "load_subject", "table", "write_json"]

# A row stops after this long, whatever the number of steps asked for.
ROW_BUDGET_S = 20.0
MIN_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The decoder that is timed."""

    name: str
    decoder: CubeDecoder
    plan: IdPlan
    # Text states of a prompt.
    num_text: int
    # Whether the weights are random: the time is the same, the ids mean nothing.
    random: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """One feature set at one batch size, measured."""

    name: str
    batch: int
    num_steps: int
    # Seconds per step.
    tpot_s: float
    tpot_p95_s: float
    # Tokens of one object times the step, shared by the batch.
    object_s: float
    read_bytes_per_s: float
    # Share of the bandwidth probed in the same run.
    bandwidth_share: float
    # Over the first row of the same batch.
    speedup: float
    # Peak resident memory of the process so far.
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """All rows of a run."""

    subject: str
    random: bool
    device: str
    threads: int
    bandwidth_bytes_per_s: float
    rows: tuple[AblationRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One set of features."""

    name: str
    # Makes a runner with that many slots.
    runner: Callable[[int], CubeRunner]
    # What a step reads.
    modules: tuple[nn.Module, ...]


def variants_of(subject: Subject) -> list[Variant]:
    """From the slowest to the fastest."""
    spec = subject.decoder.cache_spec(subject.num_text, subject.plan.num_steps)
    modules = tuple(subject.decoder.step_modules())

    def plain(num_slots: int, *, cache: bool = True) -> CubeRunner:
        return CubeRunner(subject.decoder, spec, num_slots=num_slots, cache=cache)

    return [
        Variant(name="no cache", runner=partial(plain, cache=False), modules=modules),
        Variant(name="+ cache", runner=plain, modules=modules),
    ]


def load_subject(name: str, device: str = "cpu", dtype: torch.dtype | None = None) -> Subject:
    """ "default", or "cube-v0.1" and "cube-v0.5" at their real size with random weights.

    Raises:
        InputError: an unknown name.
        CheckpointError: the bundled model is missing.
    """
    if name == "default":
        weights = load_default(dtype=dtype or torch.float32)
        plan = IdPlan(ranges=weights.code.ranges)
        return Subject(
            name=name, decoder=weights.decoder.to(device), plan=plan, num_text=weights.config.num_text, random=False
        )
    version = name.removeprefix("cube-")
    if version not in PUBLISHED or name == version:
        known = ", ".join(["default", *(f"cube-{v}" for v in PUBLISHED)])
        raise InputError(f"model {name!r} is unknown; choose from {known}")
    config, tokenizer = PUBLISHED[version]
    decoder = random_decoder(config, device, dtype or torch.bfloat16)
    num_steps = tokenizer.num_latents
    plan = IdPlan(ranges=((0, config.shape_model_vocab_size),) * num_steps)
    return Subject(name=name, decoder=decoder, plan=plan, num_text=77, random=True)


def random_decoder(config: DecoderConfig, device: str, dtype: torch.dtype) -> CubeDecoder:
    """A decoder of random weights, made tensor by tensor in its final type."""
    with torch.device("meta"):
        decoder = CubeDecoder(config)
    generator = torch.Generator(device=device).manual_seed(0)
    tensors = {}
    for name, parameter in decoder.named_parameters():
        made = torch.empty(parameter.shape, dtype=dtype, device=device)
        if parameter.dim() < 2:
            tensors[name] = made.fill_(1.0 if name.endswith("norm.weight") else 0.0)
        else:
            tensors[name] = made.normal_(0, parameter.shape[-1] ** -0.5, generator=generator)
    decoder.load_state_dict(tensors, assign=True)
    return decoder.eval().requires_grad_(False)


def ablate(subject: Subject, *, batches: Sequence[int], num_steps: int) -> Ablation:
    """Time every variant at every batch size.

    Args:
        num_steps: steps of a row, fewer where they take long.
    """
    device = subject.decoder.device
    bandwidth = probe_bandwidth(device)
    rows: list[AblationRow] = []
    jobs = [(batch, variant) for batch in batches for variant in variants_of(subject)]
    for batch, variant in track(jobs, description="ablation"):
        seconds = time_steps(subject, variant.runner(batch), batch, num_steps)
        tpot = statistics.median(seconds)
        itemsize = subject.decoder.lm_head.weight.element_size()
        middle = subject.plan.num_steps // 2
        spec = subject.decoder.cache_spec(subject.num_text, subject.plan.num_steps)
        read = module_bytes(variant.modules) + cache_bytes(spec, 2 * batch, middle, itemsize)
        first = next((row.tpot_s for row in rows if row.batch == batch), tpot)
        rows.append(
            AblationRow(
                name=variant.name,
                batch=batch,
                num_steps=len(seconds),
                tpot_s=tpot,
                tpot_p95_s=sorted(seconds)[int(0.95 * (len(seconds) - 1))],
                object_s=tpot * subject.plan.num_steps / batch,
                read_bytes_per_s=read / tpot,
                bandwidth_share=read / tpot / bandwidth,
                speedup=first / tpot,
                peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            )
        )
    return Ablation(
        subject=subject.name,
        random=subject.random,
        device=str(device),
        threads=torch.get_num_threads(),
        bandwidth_bytes_per_s=bandwidth,
        rows=tuple(rows),
    )


def time_steps(subject: Subject, runner: CubeRunner, batch: int, num_steps: int) -> list[float]:
    """Seconds of steps around the middle of a sequence; the first one warms up and is left out."""
    engine = Engine(runner, subject.plan, device=subject.decoder.device)
    weight = subject.decoder.text_proj.weight
    states = torch.zeros(1, subject.num_text, weight.shape[1], dtype=weight.dtype, device=weight.device)
    with torch.inference_mode():
        cond = subject.decoder.condition(states)[0]
    total, start = subject.plan.num_steps, subject.plan.num_steps // 2
    for _ in range(batch):
        engine.join(Request(prompt=Conditioning(cond=cond, uncond=cond), num_tokens=total, sampling=SamplingConfig()))
    for i, slot in enumerate(engine.slots):
        slot.num_fed, slot.chosen = start, [0] * start
        if runner.history is not None:
            runner.history[i] = [0] * start
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) <= min(num_steps, total - start - 1):
        started = time.perf_counter()
        engine.step()
        seconds.append(time.perf_counter() - started)
        if len(seconds) > MIN_STEPS and time.perf_counter() - began > ROW_BUDGET_S:
            break
    return seconds[1:]


def table(ablation: Ablation) -> Table:
    """The rows, for people."""
    weights = "random weights of the real size" if ablation.random else "its own weights"
    bandwidth = ablation.bandwidth_bytes_per_s / 1e9
    title = f"{ablation.subject}, {weights}, {ablation.device} ({ablation.threads} threads), {bandwidth:.0f} GB/s"
    shown = Table(title=title)
    for column in ("batch", "", "TPOT ms", "p95 ms", "s per object", "GB/s", "of bandwidth", "speed-up"):
        shown.add_column(column, justify="left" if not column else "right")
    for row in ablation.rows:
        shown.add_row(
            str(row.batch),
            row.name,
            f"{row.tpot_s * 1e3:.2f}",
            f"{row.tpot_p95_s * 1e3:.2f}",
            f"{row.object_s:.2f}",
            f"{row.read_bytes_per_s / 1e9:.2f}",
            f"{row.bandwidth_share:.0%}",
            f"{row.speedup:.1f} ×",
        )
    return shown


def write_json(ablation: Ablation, path: Path) -> None:
    """All rows with machine, versions and date, whole or not at all."""
    machine = {
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }
    partial_path = path.with_name(path.name + ".partial")
    partial_path.write_text(json.dumps({"machine": machine, **asdict(ablation)}, indent=1) + "\n", encoding="utf-8")
    partial_path.replace(path)
