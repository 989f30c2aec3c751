"""The training loop: resumed equals uninterrupted, other settings are refused, metrics and plots appear."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from helicube.errors import CheckpointError, DeviceError, InputError, MissingExtraError
from helicube.train.loop import LoopConfig, Run, learning_rate, train
from helicube.train.muon import Muon
from helicube.train.state_file import read_state


class Line:
    """Fit y = 3x + 1 from noisy points."""

    def __init__(self, width: int = 16) -> None:
        torch.manual_seed(0)
        # One matrix is wide enough on both sides for Muon.
        self.model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 16), nn.Linear(16, 1))
        self.width = width

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:  # noqa: ARG002 - Task's
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


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run but for what the clock says."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without any interruption, with the averaged weights in `average.pt`, and plots."""
    folder = tmp_path_factory.mktemp("whole")
    torch.save(weights(train(Line(), config(folder, optimizer="muon"))), folder / "average.pt")
    return folder


@pytest.fixture(autouse=True)
def _no_plots(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all the steps."""
    monkeypatch.setattr("helicube.train.metrics_log.plot_metrics", lambda _: None)


def signal_in(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    """Have a signal arrive at step 33: in the loss, between the two optimisers, or after the averages have moved."""
    owner, name = {"loss": (Line, "loss"), "optimizers": (Muon, "step"), "average": (Run, "_follow")}[place]
    original, calls = getattr(owner, name), iter(range(1000))

    def interrupted(self: Any, *arguments: Any) -> Any:
        found = None if place == "optimizers" else original(self, *arguments)
        if next(calls) == 33:
            signal.raise_signal(number)
        return original(self, *arguments) if place == "optimizers" else found

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize(
    ("place", "number"), [("loss", signal.SIGINT), ("optimizers", signal.SIGTERM), ("average", signal.SIGINT)]
)
def test_interrupted_and_resumed_equals_uninterrupted(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, place: str, number: int
) -> None:
    parts = tmp_path / "parts"
    with monkeypatch.context() as patched:
        signal_in(patched, place, number)
        with pytest.raises(SystemExit) as stopped:
            train(Line(), config(parts, optimizer="muon"))
    assert stopped.value.code == 130
    assert read_state(parts / "state.pt")["step"] == 34, "the step was finished"
    resumed = train(Line(), config(parts, optimizer="muon"))
    for a, b in zip(torch.load(whole / "average.pt"), weights(resumed), strict=True):
        assert torch.equal(a, b)
    rows = rows_of(parts)
    assert [row["step"] for row in rows] == [20, 40, 60]
    assert rows == rows_of(whole), "averages of what is logged go on too"
    assert rows[-1]["error"] < rows[0]["error"]
    assert (whole / "metrics.png").stat().st_size > 1000
    assert not list(parts.glob("*partial*"))


def test_a_second_signal_ends_at_once_and_handlers_are_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    signal_in(monkeypatch, "loss", signal.SIGINT)
    signal_in(monkeypatch, "average", signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        train(Line(), config(tmp_path))
    assert not (tmp_path / "state.pt").exists(), "nothing of a step half done"
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tmp_path / "parts"

    def killed(self: Any, model: nn.Module) -> dict[str, float]:
        if (parts / "metrics.jsonl").exists():
            raise MemoryError
        return original(self, model)

    original = Line.evaluate
    # Each step saves before it begins, so that the last state is from step 39, then the row of step 40 is lost.
    with monkeypatch.context() as patched:
        patched.setattr(Line, "evaluate", killed)
        with pytest.raises(MemoryError):
            train(Line(), config(parts, optimizer="muon", save_every_s=0))
    state = read_state(parts / "state.pt")
    assert state["step"] == 39
    with (parts / "metrics.jsonl").open("a") as log:
        log.write('{"step": 40, "loss": 1.0}\n{"step": 4')
    for a, b in zip(
        torch.load(whole / "average.pt"), weights(train(Line(), config(parts, optimizer="muon"))), strict=True
    ):
        assert torch.equal(a, b)
    assert rows_of(parts) == rows_of(whole)


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    train(Line(), config(tmp_path, steps=2))
    with pytest.raises(InputError, match="width is 16 there and 17 here"):
        train(Line(width=17), config(tmp_path, steps=4))
    with pytest.raises(InputError, match=r"loop\.seed is 0 there and 1 here"):
        train(Line(), config(tmp_path, steps=4, seed=1))
    with pytest.raises(InputError, match=r"loop\.optimizer is adamw there and muon here"):
        train(Line(), config(tmp_path, steps=4, optimizer="muon"))
    train(Line(), config(tmp_path, steps=4, lr=0.01))
    assert read_state(tmp_path / "state.pt")["step"] == 4


def test_states_that_say_nothing_of_the_loop_go_on(tmp_path: Path) -> None:
    """As they were written before it was kept."""
    train(Line(), config(tmp_path, steps=20))
    state = read_state(tmp_path / "state.pt")
    old = {key: value for key, value in state.items() if key not in {"steps", "recent"}}
    torch.save(old | {"description": {"width": 16}}, tmp_path / "state.pt")
    train(Line(), config(tmp_path, steps=40))
    assert read_state(tmp_path / "state.pt")["step"] == 40
    assert [row["step"] for row in rows_of(tmp_path)] == [20, 40]
    torch.save(old | {"description": {"width": 16}}, tmp_path / "state.pt")
    with pytest.raises(InputError, match="not one of --optimizer muon"):
        train(Line(), config(tmp_path, steps=40, optimizer="muon"))


def test_a_damaged_state_is_one_clear_line(tmp_path: Path) -> None:
    train(Line(), config(tmp_path, steps=2))
    path = tmp_path / "state.pt"
    whole = path.read_bytes()
    for damaged in (b"", b"nonsense", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged"):
            train(Line(), config(tmp_path, steps=4))
        assert path.read_bytes() == damaged
    torch.save({"step": 3}, path)
    with pytest.raises(CheckpointError, match="not the state of a training run"):
        train(Line(), config(tmp_path, steps=4))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("enforce fail at inline_co")])
def test_a_full_disk_is_one_clear_line_and_the_last_state_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    train(Line(), config(tmp_path, steps=2))
    before = (tmp_path / "state.pt").read_bytes()

    def save(state: Any, path: Path) -> None:
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr("helicube.train.loop.torch.save", save)
    with pytest.raises(
        InputError, match=r"cannot write .*state\.pt \((No space left|most likely the disk is full).*free some space"
    ):
        train(Line(), config(tmp_path, steps=4))
    assert (tmp_path / "state.pt").read_bytes() == before
    assert not list(tmp_path.glob("*partial*"))


def test_steps_outlive_metrics_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*metrics\.jsonl and its picture \(.*free some space"):
        train(Line(), config(tmp_path, steps=20))
    assert read_state(tmp_path / "state.pt")["step"] == 20
    (tmp_path / "metrics.jsonl").rmdir()
    (tmp_path / "metrics.jsonl").write_bytes(b"\xff\xfe\n")
    train(Line(), config(tmp_path, steps=40))
    assert [row["step"] for row in rows_of(tmp_path)] == [40]


def test_what_draws_the_curves_is_missed_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # noqa: ARG005 - as there
    with pytest.raises(MissingExtraError, match="matplotlib"):
        train(Line(), config(tmp_path / "run", steps=2))
    assert not (tmp_path / "run").exists()


def test_infinite_loss_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lower --lr \(now 1e\+30\)"):
        train(Line(), config(tmp_path, lr=1e30, warmup=1))
    assert not (tmp_path / "state.pt").exists()


@pytest.mark.parametrize("save_every_s", [0, 300])
def test_a_run_that_diverged_goes_on_with_a_lower_rate(tmp_path: Path, save_every_s: float) -> None:
    parts = tmp_path / "parts"
    whole = train(Line(), config(tmp_path / "whole"))
    # Of 60 steps, so that the learning rate of the first 20 is the same.
    train(Line(), config(tmp_path / "short", steps=20, decay_share=1e-9))
    parts.mkdir()
    (tmp_path / "short" / "state.pt").rename(parts / "state.pt")
    with pytest.raises(InputError, match="goes on from step 20"):
        train(Line(), config(parts, lr=1e30, save_every_s=save_every_s))
    assert read_state(parts / "state.pt")["step"] == 20
    resumed = train(Line(), config(parts))
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"eval_every": 0}, {"seed": -1}, {"lr": 0.0}, {"lr": float("nan")}, {"optimizer": "sgd"}]
)
def test_settings_out_of_range_are_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
        config(tmp_path, **wrong)
    with pytest.raises(DeviceError, match="choose cpu"):
        config(tmp_path, device="nonsense")


def test_learning_rate_rises_stays_and_falls(tmp_path: Path) -> None:
    c = config(tmp_path, steps=100, warmup=10, lr=1.0, decay_share=0.2)
    assert learning_rate(c, 0) == pytest.approx(0.1)
    assert learning_rate(c, 50) == 1.0
    assert learning_rate(c, 90) == pytest.approx(0.5)
    assert learning_rate(c, 100) == 0.0
