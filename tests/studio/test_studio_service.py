"""Jobs from the request to the files: results, batching, order, cancelling, the queue's bound, the cache."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import trimesh
from small import NUM_IDS, small_pipeline
from starlette.testclient import TestClient
from studio_start import Start

from helicube.engine.sampling import SamplingConfig
from helicube.pipelines.meshing import MeshOptions

# One candidate, however many are usual: slots are counted here.
DRAFT = {"quality": "draft", "max_triangles": 2000, "best_of": 1}


def post(client: TestClient, wait: bool = True, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/objects", params={"wait": wait}, json={**DRAFT, **body})
    assert answer.status_code in {200, 202}, answer.text
    view: dict[str, Any] = answer.json()
    return view


def until(check: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def events_of(client: TestClient, url: str) -> list[tuple[str, Any]]:
    """All events of a job, read to the end."""
    text = client.get(url).text
    blocks = [block for block in text.split("\n\n") if block.startswith("event:")]
    return [(b.splitlines()[0][7:], json.loads(b.splitlines()[1][6:])) for b in blocks]


@pytest.mark.parametrize(
    ("body", "settings", "up"),
    [
        ({"seed": 3}, {}, "y"),
        (
            {"seed": 4, "temperature": 1.0, "guidance": 0.0, "box": [1, 2, 1]},
            {"size_m": 2.5, "pivot": "center"},
            "z",
        ),
    ],
    ids=["plain", "all-settings"],
)
def test_files_equal_those_of_the_command(
    start: Start, tmp_path: Path, body: dict[str, Any], settings: dict[str, Any], up: Literal["y", "z"]
) -> None:
    client = start()
    job = post(client, prompt="a red chair", **body, **settings, up=up)
    assert job["status"] == "done"
    made = job["objects"][0]
    sampling = SamplingConfig(
        seed=body["seed"], temperature=body.get("temperature", 0.0), guidance_scale=body.get("guidance", 3.0), top_p=0.9
    )
    options = MeshOptions(cells=64, max_triangles=2000, **settings)
    (direct,) = small_pipeline().generate_many(
        ["a red chair"], [sampling], box=body.get("box"), best_of=1, options=options
    )
    for ending in ("glb", "obj", "stl", "ply"):
        path = direct.mesh.export(tmp_path / f"{made['id']}.{ending}", name=direct.decoded.prompt[:60], up=up)
        assert client.get(f"/v1/objects/{made['id']}.{ending}").content == path.read_bytes(), ending
    mtl = (tmp_path / f"{made['id']}.mtl").read_bytes()
    assert client.get(f"/v1/objects/{made['id']}.mtl").content == mtl
    assert made["object"]["num_triangles"] == direct.mesh.num_faces


def test_another_axis_is_for_formats_that_name_none(start: Start) -> None:
    client = start()
    one, two = (post(client, prompt="a chair", up=up)["objects"][0] for up in ("y", "z"))
    assert one["id"] != two["id"]
    for ending in ("glb", "json", "png", "obj", "stl", "ply"):
        files = [client.get(f"/v1/objects/{made['id']}.{ending}").content for made in (one, two)]
        assert (files[0] == files[1].replace(two["id"].encode(), one["id"].encode())) == (
            ending in {"glb", "json", "png"}
        ), ending
    assert one["object"]["extents"] == two["object"]["extents"]


def test_many_at_once_equal_one_at_a_time(start: Start) -> None:
    client = start(step_s=0.01, slots=4)
    prompts = [f"a {color} {thing}" for color in ("red", "blue") for thing in ("chair", "table", "lamp")]
    jobs = [post(client, wait=False, prompt=p, seed=i, temperature=1.0) for i, p in enumerate(prompts)]
    running = []

    def all_done() -> bool:
        running.append(client.get("/v1/engine").json()["running"])
        return all(client.get(f"/v1/jobs/{job['id']}").json()["status"] == "done" for job in jobs)

    until(all_done)
    assert max(running) > 1
    pipeline = small_pipeline()
    for i, (prompt, job) in enumerate(zip(prompts, jobs, strict=True)):
        sampling = SamplingConfig(seed=i, temperature=1.0, top_p=0.9)
        options = MeshOptions(cells=64, max_triangles=2000)
        mesh = pipeline.generate_many([prompt], [sampling], best_of=1, options=options)[0].mesh
        loaded: Any = trimesh.load(
            BytesIO(client.get(f"/v1/objects/{job['objects'][0]['id']}.stl").content), file_type="stl"
        )
        assert np.array_equal(loaded.triangles.astype(np.float32), mesh.vertices[mesh.faces].astype(np.float32))


def test_events_tell_the_whole_story(start: Start) -> None:
    # Steps that leave a busy machine time for the coarse mesh.
    client = start(step_s=0.05)
    job = post(client, wait=False, prompt="a red chair zzz")
    events = events_of(client, job["events_url"])
    names = [name for name, _ in events]
    assert names[0] == "job"
    assert names[-1] == "end"
    progress = [data["tokens_done"] for name, data in events if name == "progress"]
    assert progress == sorted(progress)
    assert len(progress) >= 2
    previews = [data for name, data in events if name == "preview"]
    assert [p["level"] for p in previews] == [0, 1]
    for preview in previews:
        answer = client.get(preview["url"])
        assert answer.status_code == 200
        scene: Any = trimesh.load(BytesIO(answer.content), file_type="glb")
        assert sum(len(g.faces) for g in scene.geometry.values()) == preview["num_triangles"]
    assert previews[0]["num_triangles"] < previews[1]["num_triangles"]
    # The coarse mesh is there before the last id.
    order = [(name, data.get("status"), data.get("level")) for name, data in events]
    assert order.index(("preview", None, 0)) < order.index(("object", "meshing", None))
    end = events[-1][1]
    assert end["status"] == "done"
    assert end["objects"][0]["tokens_done"] == NUM_IDS
    assert end["objects"][0]["notes"] == ["'zzz' is not a known word"]
    assert client.get(end["objects"][0]["url"]).status_code == 200
    # Who comes late is told the end at once.
    assert [name for name, _ in events_of(client, job["events_url"])] == ["job", "end"]


def test_first_come_first_served_and_joining_the_running_batch(start: Start) -> None:
    client = start(step_s=0.01, slots=2)
    jobs = [post(client, wait=False, prompt="a chair", seed=i, temperature=1.0) for i in range(5)]
    until(lambda: client.get("/v1/engine").json()["running"] == 2)
    # All at once: a route tells of one after the other, and they move on meanwhile.
    waiting = client.service.scheduler.positions()  # type: ignore[attr-defined]
    asked = [job["objects"][0]["id"] for job in jobs]
    assert [*waiting] == asked[len(asked) - len(waiting) :]
    assert [*waiting.values()] == list(range(len(waiting)))
    until(lambda: all(client.get(f"/v1/jobs/{job['id']}").json()["status"] == "done" for job in jobs))
    ended = [client.get(f"/v1/jobs/{job['id']}").json()["ended_at"] for job in jobs]
    assert ended == sorted(ended)


def test_who_waits_is_told_how_many_are_before(start: Start) -> None:
    client = start(step_s=0.05, slots=1)
    for seed in range(2):
        post(client, wait=False, prompt="a chair", seed=seed, temperature=1.0)
    last = post(client, wait=False, prompt="a table")
    told = [data["queue_position"] for name, data in events_of(client, last["events_url"]) if name == "progress"]
    waiting = [position for position in told if position is not None]
    assert waiting
    assert waiting == sorted(waiting, reverse=True)
    assert set(waiting) <= {0, 1}
    assert told[-1] is None


def test_cancelling_frees_the_slot_at_once(start: Start) -> None:
    client = start(step_s=0.05, slots=1)
    first = post(client, wait=False, prompt="a chair")
    second = post(client, wait=False, prompt="a table")
    until(lambda: client.get(f"/v1/jobs/{first['id']}").json()["status"] == "running")
    assert client.delete(f"/v1/jobs/{first['id']}").status_code == 204
    until(lambda: client.get(f"/v1/jobs/{second['id']}").json()["status"] == "running", 0.5)
    view = client.get(f"/v1/jobs/{first['id']}").json()
    assert view["status"] == "cancelled"
    assert view["objects"][0]["status"] == "cancelled"
    # The second, in the queue or the slot, goes as well, and the engine stands still.
    assert client.delete(f"/v1/jobs/{second['id']}").status_code == 204
    until(lambda: client.get("/v1/engine").json()["running"] == 0, 0.5)
    # Forgotten for good the second time.
    assert client.delete(f"/v1/jobs/{first['id']}").status_code == 204
    assert client.get(f"/v1/jobs/{first['id']}").status_code == 404


def test_two_jobs_for_one_object_share_it_and_one_may_leave(start: Start) -> None:
    client = start(step_s=0.01, slots=2)
    one, two = (post(client, wait=False, prompt="a chair") for _ in range(2))
    assert one["objects"][0]["id"] == two["objects"][0]["id"]
    client.delete(f"/v1/jobs/{one['id']}")
    until(lambda: client.get(f"/v1/jobs/{two['id']}").json()["status"] == "done")
    # Made once, and not twice.
    assert client.service.scheduler.engine.num_joined == 1  # type: ignore[attr-defined]
    assert client.get("/v1/engine").json()["num_done"] == 1
    again = post(client, wait=False, prompt="a chair")
    assert again["status"] == "done"
    assert again["objects"][0]["cached"]


def test_a_full_queue_says_when_to_come_again(start: Start) -> None:
    client = start(step_s=0.05, slots=1, limits={"queue": 2})
    answers = [
        client.post("/v1/objects", json={**DRAFT, "prompt": "a chair", "seed": i, "temperature": 1}) for i in range(8)
    ]
    codes = [answer.status_code for answer in answers]
    assert codes[:2] == [202, 202]
    full = [answer for answer in answers if answer.status_code == 429]
    assert full
    assert full[0].json()["error"]["code"] == "queue_full"
    assert 1 <= int(full[0].headers["Retry-After"]) <= 60
    # Nothing of a refused job stays.
    assert len(client.get("/v1/jobs").json()["jobs"]) == codes.count(202)


def test_variants_lists_and_a_failure_among_them(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    service = client.service  # type: ignore[attr-defined]
    real = service.steps.pipeline.field

    def field(ids: Any, sizes: Any) -> Any:
        shape = real(ids, sizes)
        if broken:
            return dataclasses.replace(shape, field=lambda points: np.full(len(points), -1, dtype=np.float32))
        return shape

    broken = False
    monkeypatch.setattr(service.steps.pipeline, "field", field)
    job = post(client, prompt=["a chair", "a table"], variants=2, seed=7)
    assert [(o["prompt"], o["seed"]) for o in job["objects"]] == [
        ("a chair", 7), ("a chair", 8), ("a table", 7), ("a table", 8),
    ]  # fmt: skip
    assert len({o["id"] for o in job["objects"]}) == 4
    broken = True
    failed = post(client, prompt="a lamp")
    assert failed["status"] == "failed"
    assert 'helicube_objects_total{outcome="failed"} 1.0' in client.get("/metrics").text
    assert failed["objects"][0]["error"]["code"] == "geometry"
    assert "\n" not in failed["objects"][0]["error"]["message"]
    # What failed is not cached: it is tried again.
    broken = False
    assert post(client, prompt="a lamp")["status"] == "done"


def test_a_step_that_fails_ends_its_batch_and_nothing_else(start: Start) -> None:
    client = start(step_s=0.005)
    engine = client.service.scheduler.engine  # type: ignore[attr-defined]
    real = engine.step

    def fail() -> None:
        engine.step = real
        raise RuntimeError("out of memory")

    engine.step = fail
    failed = post(client, prompt="a chair")
    assert failed["status"] == "failed"
    assert failed["objects"][0]["error"]["code"] == "internal"
    assert post(client, prompt="a table")["status"] == "done"
    assert client.get("/healthz").json() == {"status": "ok"}


def test_the_cache_keeps_to_its_bound(start: Start, tmp_path: Path) -> None:
    client = start(limits={"cache_bytes": 100_000})
    jobs = [post(client, prompt="a chair", seed=i, temperature=1.0) for i in range(6)]
    assert all(job["status"] == "done" for job in jobs)
    until(lambda: client.get("/v1/engine").json()["cache_bytes"] <= 100_000)
    files = list((tmp_path / "data" / "objects").iterdir())
    assert sum(path.stat().st_size for path in files) <= 100_000
    kept = client.get("/v1/objects").json()["objects"]
    assert len(kept) == len(files) >= 1
    assert client.get(kept[0]["urls"]["glb"]).status_code == 200
    gone = client.get(f"/v1/jobs/{jobs[0]['id']}").json()["objects"][0]
    assert gone["error"]["code"] == "gone"
    assert client.get(f"/v1/objects/{gone['id']}.glb").status_code == 404
    # Asked for again, it is made again.
    again = post(client, prompt="a chair", seed=0, temperature=1.0)["objects"][0]
    assert not again["cached"]
    assert again["id"] == gone["id"]


def test_objects_made_in_the_same_moment_are_all_listed_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    monkeypatch.setattr("helicube.serve.database.time.time", lambda: 1_790_000_000.123456)
    made = post(client, prompt=["a chair", "a table", "a lamp", "a bench"])
    listed: list[str] = []
    before: str | None = ""
    while before is not None:
        page = client.get("/v1/objects", params={"limit": 1, "before": before}).json()
        listed += [found["id"] for found in page["objects"]]
        before = page["next"]
    assert listed == sorted((found["id"] for found in made["objects"]), reverse=True)
    # A last page that is full is known to be the last.
    assert client.get("/v1/objects", params={"limit": 4}).json()["next"] is None
    assert client.get("/v1/objects", params={"limit": 3}).json()["next"] is not None


def test_a_damaged_file_is_never_served(start: Start, tmp_path: Path) -> None:
    client = start()
    made = post(client, prompt="a chair")["objects"][0]
    path = tmp_path / "data" / "objects" / f"{made['id']}.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    assert client.get(f"/v1/objects/{made['id']}.glb").status_code == 410
    assert client.get(f"/v1/objects/{made['id']}.glb").status_code == 404
    assert not path.exists()


def test_a_restart_takes_up_what_was_unfinished(start: Start, tmp_path: Path) -> None:
    first = start(step_s=0.05, slots=1, grace_s=0.0, data_dir=tmp_path / "kept")
    done = post(first, prompt="a chair")
    waiting = [post(first, wait=False, prompt="a table", seed=i, temperature=1.0) for i in range(3)]
    cancelled = post(first, wait=False, prompt="a lamp")
    first.delete(f"/v1/jobs/{cancelled['id']}")
    first.__exit__()
    (tmp_path / "kept" / "objects" / f".{'0' * 32}.npz.part").write_bytes(b"half")
    (tmp_path / "kept" / "objects" / f"{'0' * 32}.npz").write_bytes(b"no row")
    second = start(data_dir=tmp_path / "kept")
    for job in waiting:
        until(lambda job=job: second.get(f"/v1/jobs/{job['id']}").json()["status"] == "done")  # type: ignore[misc]
    assert second.get(f"/v1/jobs/{cancelled['id']}").json()["status"] == "cancelled"
    assert second.get(done["objects"][0]["url"]).status_code == 200
    assert len(list((tmp_path / "kept" / "objects").iterdir())) == 4


def test_stopping_finishes_the_batch_and_leaves_the_queue(start: Start, tmp_path: Path) -> None:
    client = start(step_s=0.01, slots=1, grace_s=10.0, data_dir=tmp_path / "kept")
    running = post(client, wait=False, prompt="a chair")
    until(lambda: client.get("/v1/engine").json()["running"] == 1)
    waiting = post(client, wait=False, prompt="a table")
    client.__exit__()
    assert threading.active_count() < 20
    assert not [t for t in threading.enumerate() if t.name.startswith("helicube-") and t.is_alive()]
    second = start(step_s=0.5, data_dir=tmp_path / "kept")
    assert second.get(f"/v1/jobs/{running['id']}").json()["status"] == "done"
    assert second.get(f"/v1/jobs/{waiting['id']}").json()["status"] in {"queued", "running"}
