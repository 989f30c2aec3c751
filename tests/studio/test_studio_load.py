"""The benchmark of load counts what is lost, however it is lost."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import helicube
from helicube.errors import DeviceError

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


class Failing:
    """A client whose jobs end well, fail, are refused or break off, in turns."""

    asked = 0

    def __init__(self, _: str) -> None: ...

    def submit(self, _: str, **__: Any) -> dict[str, str]:
        Failing.asked += 1
        if Failing.asked % 4 == 1:
            raise DeviceError("refused")
        return {"id": str(Failing.asked)}

    def events(self, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if int(job) % 4 == 2:
            raise DeviceError("broke off")
        yield "end", {"status": "done" if int(job) % 4 else "failed", "objects": [{"id": job}]}
        if Failing.asked > 8:
            raise ValueError("no answer at all")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_is_lost_with_an_error_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(helicube, "Client", Failing)
    load = runpy.run_path(str(BENCHMARKS / "studio_load.py"))
    rows = load["Clients"](SimpleNamespace(url="http://x"), 1, 60.0).rows
    # The eleventh ends its thread.
    assert len(rows) == Failing.asked == 11
    assert [made for *_, made in rows] == [None, None, "3", None, None, None, "7", None, None, None, "11"]
