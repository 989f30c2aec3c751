"""One training loop for all models: resumable to the step, interruptible, with metrics and plots on disk."""

from __future__ import annotations

import copy
import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, get_args

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from helicube.errors import InputError, MissingExtraError
from helicube.pipelines.shape_model import check_device
from helicube.train.metrics_log import add_row, drop_rows_after
from helicube.train.optimizers import OptimizerKind, Optimizers
from helicube.train.state_file import STATE_FILE, check_same_run, read_state
from helicube.train.stopping import Stop, stopping_between_steps

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

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: one is out of range.
            DeviceError: there is no such device.
        """
        for name, lowest in (("steps", 1), ("eval_every", 1), ("seed", 0), ("warmup", 0)):
            if (value := getattr(self, name)) < lowest:
                raise InputError(f"{name}={value} must be at least {lowest}; give a larger --{name.replace('_', '-')}")
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise InputError(f"lr={self.lr} must be above zero and finite; give another --lr")
        if self.optimizer not in get_args(OptimizerKind):
            raise InputError(f"optimizer={self.optimizer!r} must be one of {', '.join(get_args(OptimizerKind))}")
        check_device(self.device)


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
        # Moving averages of what steps log.
        self.recent: dict[str, float] = {}
        # The step that state.pt stands at.
        self.saved_step = 0
        self.optimizer = Optimizers(task.model, config.optimizer, lr=config.lr, weight_decay=config.weight_decay)
        self.average = copy.deepcopy(task.model).eval().requires_grad_(False)

    def advance(self, *, save_first: bool = False) -> None:
        """One step.

        Args:
            save_first: save the weights as they are before the step, once their loss is known to be finite: a run
                that diverges is resumed from weights that had not.
        """
        rng = np.random.default_rng((self.config.seed, self.step))
        torch.manual_seed(int(rng.integers(2**62)))
        self.optimizer.set_lr(learning_rate(self.config, self.step))
        started = time.perf_counter()
        self.task.model.train()
        loss, logged = self.task.loss(self.step, rng)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.task.model.parameters(), self.config.grad_clip)
        logged = {"loss": float(loss.detach()), "grad_norm": float(norm), **logged}
        self._check_finite(logged["loss"], logged["grad_norm"])
        if save_first:
            self.save()
        self.optimizer.step()
        self._follow()
        self.step += 1
        self.seconds += time.perf_counter() - started
        for key, value in logged.items():
            self.recent[key] = value if key not in self.recent else 0.98 * self.recent[key] + 0.02 * value

    def _check_finite(self, loss: float, grad_norm: float) -> None:
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            what = f"the gradient is {grad_norm}" if math.isfinite(loss) else f"loss is {loss}"
            raise InputError(
                f"{what} at step {self.step}; lower --lr (now {self.config.lr:g}): "
                f"the same command goes on from step {self.saved_step}"
            )

    @torch.no_grad()
    def _follow(self) -> None:
        # A short memory at first, so that the average forgets the random start.
        keep = min(self.config.ema, (self.step + 1) / (self.step + 10))
        mine: list[Tensor] = list(self.average.parameters())
        theirs: list[Tensor] = list(self.task.model.parameters())
        torch._foreach_lerp_(mine, theirs, 1 - keep)
        for average, current in zip(self.average.buffers(), self.task.model.buffers(), strict=True):
            average.copy_(current)

    def describe(self) -> dict[str, Any]:
        """The task, and what of the loop may not change on the way; steps and learning rate may."""
        c = self.config
        loop = {"optimizer": c.optimizer, "seed": c.seed, "weight_decay": c.weight_decay, "grad_clip": c.grad_clip}
        return self.task.describe() | {"loop": {**loop, "ema": c.ema}}

    def save(self) -> None:
        state = {
            "description": self.describe(),
            "step": self.step,
            "steps": self.config.steps,
            "seconds": self.seconds,
            "recent": self.recent,
            "model": self.task.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        # Under one name: many kills must not leave many files of this size.
        partial = self.config.out / "state.partial"
        try:
            torch.save(state, partial)
            partial.replace(self.config.out / STATE_FILE)
        except (OSError, RuntimeError) as error:
            # What torch.save raises when a disk is full depends on when it notices.
            partial.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or "most likely the disk is full"
            raise InputError(
                f"cannot write {self.config.out / STATE_FILE} ({reason}); free some space or mend the folder, and give "
                "the same command again: it goes on from the last state that was saved"
            ) from None
        self.saved_step = self.step

    def resume(self) -> None:
        """Go on from `state.pt`, if there is one."""
        path = self.config.out / STATE_FILE
        if path.exists():
            state = read_state(path, self.config.device)
            check_same_run(path, state["description"], self.describe())
            self.task.model.load_state_dict(state["model"])
            self.average.load_state_dict(state["average"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.seconds = state["step"], state["seconds"]
            # States of before it was kept start their averages anew.
            self.recent = dict(state.get("recent", {}))
            self.saved_step = self.step
        drop_rows_after(self.config.out, self.step)


def train(task: Task, config: LoopConfig) -> nn.Module:
    """Train to `config.steps`, resuming from `config.out`; the averaged weights.

    A run that is interrupted finishes its step and writes its state; started again with the same settings, it ends
    with the weights that it would have had without the interruption. The learning rate and the number of steps may be
    others from there on.

    Raises:
        InputError: the folder holds a run with other settings, or cannot be written; or the loss is not finite. The
            state is the last one that was saved before.
        CheckpointError: its state is damaged.
        MissingExtraError: what draws the curves is not installed.
        SystemExit: interrupted, with 130.
    """
    # Known now, not at the first evaluation.
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "train")
    config.out.mkdir(parents=True, exist_ok=True)
    # Subnormal activations make steps up to eight times slower on x86; whoever trains may want them afterwards.
    torch.set_flush_denormal(True)
    try:
        return _trained(task, config)
    finally:
        torch.set_flush_denormal(False)


def _trained(task: Task, config: LoopConfig) -> nn.Module:
    run = Run(task, config)
    run.resume()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with stopping_between_steps() as stop, Progress(*columns) as progress:
        bar = progress.add_task("training", total=config.steps, completed=run.step)
        _advance_all(run, stop, lambda text: progress.update(bar, completed=run.step, description=text))
        if run.step < config.steps:
            progress.console.print(f"interrupted at step {run.step}; the same command goes on from here")
            raise SystemExit(130)
    return run.average


def _advance_all(run: Run, stop: Stop, show: Callable[[str], None]) -> None:
    config, saved = run.config, time.monotonic()
    while run.step < config.steps and not stop.is_asked:
        is_due = time.monotonic() - saved > config.save_every_s
        run.advance(save_first=is_due)
        saved = time.monotonic() if is_due else saved
        if run.step % 10 == 0 or run.step == config.steps:
            show(f"loss {run.recent['loss']:.4f}")
        if run.step % config.eval_every == 0 or run.step == config.steps:
            found = run.task.evaluate(run.average)
            try:
                add_row(config.out, {"step": run.step, "seconds": round(run.seconds, 1), **run.recent, **found})
            except InputError:
                # The steps are worth more than their curve.
                run.save()
                raise
    if run.step > run.saved_step:
        run.save()
