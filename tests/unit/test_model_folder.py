"""Which folder a model's name means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from helicube.errors import CheckpointError
from helicube.models.cube.default import BUNDLED_WEIGHTS
from helicube.pipelines.ablation_subject import load_subject
from helicube.pipelines.model_folder import find_folder
from helicube.pipelines.quantize import quantize_folder
from helicube.pipelines.shape_model import load_model


def test_one_name_means_one_folder_in_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "default").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_folder(None) == find_folder("default") == BUNDLED_WEIGHTS
    assert find_folder("./default").samefile(tmp_path / "default")
    # What they all say of names that mean nothing, word for word.
    with pytest.raises(CheckpointError) as told:
        find_folder("no-such-owner/no-such-model")
    commands: list[Callable[[str], object]] = [
        load_model, load_subject, lambda name: quantize_folder(name, "int8", tmp_path / "out"),
    ]  # fmt: skip
    for command in commands:
        with pytest.raises(CheckpointError) as said:
            command("no-such-owner/no-such-model")
        assert str(said.value) == str(told.value)
    assert not (tmp_path / "out").exists()
