"""The checkpoint of a training run, `state.pt`: reading it, and comparing its settings with those now asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from helicube.errors import CheckpointError, InputError

__all__ = ["STATE_FILE", "check_same_run", "read_state"]

STATE_FILE = "state.pt"

# What every state has held from the first.
KEYS = {"description", "step", "seconds", "model", "average", "optimizer"}

# Parts of a description that came later: states without them are taken as they are.
LATER = {"kind", "loop", "text", "code", "start"}


def read_state(path: Path, device: str = "cpu") -> dict[str, Any]:
    """What a run has saved.

    Raises:
        CheckpointError: the file is damaged, or not the state of a run.
    """
    remedy = "name another folder, or remove the file and train again"
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # noqa: BLE001 - of a file that is no pickle, torch.load raises whatever it stumbles over
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise CheckpointError(f"{path} is damaged ({reason}); {remedy}") from None
    parts = [state.get(key) for key in ("description", "model", "average")] if isinstance(state, dict) else []
    if not (parts and state.keys() >= KEYS and all(isinstance(part, dict) for part in parts)):
        raise CheckpointError(f"{path} is not the state of a training run; {remedy}")
    return state


def check_same_run(path: Path, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """Compare the description in a state with that of the run which is to go on from it.

    Raises:
        InputError: they differ.
    """
    theirs = {name: mine[name] for name in LATER & mine.keys()} | theirs
    if theirs.get("kind") != mine.get("kind"):
        raise InputError(
            f"{path} is of `helicube train {theirs.get('kind')}`, not of `train {mine.get('kind')}`; give another --out"
        )
    if found := differences(theirs, mine):
        listed = ", ".join(found[:5])
        raise InputError(f"{path} was trained with other settings ({listed}); give the same, or another --out")


def differences(theirs: dict[str, Any], mine: dict[str, Any]) -> list[str]:
    """What differs between two descriptions, setting by setting: "model.width is 4 there and 5 here"."""
    found: list[str] = []
    for name in sorted(theirs.keys() | mine.keys()):
        there, here = theirs.get(name), mine.get(name)
        if isinstance(there, dict) and isinstance(here, dict):
            found += [f"{name}.{difference}" for difference in differences(there, here)]
        elif _plain(there) != _plain(here):
            found.append(f"{name} is {str(there)[:24]} there and {str(here)[:24]} here")
    return found


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
