"""One training loop for all models: resumable to the step, interruptible, with metrics and plots on disk."""

from __future__ import annotations

import copy
import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from helicube.errors import InputError
from helicube.train.optimizers import OptimizerKind, Optimizers
from helicube.train.plots import plot_metrics

__all__ = ["LoopConfig", "Task", "train"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """How long and how fast."""

    # Folder of state.pt, metrics.jsonl and metrics.png.
    out: Path
    # Optimiser steps in all; the learning rate falls to zero over the last `decay_share` of them.
    steps: int = 20_000
    # AdamW, or Muon for the hidden matrices.
    optimizer: OptimizerKind = "adamw"
    # Peak learning rate, reached after `warmup` steps.
    lr: float = 1e-3
    warmup: int = 200
    decay_share: float = 0.2
    weight_decay: float = 0.01
    grad_clip: float = 1.0
    # Decay of the moving average of the weights, which is what is evaluated and exported.
    ema: float = 0.999
    # Steps between evaluations, and seconds between checkpoints.
    eval_every: int = 500
    save_every_s: float = 300.0
    # Batches and noise are drawn from (seed, step), so a resumed run repeats an uninterrupted one.
    seed: int = 0
    device: str = "cpu"


class Task(Protocol):
    """What is trained."""

    @property
    def model(self) -> nn.Module:
        """The weights that change."""
        ...

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:
        """Scalar loss of a fresh batch, and numbers to log."""
        ...

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Numbers on unseen items, for the averaged weights."""
        ...

    def describe(self) -> dict[str, Any]:
        """Plain configuration, stored in the checkpoint and compared on resuming."""
        ...


class Stop(Exception):  # noqa: N818 - a request, not an error
    """SIGTERM or Ctrl-C arrived."""


def learning_rate(config: LoopConfig, step: int) -> float:
    """Linear warm-up, constant, then linear decay to zero."""
    warm = min(1.0, (step + 1) / max(1, config.warmup))
    left = (config.steps - step) / max(1.0, config.steps * config.decay_share)
    return config.lr * warm * min(1.0, max(0.0, left))


class Run:
    """A task with its optimiser, averaged weights and place in time; owner of everything in state.pt."""

    def __init__(self, task: Task, config: LoopConfig) -> None:
        self.task, self.config = task, config
        self.step = 0
        self.seconds = 0.0
        self.optimizer = Optimizers(task.model, config.optimizer, lr=config.lr, weight_decay=config.weight_decay)
        self.average = copy.deepcopy(task.model).eval().requires_grad_(False)

    def advance(self) -> dict[str, float]:
        rng = np.random.default_rng((self.config.seed, self.step))
        torch.manual_seed(int(rng.integers(2**62)))
        self.optimizer.set_lr(learning_rate(self.config, self.step))
        started = time.perf_counter()
        self.task.model.train()
        loss, logged = self.task.loss(self.step, rng)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.task.model.parameters(), self.config.grad_clip)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise InputError(f"loss is {value} at step {self.step}; lower --lr (now {self.config.lr:g}) and resume")
        self.optimizer.step()
        self._follow()
        self.step += 1
        self.seconds += time.perf_counter() - started
        return {"loss": value, "grad_norm": float(norm), **logged}

    @torch.no_grad()
    def _follow(self) -> None:
        # A short memory at first, so that the average forgets the random start.
        keep = min(self.config.ema, (self.step + 1) / (self.step + 10))
        mine: list[Tensor] = list(self.average.parameters())
        theirs: list[Tensor] = list(self.task.model.parameters())
        torch._foreach_lerp_(mine, theirs, 1 - keep)
        for average, current in zip(self.average.buffers(), self.task.model.buffers(), strict=True):
            average.copy_(current)

    def save(self) -> None:
        state = {
            "description": self.task.describe(),
            "step": self.step,
            "seconds": self.seconds,
            "model": self.task.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        partial = self.config.out / "state.partial"
        torch.save(state, partial)
        partial.replace(self.config.out / "state.pt")

    def resume(self) -> bool:
        path = self.config.out / "state.pt"
        if not path.exists():
            return False
        state = torch.load(path, map_location=self.config.device, weights_only=True)
        mine = self.task.describe()
        if state["description"] != mine:
            theirs = state["description"]
            differ = ", ".join(sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k)))
            raise InputError(f"{path} was trained with other settings ({differ}); give the same, or another --out")
        self.task.model.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        return True


@contextmanager
def stopping_cleanly() -> Iterator[None]:
    """Turn SIGTERM into Stop, as Ctrl-C is KeyboardInterrupt."""

    def raise_stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGTERM, raise_stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def train(task: Task, config: LoopConfig) -> nn.Module:
    """Train to `config.steps`, resuming from `config.out`; the averaged weights.

    A run that is interrupted writes its state first; started again with the same settings, it goes on where it stood.

    Raises:
        InputError: the folder holds a run with other settings, or the loss is not finite.
    """
    config.out.mkdir(parents=True, exist_ok=True)
    # Subnormal activations make steps up to eight times slower on x86.
    torch.set_flush_denormal(True)
    run = Run(task, config)
    run.resume()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with stopping_cleanly(), Progress(*columns) as progress:
        bar = progress.add_task("training", total=config.steps, completed=run.step)
        try:
            _advance_all(run, lambda text: progress.update(bar, completed=run.step, description=text))
        except (KeyboardInterrupt, Stop):
            progress.console.print(f"interrupted at step {run.step}; the same command goes on from here")
            raise SystemExit(130) from None
        finally:
            run.save()
    return run.average


def _advance_all(run: Run, show: Any) -> None:
    config, saved = run.config, time.monotonic()
    recent: dict[str, float] = {}
    while run.step < config.steps:
        logged = run.advance()
        for key, value in logged.items():
            recent[key] = value if key not in recent else 0.98 * recent[key] + 0.02 * value
        if run.step % 10 == 0:
            show(f"loss {recent['loss']:.4f}")
        if run.step % config.eval_every == 0 or run.step == config.steps:
            row = {"step": run.step, "seconds": round(run.seconds, 1), **recent, **run.task.evaluate(run.average)}
            with (config.out / "metrics.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps(row) + "\n")
            plot_metrics(config.out)
        if time.monotonic() - saved > config.save_every_s:
            run.save()
            saved = time.monotonic()
