"""What finished, or interrupted, runs hold: their states, and the models they make."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from torch import nn

from helicube.errors import CheckpointError, InputError
from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig, LatticeColors
from helicube.models.cube.stored_config import read_config
from helicube.train import color_task, lattice_task
from helicube.train.state_file import STATE_FILE, read_state

__all__ = [
    "TokenizerRuns",
    "how_far",
    "load_code",
    "load_colors",
    "load_shape",
    "load_state",
    "settings",
]

M = TypeVar("M", bound=nn.Module)
C = TypeVar("C")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerRuns:
    """Folders of the two runs that make a tokenizer."""

    shape: Path
    colors: Path


def load_code(runs: TokenizerRuns) -> LatticeCode:
    """The tokenizer of two runs."""
    shape = load_shape(runs.shape)
    paint = load_colors(runs.colors, shape.config)
    code = LatticeCode(shape.config, paint.config)
    code.shape, code.paint = shape, paint
    return code.eval().requires_grad_(False)


def load_colors(run: Path, shape: LatticeConfig) -> LatticeColors:
    """The averaged colours of a run."""
    state = load_state(run, color_task.KIND)
    return _averaged(LatticeColors(settings(run, state, ColorConfig, color_task.KIND), shape), state, run)


def load_shape(run: Path) -> LatticeTokenizer:
    """The averaged shape tokenizer of a run."""
    state = load_state(run, lattice_task.KIND)
    return _averaged(LatticeTokenizer(settings(run, state, LatticeConfig, lattice_task.KIND)), state, run)


def load_state(run: Path, kind: str | None = None) -> dict[str, Any]:
    """The checkpoint of a run.

    Args:
        kind: what `helicube train` must have trained there ("tokenizer", "colors", "decoder").

    Raises:
        InputError: there is none.
        CheckpointError: it is damaged, or of another kind.
    """
    path = run / STATE_FILE
    if not path.is_file():
        raise InputError(f"{path} is missing; name the --out folder of a `helicube train {kind or '...'}` run")
    state = read_state(path)
    if not all(isinstance(state["description"].get(part), dict) for part in ("model", "task")):
        raise CheckpointError(f"{path} does not say what was trained; name the --out folder of a `helicube train` run")
    # States of before kinds were kept are told by their settings, when a model is made of them.
    if kind is not None and state["description"].get("kind", kind) != kind:
        raise refuse_kind(run, kind)
    return state


def refuse_kind(run: Path, kind: str) -> CheckpointError:
    """The error for a run of another kind."""
    return CheckpointError(f"{run} is not a run of `helicube train {kind}`; name the --out folder of one")


def how_far(run: Path) -> str:
    """Where a run stands, for a person to see."""
    state = load_state(run)
    goal = state.get("steps")
    return f"{run}: step {state['step']}" + ("" if goal is None else f" of {goal}")


def settings(run: Path, state: dict[str, Any], config: type[C], kind: str) -> C:
    """The sizes of what a run has trained.

    Raises:
        CheckpointError: they are of another kind, or no sizes that a model can have.
    """
    said = state["description"]
    if "kind" not in said and not said["model"].keys() <= {field.name for field in fields(cast(Any, config))}:
        raise refuse_kind(run, kind)
    return read_config(config, said["model"], f"{run / STATE_FILE} as its sizes")


def _averaged(model: M, state: dict[str, Any], run: Path) -> M:
    try:
        model.load_state_dict(state["average"])
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:120]
        raise CheckpointError(
            f"{run / STATE_FILE} does not fit its own settings ({reason}); train it again, or for the same tokenizer"
        ) from None
    return model.eval().requires_grad_(False)
