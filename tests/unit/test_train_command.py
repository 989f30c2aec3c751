"""Mistakes with `helicube train` are told in one line, before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from helicube.cli.train import command
from helicube.errors import HelicubeError

RUN = ["--data", "items", "--out", "run"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["tokenizer", *RUN, "--grid", "5"],
            "grid=5 does not fit the items' 96 voxels; choose --grid from 2, 4, 6, 12",
        ),
        (["tokenizer", *RUN, "--grid", "3"], "grid=3"),
        (["tokenizer", *RUN, "--grid", "6", "--kind", "cube"], "--grid"),
        (["tokenizer", *RUN, "--grid", "6", "--decoder-of", "x"], "--grid"),
        (["tokenizer", *RUN, "--kind", "cube", "--decoder-of", "x"], "--decoder-of"),
        (["tokenizer", *RUN, "--batch", "0"], "--batch"),
        (["tokenizer", *RUN, "--steps", "0"], "--steps"),
        (["tokenizer", *RUN, "--lr", "0"], "--lr"),
        (["tokenizer", *RUN, "--seed", "-1"], "--seed"),
        (["tokenizer", *RUN, "--eval-every", "0"], "--eval-every"),
        (["tokenizer", *RUN, "--device", "nonsense"], "choose cpu"),
        (["colors", *RUN, "--shape", "nowhere"], "nowhere/state.pt is missing"),
        (["decoder", *RUN, "--shape", "a", "--colors", "b", "--width", "32"], "width=32 must be a multiple of 64"),
        (["decoder", *RUN, "--shape", "a", "--colors", "b", "--layers", "0"], "--layers"),
        (["decoder", *RUN, "--shape", "a", "--colors", "b"], "a/state.pt is missing"),
        (["decoder", *RUN, "--shape", "a"], "--shape and --colors, or --model"),
        (["decoder", *RUN, "--model", "default", "--layers", "2"], "give it alone"),
        (["decoder", *RUN, "--model", "nowhere"], "nowhere is not a folder"),
        (["bundle", "--model", "default", "--out", "o"], "--decoder"),
        (["bundle", "--model", "default", "--shape", "a", "--decoder", "c", "--out", "o"], "--model has a tokenizer"),
        (["bundle", "--shape", "a", "--decoder", "c", "--out", "o"], "--shape and --colors, or --model"),
        (["bundle", "--model", "default", "--decoder", "c", "--out", "o"], "c/state.pt is missing"),
        (["bundle", "--shape", "a", "--colors", "b", "--decoder", "c", "--out", "o"], "a/state.pt is missing"),
        (["prepare", "--data", "a", "--out", "b", "--workers", "0"], "--workers"),
        (["prepare", "--data", "a", "--out", "b", "--procedural", "-1"], "--procedural"),
    ],
    ids=lambda value: "-".join(value)[-40:] if isinstance(value, list) else None,
)
def test_mistakes_are_named(arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code
    assert isinstance(done.exception, HelicubeError | SystemExit)
    message = done.output if isinstance(done.exception, SystemExit) else str(done.exception)
    assert words in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "want"), [([], (1000, 3e-4)), (["--steps", "20000", "--lr", "0.0015"], (20_000, 1.5e-3))]
)
def test_a_model_is_trained_on_gently_unless_told(
    options: list[str], want: tuple[int, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, float]] = []
    monkeypatch.setattr(
        "helicube.train.runs.tune_decoder", lambda _, __, loop, ___: asked.append((loop.steps, loop.lr))
    )
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["decoder", *RUN, "--model", "default", *options])
    assert (done.exit_code, asked) == (0, [want])
