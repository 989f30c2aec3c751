"""The training loop: resumed equals uninterrupted, other settings are refused, metrics and plots appear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from helicube.errors import InputError
from helicube.train.loop import LoopConfig, learning_rate, train


class Line:
    """Fit y = 3x + 1 from noisy points."""

    def __init__(self, width: int = 4, stop_at: int | None = None) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))
        self.width, self.stop_at = width, stop_at

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:
        if step == self.stop_at:
            raise KeyboardInterrupt
        x = torch.from_numpy(rng.normal(size=(32, 1)).astype(np.float32))
        noisy = x + 0.01 * torch.randn_like(x)
        return ((self.model(noisy) - 3 * x - 1) ** 2).mean(), {"extra": 1.0}

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        x = torch.linspace(-1, 1, 9)[:, None]
        with torch.no_grad():
            return {"error": float((model(x) - 3 * x - 1).abs().mean())}

    def describe(self) -> dict[str, Any]:
        return {"width": self.width}


def config(out: Path, **changes: Any) -> LoopConfig:
    return LoopConfig(**{"out": out, "steps": 60, "lr": 0.05, "warmup": 5, "eval_every": 20, **changes})


def test_interrupted_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    whole = train(Line(), config(tmp_path / "whole"))
    with pytest.raises(SystemExit) as stopped:
        train(Line(stop_at=33), config(tmp_path / "parts"))
    assert stopped.value.code == 130
    resumed = train(Line(), config(tmp_path / "parts"))
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    rows = [json.loads(line) for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [20, 40, 60]
    assert rows[-1]["error"] < rows[0]["error"]
    assert (tmp_path / "parts" / "metrics.png").stat().st_size > 1000
    assert not list((tmp_path / "parts").glob("*partial*"))


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    train(Line(), config(tmp_path, steps=2))
    with pytest.raises(InputError, match="width"):
        train(Line(width=5), config(tmp_path, steps=4))


def test_infinite_loss_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lower --lr \(now 1e\+30\)"):
        train(Line(), config(tmp_path, lr=1e30, warmup=1))


def test_learning_rate_rises_stays_and_falls(tmp_path: Path) -> None:
    c = config(tmp_path, steps=100, warmup=10, lr=1.0, decay_share=0.2)
    assert learning_rate(c, 0) == pytest.approx(0.1)
    assert learning_rate(c, 50) == 1.0
    assert learning_rate(c, 90) == pytest.approx(0.5)
    assert learning_rate(c, 100) == 0.0
