"""benchmarks/leak.py: one engine decodes everything, failures included, and memory that grows is told."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from helicube.engine.build import make_engine
from helicube.engine.engine import Engine
from helicube.engine.launch_runner import LaunchRunner

FILE = Path(__file__).parents[2] / "benchmarks" / "leak.py"


@pytest.fixture
def leak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("leak", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PARTS", 8)
    return module


@pytest.mark.parametrize("name", ["plain", "graph"])
def test_one_engine_decodes_all_objects(name: str, leak: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[Engine] = []
    counts: list[int] = []
    whole = Engine.generate

    def making(*args: Any, **options: Any) -> Engine:
        engines.append(make_engine(*args, **options))
        return engines[-1]

    def generating(self: Engine, requests: list[Any]) -> object:
        assert self is engines[0]
        counts.append(len(requests))
        return whole(self, requests)

    monkeypatch.setattr(leak, "make_engine", making)
    monkeypatch.setattr(Engine, "generate", generating)
    found = leak.run(name, 16, 3, 4)
    assert len(engines) == 1, "a second engine would hide what the first leaves behind"
    assert isinstance(engines[0].runner, LaunchRunner) == (name == "graph")
    assert not engines[0].slots
    # Each part is followed by one request that must fail, on the same engine.
    assert counts == [2, 1] * 8
    assert (found["objects"], found["failed_on_purpose"], len(found["resident_mib"])) == (16, 8, 8)


# As many objects as parts, and fewer.
@pytest.mark.parametrize("objects", [8, 7])
@pytest.mark.parametrize("growth", [0, 1 << 20])
def test_growth_is_the_exit_status(
    objects: int, growth: int, leak: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = iter(range(1 << 30, 1 << 40, growth or 1))
    monkeypatch.setattr(leak, "resident_bytes", lambda: next(held) if growth else 1 << 30)
    target = tmp_path / "leak.json"
    options = ["--objects", str(objects), "--slots", "2", "--steps", "3", "--options", "plain", "--output", str(target)]
    monkeypatch.setattr(sys, "argv", ["leak.py", *options])
    assert leak.main() == int(growth > 0)
    grown = (objects - objects // 2 - 1) * growth / 2**20
    assert json.loads(target.read_text())["plain"]["second_half_grew_mib"] == grown
