"""The figures in docs/studio.md are those of benchmarks/results, and what was not measured has none."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPORT = runpy.run_path(str(ROOT / "benchmarks" / "studio_report.py"))


def test_the_page_has_the_figures_and_pictures_that_there_are() -> None:
    page = (ROOT / "docs" / "studio.md").read_text(encoding="utf-8")
    assert REPORT["filled"](page) == page, "run benchmarks/studio_report.py"


def test_without_results_there_are_no_figures(tmp_path: Path) -> None:
    text = REPORT["measured"](tmp_path)
    assert [line.partition(":")[0] for line in text.split("\n\n")] == ["Not measured yet"] * 4
    assert not re.search(r"\d", text)
    assert REPORT["screens"](tmp_path) == ""
    (tmp_path / "phone.png").touch()
    assert REPORT["screens"](tmp_path) == "![On a phone](studio/phone.png)"


def test_the_bundled_model_comes_before_the_small_one(tmp_path: Path) -> None:
    about: dict[str, Any] = {
        "date": "2026-11-30T12:00:00", "command": "python x", "machine": {"cpu": "c", "cores": 2, "load": None},
        "presses": 10, "aims_s": {"first_preview": 1.0, "final": 2.5}, "final_s": {"p50": 1.5, "p95": None},
    }  # fmt: skip
    for name, model, first in (("", "bundled", 0.25), ("_small", "small random model", 0.75)):
        report = {**about, "model": model, "first_preview_s": {"p50": first, "p95": 0.5}}
        (tmp_path / f"studio_page{name}.json").write_text(json.dumps(report))
    text = REPORT["measured"](tmp_path)
    assert "after 0.25 / 0.50 s (p50 / p95; aim 1), the finished mesh after 1.50 / – s (aim 2.5)." in text
    assert "(the bundled model, c, 2 cores, 2026-11-30: `python x`)" in text
    assert "0.75" not in text
