"""Several candidates of one object: the object of the command, slots, progress, cancelling, failing, stopping."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from small import NUM_IDS, SmallModel, small_pipeline
from starlette.testclient import TestClient
from studio_start import Start
from test_studio_service import DRAFT, events_of, post, until

from helicube.engine.request import Result
from helicube.engine.sampling import SamplingConfig
from helicube.geometry.export import encode
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.soundness import USUAL_CANDIDATES
from helicube.pipelines.text_to_shape import TextToShape
from helicube.serve import work
from helicube.serve.object_request import ObjectRequest, specs_of
from helicube.serve.service import Service
from helicube.serve.work import ObjectSpec, Work


def service_of(client: TestClient) -> Service:
    found: Service = client.service  # type: ignore[attr-defined]
    return found


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A judge whose choice tells the candidates of the small model, all of one piece, apart; the places it chose."""
    chosen: list[int] = []

    def soundest(_: TextToShape, candidates: Sequence[NDArray[np.int64]], __: NDArray[np.float32] | None) -> int:
        chosen.append(int(np.argmax([ids.sum() for ids in candidates])))
        return chosen[-1]

    monkeypatch.setattr(TextToShape, "soundest", soundest)
    return chosen


def of_the_command(prompt: str, seed: int, best_of: int) -> bytes:
    sampling = SamplingConfig(seed=seed, temperature=1.0, top_p=0.9)
    options = MeshOptions(cells=64, max_triangles=2000)
    made = small_pipeline().generate_many([prompt], [sampling], best_of=best_of, options=options)[0]
    return encode(made.mesh, "glb", name=prompt)[""]


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_the_object_is_that_of_the_command(start: Start, judged: list[int], slots: int) -> None:
    client = start(step_s=0.002, slots=slots)
    prompts = ["a chair", "a table", "a lamp"]
    jobs = [
        post(client, wait=False, prompt=prompt, seed=seed, temperature=1.0, best_of=best_of)
        for seed, (prompt, best_of) in enumerate(zip(prompts, (4, 1, 3), strict=True))
    ]
    until(lambda: all(client.get(f"/v1/jobs/{job['id']}").json()["status"] == "done" for job in jobs))
    here = list(judged)
    for seed, (prompt, best_of, job) in enumerate(zip(prompts, (4, 1, 3), jobs, strict=True)):
        found = client.get(f"/v1/objects/{job['objects'][0]['id']}.glb").content
        assert found == of_the_command(prompt, seed, best_of), prompt
    # One candidate is not judged; of the others, not the first of each is kept, or else nothing would be shown here.
    assert judged[len(here) :] == here
    assert len(here) == 2
    assert any(here)


def test_progress_counts_all_candidates(start: Start, judged: list[int]) -> None:
    client = start(step_s=0.01, slots=2)
    job = post(client, wait=False, prompt="a chair", temperature=1.0, best_of=3)
    assert job["objects"][0]["tokens_total"] == 3 * NUM_IDS
    events = events_of(client, job["events_url"])
    progress = [data for name, data in events if name == "progress"]
    done = [data["tokens_done"] for data in progress]
    assert done == sorted(done)
    assert done[-1] > 2 * NUM_IDS
    # Two side by side give twice the tokens of one in the same time, but the last is alone.
    fast = [data["tokens_per_s"] * data["tpot_s"] for data in progress if data["batch"] == 2 and data["tokens_done"]]
    assert fast
    assert all(share == pytest.approx(2, rel=0.3) for share in fast)
    previews = [data["level"] for name, data in events if name == "preview"]
    assert previews == [0, 1]
    end = events[-1][1]["objects"][0]
    assert end["tokens_done"] == end["tokens_total"] == 3 * NUM_IDS
    assert end["object"]["settings"]["best_of"] == 3
    assert len(judged) == 1


def test_candidates_decide_the_object_unless_all_are_the_same(start: Start) -> None:
    client = start()
    drawn = [post(client, prompt="a chair", temperature=1.0, best_of=n)["objects"][0]["id"] for n in (1, 2)]
    assert drawn[0] != drawn[1]
    greedy = [post(client, prompt="a chair", temperature=0, best_of=n)["objects"][0] for n in (1, 2)]
    assert greedy[0]["id"] == greedy[1]["id"]
    assert greedy[1]["cached"]
    assert greedy[1]["object"]["settings"]["best_of"] == 1


def test_cancelling_frees_all_slots_of_an_object(start: Start) -> None:
    client = start(step_s=0.05, slots=3)
    first = post(client, wait=False, prompt="a chair", temperature=1.0, best_of=5)
    second = post(client, wait=False, prompt="a table")
    until(lambda: client.get("/v1/engine").json()["running"] == 3)
    state = client.get("/v1/engine").json()
    # In slots, and waiting: objects are counted, not candidates.
    assert [row["job"] for row in state["batch"]] == [first["id"]] * 3
    assert state["queued"] == 1
    assert client.get(f"/v1/jobs/{second['id']}").json()["objects"][0]["queue_position"] == 0
    client.delete(f"/v1/jobs/{first['id']}")
    until(lambda: [row["job"] for row in client.get("/v1/engine").json()["batch"]] == [second["id"]], 0.5)
    until(lambda: bool(client.get(f"/v1/jobs/{second['id']}").json()["status"] == "done"))


def test_one_candidate_that_fails_ends_its_object_and_no_other(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(step_s=0.005, slots=2)
    engine = service_of(client).scheduler.engine
    real = engine.step

    def step() -> dict[int, Result]:
        results = real()
        if results:
            engine.step = real  # type: ignore[method-assign]
        return {
            handle: Result(ids=result.ids, finish="error", error="not finite") if engine.step is real else result
            for handle, result in results.items()
        }

    engine.step = step  # type: ignore[method-assign]
    maker, told = service_of(client).maker, list[bool]()
    stepped = maker.stepped

    def note(under_way: Work) -> None:
        told.append(under_way.cancelled)
        stepped(under_way)

    monkeypatch.setattr(maker, "stepped", note)
    failed = post(client, wait=False, prompt="a chair", temperature=1.0, best_of=5)
    other = post(client, wait=False, prompt="a table")
    until(lambda: bool(client.get(f"/v1/jobs/{other['id']}").json()["status"] == "done"))
    view = client.get(f"/v1/jobs/{failed['id']}").json()["objects"][0]
    assert view["error"] == {"code": "decode", "message": "not finite"}
    assert client.get("/v1/engine").json()["num_failed"] == 1
    assert service_of(client).works == {}
    assert not service_of(client).scheduler.waiting
    # Nothing is told of its other candidates afterwards.
    assert told
    assert not any(told)


def test_stopping_finishes_the_candidates_of_what_is_begun(start: Start, tmp_path: Path, judged: list[int]) -> None:
    client = start(step_s=0.005, slots=1, grace_s=20.0, data_dir=tmp_path / "kept")
    begun = post(client, wait=False, prompt="a chair", temperature=1.0, best_of=3)
    waits = post(client, wait=False, prompt="a table", temperature=1.0, best_of=3)
    until(lambda: client.get("/v1/engine").json()["running"] == 1)
    client.__exit__()
    assert len(judged) == 1
    second = start(step_s=0.5, data_dir=tmp_path / "kept")
    assert second.get(f"/v1/jobs/{begun['id']}").json()["status"] == "done"
    assert second.get(f"/v1/jobs/{waits['id']}").json()["status"] in {"queued", "running"}


def test_what_a_database_kept_before_there_were_candidates_is_made(start: Start, tmp_path: Path) -> None:
    client = start(step_s=0.5, grace_s=0.0, data_dir=tmp_path / "kept")
    job = post(client, wait=False, prompt="a chair")
    client.__exit__()
    with sqlite3.connect(tmp_path / "kept" / "jobs.sqlite3") as rows:
        spec = json.loads(rows.execute("SELECT spec FROM items").fetchone()[0])
        del spec["best_of"]
        rows.execute("UPDATE items SET spec = ?, object = ?", (json.dumps(spec), "0" * 32))
    rows.close()
    again = start(data_dir=tmp_path / "kept")
    until(lambda: bool(again.get(f"/v1/jobs/{job['id']}").json()["status"] == "done"))
    assert ObjectSpec.from_dict(spec).best_of == 1


def test_many_candidates_cost_as_much_as_objects(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    # Room for three at once, then one in a minute.
    client = start(step_s=0.5, limits={"objects_per_minute": 6.0 * 8 / USUAL_CANDIDATES}, grace_s=0.0)
    ask = {**DRAFT, "prompt": "a chair", "temperature": 1.0, "best_of": 8}
    codes = [client.post("/v1/objects", json={**ask, "seed": seed}).status_code for seed in range(4)]
    assert codes == [202, 202, 202, 429]
    request = ObjectRequest.model_validate({"prompt": "a chair", "temperature": 1.0, "best_of": 8})
    usual = ObjectRequest.model_validate({"prompt": "a chair"}).best_of
    assert usual == USUAL_CANDIDATES
    assert specs_of(request.model_copy(update={"best_of": usual}), SmallModel.sampling)[0].cost == 1.0
    monkeypatch.setattr(work, "USUAL_CANDIDATES", 4)
    assert specs_of(request, SmallModel.sampling)[0].cost == 2.0
    assert specs_of(request.model_copy(update={"best_of": 2}), SmallModel.sampling)[0].cost == 1.0


@pytest.mark.parametrize(("limits", "best_of"), [({}, 9), ({}, 0), ({"candidates": 2}, 3)])
def test_candidates_have_a_bound(start: Start, limits: dict[str, Any], best_of: int) -> None:
    client = start(limits=limits)
    answer = client.post("/v1/objects", json={"prompt": "a chair", "best_of": best_of})
    assert answer.status_code == 422
    assert f"best_of {best_of}" in answer.json()["error"]["message"]
    assert client.get("/v1/settings").json()["limits"]["best_of"] == limits.get("candidates", 8)
