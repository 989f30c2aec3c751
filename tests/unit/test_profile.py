"""The profiler's digest: its parts add up, it names operators, and the trace is whole."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny import Words, tiny_weights
from torch import nn

from helicube.cli.main import cli
from helicube.engine.metrics import cache_bytes, probe_bandwidth
from helicube.engine.options import EngineOptions
from helicube.errors import InputError
from helicube.nn.cache import CacheSpec, LayerSpec
from helicube.nn.module_bytes import module_bytes
from helicube.pipelines.profile import Profile, profile_prompt, table
from helicube.pipelines.shape_model import DefaultModel
from helicube.pipelines.text_to_shape import TextToShape


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Path]:
    pipeline = TextToShape(DefaultModel(tiny_weights(), Words()))
    trace = tmp_path_factory.mktemp("profile") / "trace.json"
    return profile_prompt(pipeline, "a chair", trace=trace), trace


def test_parts_of_a_step_add_up(found: tuple[Profile, Path]) -> None:
    profile, _ = found
    assert profile.num_steps == 15
    # A step of the native kernels is one call; what is left moves ids.
    assert 1 < profile.num_operators < 60
    # Operators run within the step that they are booked on, and are a good part of it.
    assert profile.profiled_step_s / 50 < profile.kernels_s <= profile.profiled_step_s
    assert profile.launches_s == profile.sync_s == profile.idle_s == 0, "there is no device beside the CPU"
    assert profile.host_s == pytest.approx(profile.profiled_step_s - profile.kernels_s)
    times = [seconds for _, seconds in profile.top]
    assert times == sorted(times, reverse=True)
    # One native call, or the plain path's products where there is no compiler.
    work = {"helicube::native_steps", "aten::addmm", "aten::mm"}
    assert work & {name for name, _ in profile.top}
    assert table(profile).row_count > 15


def test_trace_is_json_with_every_step(found: tuple[Profile, Path]) -> None:
    events = json.loads(found[1].read_text())["traceEvents"]
    assert sum(e.get("name") == "helicube.step" and e.get("cat") == "user_annotation" for e in events) == 15
    assert list(found[1].parent.iterdir()) == [found[1]]


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[EngineOptions] = []

    def load(weights: str | None, *, version: str | None, device: str, options: EngineOptions) -> TextToShape:
        assert (weights, version, device) == ("w", None, "cpu")
        asked.append(options)
        return TextToShape(DefaultModel(tiny_weights(), Words(), remarks=("it harms",)), options)

    monkeypatch.setattr("helicube.pipelines.text_to_shape.load", load)
    options = ["--weights", "w", "--weight-format", "int8", "--no-graph", "--trace"]
    done = CliRunner().invoke(cli, ["profile", "a chair", *options, str(tmp_path / "trace.json")])
    assert done.exit_code == 0, done.output
    assert asked == [EngineOptions(weights="int8", graph=False)]
    assert "note: it harms" in done.output
    assert "15 steps" in done.output
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_trace_that_cannot_be_written_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helicube.pipelines.text_to_shape.load", None)
    done = CliRunner().invoke(cli, ["profile", "a chair", "--trace", str(tmp_path / "no" / "trace.json")])
    assert isinstance(done.exception, InputError)
    assert "does not exist; create it first" in str(done.exception)


def test_verdict_follows_the_numbers(found: tuple[Profile, Path]) -> None:
    base = dataclasses.replace(
        found[0], tpot_s=1e-3, profiled_step_s=1e-3, idle_s=0.0, host_s=0.0, kernels_s=1e-3,
        weight_bytes=10**7, cache_bytes=0, bandwidth_bytes_per_s=1e12,
    )  # fmt: skip
    assert base.verdict.startswith("Operators")
    assert dataclasses.replace(base, host_s=6e-4).verdict.startswith("Host work")
    assert dataclasses.replace(base, idle_s=6e-4).verdict.startswith("Launches")
    assert dataclasses.replace(base, bandwidth_bytes_per_s=1.2e10).verdict.startswith("Memory bandwidth")


def test_bytes_count_each_storage_once() -> None:
    layer = nn.Linear(8, 4)
    twin = nn.Linear(8, 4, bias=False)
    twin.weight = layer.weight
    assert module_bytes([layer, twin]) == 4 * (8 * 4 + 4)
    spec = CacheSpec(layers=(LayerSpec(num_heads=2, head_dim=4, num_prefix=3), LayerSpec(num_heads=2, head_dim=4)),
                     max_tokens=9)  # fmt: skip
    assert cache_bytes(spec, rows=2, num_tokens=5, itemsize=2) == 2 * 2 * (2 * 2 * 4) * (8 + 5)
    assert probe_bandwidth(mebibytes=8, repeats=1) > 1e8
