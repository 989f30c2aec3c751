"""What goes wrong inside: errors of any kind, a full disk, objects that take the process with them, floods."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from small import work_of
from starlette.testclient import TestClient
from studio_start import Start
from test_studio_service import DRAFT, post, until

from helicube.serve.config import Limits
from helicube.serve.mesh_workers import COARSE, FINAL, FINER, MeshWorkers
from helicube.serve.service import MAX_ATTEMPTS, Service


def service_of(client: TestClient) -> Service:
    found: Service = client.service  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), StopIteration(), sqlite3.OperationalError("disk")])
@pytest.mark.parametrize("place", ["mesh", "preview", "step", "leave"])
def test_no_error_ends_a_thread(start: Start, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception) -> None:
    client = start()
    service = service_of(client)

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        if place in {"mesh", "preview"}:
            patch.setattr(service.steps, place, fail)
        else:
            patch.setattr(service.scheduler.engine, "step", fail)
        if place == "leave":
            patch.setattr(service.scheduler.engine, "leave", fail)
        broken = post(client, prompt="a chair")
        assert broken["status"] == ("done" if place == "preview" else "failed")
        if place == "leave":
            # A slot less is no small thing: whoever watches is to know.
            until(lambda: client.get("/healthz").json() == {"status": "broken"})
        # Slots that could not be freed are lost to this test's engine.
        service.scheduler.engine.slots.clear()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert post(client, prompt="a table")["status"] == "done"
    assert service.works == {}


def test_what_a_full_disk_does_not_take_is_kept_until_it_does(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(step_s=0.02)
    service = service_of(client)
    made = post(client, prompt="a chair")
    address = made["objects"][0]["url"].removesuffix(".glb")

    def full(*_: Any, **__: Any) -> Any:
        raise sqlite3.OperationalError("database or disk is full")

    kept, cancelled = (post(client, wait=False, prompt=prompt) for prompt in ("a table", "a lamp"))
    with monkeypatch.context() as patch:
        patch.setattr(service.store.database, "change", full)
        assert client.delete(f"/v1/jobs/{cancelled['id']}").status_code == 204
        assert cancelled["objects"][0]["id"] not in service.works
        until(lambda: service.works[kept["objects"][0]["id"]] in service.late.parked)
        # Decoded, and not to blame: it stays under way.
        assert client.get(f"/v1/jobs/{kept['id']}").json()["status"] == "running"
        assert client.get("/healthz").json() == {"status": "broken"}
        for ending in ("glb", "obj", "png"):
            assert client.get(f"{address}.{ending}").status_code == 200
        refused = client.post("/v1/objects", json={**DRAFT, "prompt": "a stool"})
        forget = client.delete(f"/v1/jobs/{made['id']}")
        for answer in (refused, forget, client.delete(address)):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "broken")
            assert answer.headers["Retry-After"] == "30"
    until(lambda: bool(client.get(f"/v1/jobs/{kept['id']}").json()["status"] == "done"))
    until(lambda: client.get("/healthz").status_code == 200)
    assert client.get(f"/v1/jobs/{cancelled['id']}").json()["status"] == "cancelled"


def test_no_error_ends_the_looks_at_the_service(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(service_of(start()).late, "tick", look)
    until(lambda: len(looks) == 2, 20)


def test_an_object_under_which_the_process_dies_is_given_up(start: Start, tmp_path: Path) -> None:
    client = start(step_s=0.5, slots=1, grace_s=0.0, data_dir=tmp_path / "kept")
    jobs = [post(client, wait=False, prompt="a chair"), post(client, wait=False, prompt="a table")]
    until(lambda: client.get("/v1/engine").json()["running"] == 1)
    database = service_of(client).store.database
    until(lambda: [database.items(job["id"])[0]["attempts"] for job in jobs] == [1, 0])
    client.__exit__()
    # An end in order is no attempt; processes that die are.
    path = tmp_path / "kept" / "jobs.sqlite3"
    with sqlite3.connect(path) as rows:
        assert rows.execute("SELECT attempts FROM items").fetchall() == [(0,), (0,)]
        rows.execute("UPDATE items SET attempts = ? WHERE job = ?", (MAX_ATTEMPTS, jobs[0]["id"]))
    rows.close()
    again = start(data_dir=tmp_path / "kept")
    given_up = again.get(f"/v1/jobs/{jobs[0]['id']}").json()
    assert given_up["status"] == "failed"
    assert given_up["objects"][0]["error"]["code"] == "crashed"
    until(lambda: bool(again.get(f"/v1/jobs/{jobs[1]['id']}").json()["status"] == "done"))
    assert post(again, prompt="a chair")["status"] == "done"


def held_meshes(service: Service, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Finished meshes wait for the first event; the second tells that one does."""
    go, begun = threading.Event(), threading.Event()
    real = service.steps.mesh

    def mesh(*arguments: Any) -> Any:
        begun.set()
        go.wait(60)
        return real(*arguments)

    monkeypatch.setattr(service.steps, "mesh", mesh)
    return go, begun


def test_what_waits_for_a_mesh_thread_is_no_suspect(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(slots=2)
    service = service_of(client)
    go, begun = held_meshes(service, monkeypatch)
    jobs = [post(client, wait=False, prompt=prompt) for prompt in ("a chair", "a table", "a lamp")]
    assert begun.wait(60)
    until(lambda: client.get("/v1/engine").json()["meshing"] == 3)
    # All are decoded; one is under the mesh thread, and if the process dies now, it alone may be why.
    until(lambda: sum(service.store.database.items(job["id"])[0]["attempts"] for job in jobs) == 1)
    go.set()
    until(lambda: all(client.get(f"/v1/jobs/{job['id']}").json()["status"] == "done" for job in jobs))


def test_a_preview_is_an_attempt_too_and_one_at_a_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(slots=1)
    service = service_of(client)
    looks: list[int] = []
    real = service.steps.preview

    def preview(shape: Any, box: Any, options: Any, level: int) -> Any:
        until(lambda: bool(job) and service.store.database.items(job["id"])[0]["attempts"] == 1)
        looks.append(level)
        return real(shape, box, options, level)

    monkeypatch.setattr(service.steps, "preview", preview)
    job: dict[str, Any] = {}
    job |= post(client, wait=False, prompt="a chair", best_of=1)
    until(lambda: client.get(f"/v1/jobs/{job['id']}").json()["status"] == "done")
    # The coarse one while tokens are decoded, the finer one after: a process that dies then is no accident either.
    assert looks == [0, 1]


def test_objects_that_wait_for_a_mesh_fill_the_queue(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(limits={"queue": 2})
    service = service_of(client)
    go, begun = held_meshes(service, monkeypatch)
    try:
        taken = 0
        for seed in range(20):
            body = {**DRAFT, "prompt": "a chair", "seed": seed, "temperature": 1}
            taken += client.post("/v1/objects", json=body).status_code == 202
            # Accepted, the first leaves the queue only once it is being built.
            assert begun.wait(60)
            until(lambda: all(work.status == "meshing" for work in list(service.works.values())))
        # One is being built, two wait.
        assert taken == 3
    finally:
        go.set()


def test_one_client_cannot_take_the_whole_queue(start: Start) -> None:
    client = start(step_s=0.3, slots=1, limits={"queue": 8, "objects": 1, "requests_per_s": 1000.0})
    service = service_of(client)
    other = TestClient(client.app, base_url="http://127.0.0.1", client=("10.0.0.7", 1))
    codes = [
        client.post("/v1/objects", json={**DRAFT, "prompt": "a chair", "seed": i, "temperature": 1}).status_code
        for i in range(10)
    ]
    assert codes.count(429) >= 2
    assert sum(work.status == "queued" for work in service.works.values()) == service.config.limits.queue_share == 6
    assert other.post("/v1/objects", json={**DRAFT, "prompt": "a table"}).status_code == 202


def test_ids_are_decoded_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    model = service_of(client).steps.model
    real, decoded = model.decode, []

    def decode(ids: Any) -> Any:
        decoded.append(ids)
        return real(ids)

    monkeypatch.setattr(model, "decode", decode)
    assert post(client, prompt="a chair")["status"] == "done"
    assert len(decoded) == 1


def test_older_objects_are_finished_before_much_newer_ones_are_looked_at() -> None:
    done: list[str] = []
    workers = MeshWorkers(1, lambda *_: None, lambda _: nullcontext())
    old, soon, late = (work_of(key) for key in ("old", "soon", "late"))
    old.joined_s, soon.joined_s, late.joined_s = 100.0, 101.5, 102.5
    # In the order in which they may come: decoding runs ahead of meshing.
    workers.add(COARSE, late, lambda: done.append("late preview"))
    workers.add(FINER, late, lambda: done.append("late choice"))
    workers.add(COARSE, soon, lambda: done.append("soon preview"))
    workers.add(FINAL, old, lambda: done.append("old mesh"))
    workers.start()
    until(lambda: len(done) == 4)
    workers.stop(1.0)
    assert done == ["soon preview", "old mesh", "late preview", "late choice"]


def test_the_engine_waits_for_no_disk(start: Start) -> None:
    service = service_of(start())
    begun = threading.Thread(target=service.maker.joined, args=(work_of("k"),))
    # As a commit does that waits for a slow disk.
    with service.store.database.lock:
        begun.start()
        begun.join(20)
        assert not begun.is_alive()


def test_what_is_between_its_slot_and_its_mesh_is_waited_for(start: Start, tmp_path: Path) -> None:
    client = start(step_s=0.005, slots=1, grace_s=30.0, data_dir=tmp_path / "kept")
    service, between = service_of(client), threading.Event()
    real = service.maker.decoded

    def decoded(work: Any) -> None:
        between.set()
        time.sleep(1.0)
        real(work)

    service.maker.decoded = decoded  # type: ignore[method-assign]
    job = post(client, wait=False, prompt="a chair")
    assert between.wait(60)
    client.__exit__()
    second = start(step_s=0.5, data_dir=tmp_path / "kept", grace_s=0.0)
    assert second.get(f"/v1/jobs/{job['id']}").json()["status"] == "done"


def test_rows_that_cannot_be_taken_up_keep_no_service_from_starting(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = start(step_s=0.5, grace_s=0.0, slots=1, data_dir=tmp_path / "kept")
    jobs = [post(client, wait=False, prompt=f"a {thing}")["id"] for thing in ("chair", "table", "lamp")]
    client.__exit__()
    with sqlite3.connect(tmp_path / "kept" / "jobs.sqlite3") as rows:
        rows.execute("UPDATE items SET spec = json_set(spec, '$.unheard_of', 1) WHERE job = ?", (jobs[0],))
        rows.execute("UPDATE items SET object = ? WHERE job = ?", ("0" * 32, jobs[1]))
    rows.close()

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("helicube.serve.database.Database.rename_item", full)
    again = start(data_dir=tmp_path / "kept")
    unread = again.get(f"/v1/jobs/{jobs[0]}").json()["objects"][0]
    assert (unread["status"], unread["error"]["code"]) == ("failed", "unreadable")
    assert "ask again" in unread["error"]["message"]
    assert f"job {jobs[1]}, object 0 cannot be taken up" in caplog.text
    until(lambda: bool(again.get(f"/v1/jobs/{jobs[2]}").json()["status"] == "done"))
    # For the next start.
    assert again.get(f"/v1/jobs/{jobs[1]}").json()["status"] == "queued"


def test_jobs_that_wait_for_one_object_are_bounded_too(start: Start) -> None:
    client = start(step_s=0.5, slots=1, limits={"waiting": 3}, grace_s=0.0)
    answers = [client.post("/v1/objects", json={**DRAFT, "prompt": "a chair"}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [202, 202, 202, 429, 429]
    assert answers[-1].json()["error"]["code"] == "queue_full"
    assert "3 objects of jobs wait" in answers[-1].json()["error"]["message"]


def test_behind_a_proxy_nobody_has_a_share() -> None:
    apart, together = Limits(queue=32, streams=8), Limits(queue=32, streams=8, requests_per_s=0.0)
    assert (apart.queue_share, apart.streams_share) == (24, 4)
    assert (together.queue_share, together.streams_share) == (32, 8)
