"""`helicube bench helix`: its rows, its table, its file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_run import ENV

from helicube.cli.bench_helix import command
from helicube.errors import InputError


def test_every_layout_is_measured_against_one_device(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    arguments = ["--model", "tiny-gqa-moe", "--ranks", "1,2", "--steps", "3", "--context", "40", "--batch", "2"]
    found = subprocess.run(
        [sys.executable, "-m", "helicube", "bench", "helix", *arguments, "--hopb", "2", "-o", str(path)],
        capture_output=True, text=True, env=ENV, check=True, timeout=300,
    )  # fmt: skip
    assert found.stdout.count("same") == 5
    content = json.loads(path.read_text())
    assert content["machine"]["torch"]
    assert content["options"]["context"] == 40
    rows = {row["layout"]: row for row in content["rows"]}
    assert len(rows) == 5
    alone = rows["kvp=1,tpa=1,tpf=1,ep=1"]
    assert (alone["difference"], alone["sent_bytes"], alone["least_tokens"]) == (0, 0, 40 + 37 + 2 * 4)
    for row in rows.values():
        assert row["same_ids"]
        assert row["difference"] < 1e-4
        assert row["most_tokens"] - row["least_tokens"] <= 2 * 16
        assert 0 < row["ttl_s"] <= row["ttl_worst_s"]
    wide = rows["kvp=2,tpa=1,tpf=2,ep=1"]
    # 2 layers, 2 rows, 4 of 8 heads to the other rank, 8 values and an LSE each.
    assert wide["exchanged_bytes"] == 2 * 2 * 4 * 9 * 4
    assert wide["cache_bytes"] < 0.65 * alone["cache_bytes"]
    assert wide["weight_bytes"] < alone["weight_bytes"] < wide["weight_bytes_all"]


def test_ranks_in_one_process_are_measured_alike(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    arguments = ["--model", "tiny-mla", "--ranks", "1,2", "--steps", "2", "--context", "20", "--batch", "2"]
    found = CliRunner().invoke(command, [*arguments, "--in-process", "-o", str(path)], catch_exceptions=False)
    assert "2 sequences of 17 to 20 tokens, all ranks in one process" in " ".join(found.stdout.split())
    alone, wide, *_ = json.loads(path.read_text())["rows"]
    assert (alone["layout"], wide["layout"]) == ("kvp=1,tpa=1,tpf=1,ep=1", "kvp=2,tpa=1,tpf=2,ep=1")
    assert wide["same_ids"]
    # 2 layers, 2 rows, 4 of 8 heads to the other rank, a latent of 12 values and an LSE each.
    assert wide["exchanged_bytes"] == 2 * 2 * 4 * 13 * 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ranks", "1;2"], "list of whole numbers"),
        (["--ranks", "1" * 5000], "list of whole numbers"),
        (["--ranks", "0"], "at least 1"),
        (["--batch", "0"], "batch=0"),
        (["--context", "16", "--batch", "7"], "context=16 is too short for batch=7.* choose a context of at least 19"),
        (["--model", "tiny-gqa", "--context", "1" + "0" * 14], "a cache of .* takes .* GB here, and the device has"),
        (["--ranks", "1,99"], "small-gqa has no layout of 99 ranks; leave 99 out"),
        (["-o", "/nowhere/rows.json"], "/nowhere/rows.json cannot be written .there is no folder /nowhere"),
        (["-o", "/proc/rows.json"], "/proc/rows.json cannot be written"),
        (["-o", "/"], "/ cannot be written .it is a folder"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_torchrun_does_not_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(InputError, match="start it without torchrun"):
        CliRunner().invoke(command, [], catch_exceptions=False)
