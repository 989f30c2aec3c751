"""Two steps and an evaluation of every training task on a GPU, and going on there from its state."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from helicube.train.loop import LoopConfig, train
from helicube.train.state_file import read_state
from train_cases import make_task
from triton_cases import DEVICE, GPU_ONLY

pytestmark = GPU_ONLY


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("kind", ["shape", "colors", "cube", "decoder"])
def test_a_run_steps_evaluates_and_goes_on(kind: str, optimizer: str, tmp_path: Path) -> None:
    for steps in (2, 4):
        average = train(
            make_task(kind, DEVICE),
            LoopConfig(out=tmp_path, steps=steps, eval_every=2, device=DEVICE, optimizer=optimizer),  # type: ignore[arg-type]
        )
        assert all(p.device.type == "cuda" for p in average.parameters())
        assert all(bool(torch.isfinite(p).all()) for p in average.parameters())
        state = read_state(tmp_path / "state.pt")
        assert state["step"] == steps
        assert math.isfinite(state["recent"]["loss"])
