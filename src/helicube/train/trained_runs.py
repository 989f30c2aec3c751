"""What finished, or interrupted, runs hold: their states, and the models they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from helicube.errors import CheckpointError, InputError
from helicube.models.cube.default import DefaultWeights, load_default
from helicube.models.cube.formats import hold_matrices
from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig, LatticeColors
from helicube.models.cube.match import MatchConfig, ShapeTextMatch
from helicube.train import color_task, lattice_task, match_task
from helicube.train.state_file import STATE_FILE, read_state

__all__ = [
    "TokenizerRuns",
    "how_far",
    "load_code",
    "load_colors",
    "load_match",
    "load_shape",
    "load_state",
    "load_weights",
    "own_table",
    "refuse_kind",
]

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerRuns:
    """Folders of the two runs that make a tokenizer."""

    shape: Path
    colors: Path


def load_weights(folder: Path) -> DefaultWeights:
    """A whole model of a folder, its matrices in float32 whatever they are stored in.

    Raises:
        CheckpointError: there is none, or a damaged one.
    """
    weights = load_default(folder)
    hold_matrices(weights.decoder, "float32", native=False)
    return replace(weights, form="float32")


def own_table(model: Path) -> Path | None:
    """The text table in a model's folder; None where it reads prompts with the bundled one."""
    return model / "text" if (model / "text").is_dir() else None


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
    try:
        paint = LatticeColors(ColorConfig(**_tuples(state["description"]["model"])), shape)
    except TypeError:
        raise refuse_kind(run, color_task.KIND) from None
    return _averaged(paint, state, run)


def load_shape(run: Path) -> LatticeTokenizer:
    """The averaged shape tokenizer of a run."""
    state = load_state(run, lattice_task.KIND)
    try:
        model = LatticeTokenizer(LatticeConfig(**_tuples(state["description"]["model"])))
    except TypeError:
        raise refuse_kind(run, lattice_task.KIND) from None
    return _averaged(model, state, run)


def load_match(run: Path) -> ShapeTextMatch:
    """What a run learnt of which objects fit which prompts, averaged."""
    state = load_state(run, match_task.KIND)
    try:
        match = ShapeTextMatch(MatchConfig(**_tuples(state["description"]["model"])))
    except TypeError:
        raise refuse_kind(run, match_task.KIND) from None
    return _averaged(match, state, run)


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


def _averaged(model: M, state: dict[str, Any], run: Path) -> M:
    try:
        model.load_state_dict(state["average"])
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:120]
        raise CheckpointError(
            f"{run / STATE_FILE} does not fit ({reason}); was it trained for another shape run?"
        ) from None
    return model.eval().requires_grad_(False)


def _tuples(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
