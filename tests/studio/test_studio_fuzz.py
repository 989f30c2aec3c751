"""A short run of benchmarks/studio.py fuzz, in process: no answer of 500 or above, and the service goes on."""

from __future__ import annotations

import collections
import importlib.util
import sys
from pathlib import Path

import pytest
from studio_start import Start

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_nonsense_is_refused_and_never_breaks_anything(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("studio_fuzz", BENCHMARKS / "studio_fuzz.py")
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    sys.modules["studio_fuzz"] = fuzz
    spec.loader.exec_module(fuzz)
    client = start()
    client.raise_server_exceptions = False  # type: ignore[attr-defined]
    job = client.post("/v1/objects?wait=true", json={"prompt": "a chair", "quality": "draft"}).json()
    fuzzer = fuzz.Fuzzer(7, [job["id"], job["objects"][0]["id"]])
    statuses: collections.Counter[int] = collections.Counter()
    waited = 0
    for _ in range(250):
        method, path, body, headers = fuzzer.request()
        if (method, path) == ("POST", "/v1/objects"):
            # Those with a query of their own do not.
            path += "?wait=true"
        # The planner's searches take seconds, and are tested elsewhere.
        if path.startswith("/plan?"):
            continue
        answer = client.request(method, path, content=body, headers=headers)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (method, path, body, answer.text)
        if answer.status_code == 200 and path.endswith("?wait=true"):
            waited += 1
            assert answer.json()["ended_at"] is not None
        if answer.status_code >= 400 and method != "HEAD":
            assert set(answer.json()["error"]) == {"code", "message"}
    assert len(statuses) >= 7
    assert statuses[202] >= 3
    assert waited >= 2
    assert client.get("/healthz").json() == {"status": "ok"}
