"""A full or failing disk, and damaged pictures: what is still answered, and what is written later."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from small import work_of
from test_studio_store import put

from helicube.serve.disk_state import DiskState
from helicube.serve.late_writes import LateWrites
from helicube.serve.store import Store
from helicube.serve.work import Work

KEY, JOB = "a" * 32, "e" * 32


def full(*_: Any, **__: Any) -> Any:
    raise sqlite3.OperationalError("database or disk is full")


def no_room(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sound(state: DiskState | LateWrites) -> bool:
    return state.is_sound


@pytest.mark.parametrize("harm", ["same size", "cut", "one bit"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_damaged_picture_is_made_anew(tmp_path: Path, harm: str, restart: bool) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, KEY)
    sound, path = store.file(KEY, "png"), store.files.path(KEY, "png")
    store.close()
    if not restart:
        store = Store(tmp_path, 1 << 20)
    bit = bytearray(sound)
    bit[-30] ^= 1
    path.write_bytes({"same size": b"\xff" * len(sound), "cut": sound[:-20], "one bit": bytes(bit)}[harm])
    if restart:
        store = Store(tmp_path, 1 << 20)
    assert store.file(KEY, "png") == sound == path.read_bytes()
    assert store.database.known()[KEY][1] == len(sound)
    store.close()


def test_a_full_disk_keeps_nobody_from_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, KEY)
    with monkeypatch.context() as patch:
        patch.setattr(store.database, "change", full)
        patch.setattr(store.files, "_write", no_room)
        for ending in ("glb", "obj", "png", "stl"):
            assert store.file(KEY, ending)
        assert not store.disk.is_sound
        # Once, and not for each.
        assert caplog.text.count("takes nothing") == 1
    assert not store.has_picture(KEY)
    store.close()


def test_deleting_makes_room_for_its_own_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, KEY)
    path, real = store.files.path(KEY), store.database.delete_object
    monkeypatch.setattr(store.database, "delete_object", lambda key: full() if path.exists() else real(key))
    store.delete(KEY)
    assert not store.has(KEY)
    assert not path.exists()
    store.close()


def test_no_room_is_seen_before_anything_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, now = DiskState(tmp_path), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    assert state.has_room()
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: usage._replace(free=4096))
        assert not state.has_room()
    assert not sound(state)
    assert (state.answer.status, state.answer.code, state.answer.headers) == (503, "broken", {"Retry-After": "30"})
    turns = []
    for second in range(10):
        now[0] = second
        if state.take_turn():
            turns.append(second)
    assert turns == [1, 3, 7]
    state.took()
    assert sound(state)
    assert not state.take_turn()
    # What is damaged stays so until a start mends it.
    state.refused(sqlite3.DatabaseError("database disk image is malformed"))
    now[0] = 1e6
    assert not state.take_turn()
    assert not sound(state)


def test_what_the_disk_did_not_take_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 1 << 20)
    again: list[Work] = []
    told: list[str] = []
    late = LateWrites(store.database, store.disk, again.append, told.extend)
    kept, cancelled = (work_of(key) for key in "ab")
    cancelled.cancelled = True
    store.database.add_job(JOB, {}, [(KEY, {}, [], "live", False)])

    def tick() -> None:
        store.disk.due_s = 0.0
        late.tick()

    with monkeypatch.context() as patch:
        patch.setattr(store.database, "change", full)
        late.end([(JOB, 0)], "cancelled")
        for work in (kept, cancelled):
            late.park(work, OSError(errno.ENOSPC, "full"))
        tick()
        assert (again, told) == ([], [])
    assert not sound(late)
    tick()
    assert store.database.items(JOB)[0]["status"] == "cancelled"
    assert told == [JOB]
    assert again == [kept]
    # Not before it is kept: or else it would be broken and sound in turns.
    tick()
    assert not sound(late)
    late.settled(kept)
    tick()
    assert sound(late)
    store.close()


def test_what_another_thread_writes_late_meanwhile_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, 1 << 20)

    def again(work: Work) -> None:
        late.settled(work)

    late = LateWrites(store.database, store.disk, again, lambda _: None)
    store.database.add_job(JOB, {}, [(KEY, {}, [], "live", False)])
    real = store.disk.refused

    def refused(error: Exception) -> None:
        # Another thread finds room in the very moment in which this one is told that there is none.
        real(error)
        patch.undo()
        monkeypatch.setattr(store.disk, "refused", real)
        late._write()

    monkeypatch.setattr(store.disk, "refused", refused)
    patch = pytest.MonkeyPatch()
    patch.setattr(store.database, "change", full)
    late.end([(JOB, 0)], "cancelled")
    assert store.database.items(JOB)[0]["status"] == "cancelled"
    assert sound(late)
    # Whatever waits is tried, also while nothing is known against the disk.
    late.parked.append(work_of("a"))
    late.tick()
    late.tick()
    assert sound(late)
    store.close()


def test_what_cannot_be_told_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    again: list[Work] = []
    told: list[str] = []

    def tell(jobs: Iterable[str]) -> None:
        if again and not told:
            told.append("")
            raise sqlite3.OperationalError("disk I/O error")
        told.extend(jobs)

    late = LateWrites(store.database, store.disk, again.append, tell)
    store.database.add_job(JOB, {}, [(KEY, {}, [], "live", False)])
    work = work_of("a")
    late.ends.append(([(JOB, 0)], "failed", None))
    late.park(work, OSError(errno.ENOSPC, "full"))
    for _ in range(2):
        store.disk.due_s = 0.0
        late.tick()
        late.settled(work)
    assert again == [work]
    assert told == ["", JOB]
    store.disk.due_s = 0.0
    late.tick()
    assert sound(late)
    store.close()
