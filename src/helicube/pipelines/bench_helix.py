"""`helicube bench helix`: what each layout holds, sends and takes here, and how far it is from one device."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from helicube.engine.faults import device_faults
from helicube.errors import InputError
from helicube.parallel.collectives import SoloCollectives
from helicube.parallel.collectives_threads import ThreadPool
from helicube.parallel.environment import is_rank
from helicube.parallel.launch import launch
from helicube.parallel.pool import num_gpus, rank_device
from helicube.pipelines.bench_layout import BenchModel, Row, Subject, Work, measure_all, open_bench_model
from helicube.pipelines.measured import write_measured
from helicube.specs.layout import HelixLayout, legal_layouts

__all__ = ["BenchOptions", "bench_helix", "write_rows"]

# Seconds that a collective may take on an overloaded machine.
TIMEOUT_S = 300.0
# Sequences differ in length by this many tokens.
STEP_OF_LENGTHS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What is measured.

    Raises:
        InputError: a value is out of range.
    """

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
        for name, low in (("batch", 1), ("context", 16), ("steps", 2), ("hopb", 1)):
            if getattr(self, name) < low:
                raise InputError(f"{name}={getattr(self, name)} is too small; choose at least {low}")
        least = STEP_OF_LENGTHS * (self.batch - 1) + 1
        if self.context < least:
            raise InputError(
                f"context={self.context} is too short for batch={self.batch}, as each sequence is {STEP_OF_LENGTHS} "
                f"tokens shorter than the one before; choose a context of at least {least}, or a smaller batch"
            )
        if not self.ranks or min(self.ranks) < 1:
            raise InputError("give the sizes of the pool, each at least 1, such as --ranks 1,2,4")

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each sequence before the timed steps."""
        return tuple(self.context - STEP_OF_LENGTHS * i for i in range(self.batch))


def bench_helix(options: BenchOptions, output: Path | None = None) -> list[Row]:
    """Measure every legal layout of every pool size, one pool after the other.

    Args:
        output: where the rows will be written, see `write_rows`; a place that cannot be is refused at once.

    Raises:
        HelicubeError: a layout or a model that cannot be run, or a rank that failed.
    """
    if is_rank():
        raise InputError("bench helix starts its ranks itself; start it without torchrun, and unset RANK")
    if output is not None:
        _check_output(output)
    model = open_bench_model(options.model)
    for size in options.ranks:
        if not legal_layouts(model.spec, size):
            raise InputError(f"{options.model} has no layout of {size} ranks; leave {size} out of --ranks")
    here = replace(model, device=rank_device(num_gpus(), 0, 1))
    work = Work(lengths=options.lengths, steps=options.steps, hopb=options.hopb)
    with device_faults("measuring one device"):
        # Once, and here, so that no rank holds a whole model beside its part.
        alone = Subject(work, here, HelixLayout(), SoloCollectives()).decode().logits
    rows: list[Row] = []
    for size in options.ranks:
        rows += _pool(options, here, work, alone, size)
    return rows


def _pool(options: BenchOptions, model: BenchModel, work: Work, alone: Tensor, size: int) -> list[Row]:
    """All layouts of one size."""
    if size == 1 or options.in_process:
        layouts = legal_layouts(model.spec, size)
        with device_faults("measuring a layout"):
            return ThreadPool(size, TIMEOUT_S).run(lambda c: measure_all(work, model, layouts, c, alone))[0]
    given = {"model": options.model, "timeout_s": TIMEOUT_S, "work": asdict(work), "alone": alone}
    packed = io.BytesIO()
    torch.save(given, packed)
    argv = [sys.executable, "-m", "helicube.pipelines.rank_process", "bench"]
    return [Row(**row) for row in json.loads(launch(argv, size, given=packed.getvalue()))]


def _check_output(path: Path) -> None:
    """Before minutes of measuring."""
    why = ""
    if path.is_dir():
        why = "it is a folder"
    elif not path.parent.is_dir():
        why = f"there is no folder {path.parent}"
    else:
        # Tried and not asked for: a superuser may write everywhere, except where nobody can.
        trial = path.with_name(f"{path.name}.partial")
        try:
            trial.touch()
            trial.unlink()
        except OSError as error:
            why = str(error.strerror)
    if why:
        raise InputError(f"{path} cannot be written ({why}); name a .json file in a folder of yours")


def write_rows(options: BenchOptions, rows: Sequence[Row], path: Path) -> None:
    """All rows with machine, versions and date.

    Raises:
        InputError: the file cannot be written.
    """
    write_measured({"options": asdict(options), "rows": [asdict(row) for row in rows]}, path)
