"""The data directory: whose files are deleted, what counts as damaged, what counts towards the bound."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helicube.errors import InputError
from helicube.geometry.mesh import Mesh
from helicube.serve.database import Database
from helicube.serve.database_file import FORMAT
from helicube.serve.problem import ApiError
from helicube.serve.store import Store

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
PYRAMID = Mesh(vertices=CORNERS, faces=np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
ABOUT: dict[str, Any] = {"prompt": "a pyramid", "seed": 0, "settings": {"up": "y"}}


def put(store: Store, key: str) -> None:
    store.finish(key, store.files.stage(key, PYRAMID), ABOUT, [])


def test_files_of_others_outlive_a_start(tmp_path: Path) -> None:
    Store(tmp_path, 1 << 20).close()
    objects = tmp_path / "objects"
    mine = [objects / name for name in ("chair.npz", "notes.txt", ".hidden", f"{'0' * 31}.npz", f"{'0' * 32}.blend")]
    left = [objects / name for name in (f"{'0' * 32}.npz", f".{'1' * 32}.npz.part", f".{'1' * 32}.png.part.0a1b2c3d")]
    for path in (*mine, *left):
        path.write_bytes(b"x")
    (objects / ("2" * 32)).mkdir()
    Store(tmp_path, 1 << 20).close()
    assert [path for path in mine if not path.is_file()] == []
    assert [path for path in left if path.exists()] == []


@pytest.mark.parametrize("database", [None, b""], ids=["missing", "empty"])
def test_objects_without_their_database_are_not_wiped(tmp_path: Path, database: bytes | None) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    store.close()
    (tmp_path / "jobs.sqlite3").unlink()
    if database is not None:
        (tmp_path / "jobs.sqlite3").write_bytes(database)
    for _ in range(2):
        with pytest.raises(InputError, match="missing; restore it"):
            Store(tmp_path, 1 << 20)
    assert (tmp_path / "objects" / f"{'a' * 32}.npz").is_file()


def ids(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.npz"))


def test_a_copy_without_the_log_of_changes_keeps_its_objects(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path / "data", 1 << 20)
    keys = ["a" * 32, "b" * 32]
    for key in keys:
        put(store, key)
    # As a kill leaves it, or a backup that took two of three.
    shutil.copytree(tmp_path / "data", tmp_path / "copy", ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    store.close()
    copy = Store(tmp_path / "copy", 1 << 20)
    copy.close()
    assert ids(tmp_path / "copy" / "objects") + ids(tmp_path / "copy" / "lost") == keys
    assert "moved to" in caplog.text


@pytest.mark.parametrize("harm", ["hollow", "no objects table", "bad id"])
def test_a_database_that_lost_what_it_knew_is_refused(tmp_path: Path, harm: str) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    store.close()
    path = tmp_path / "jobs.sqlite3"
    if harm == "hollow":
        path.unlink()
    db = sqlite3.connect(path)
    db.executescript({
        "hollow": "PRAGMA journal_mode=WAL; VACUUM;",
        "no objects table": "DROP TABLE objects;",
        "bad id": "UPDATE objects SET id = '../x';",
    }[harm])  # fmt: skip
    db.close()
    assert path.stat().st_size
    for _ in range(2):
        with pytest.raises(InputError, match=r"no tables|no table 'objects'|no object's id"):
            Store(tmp_path, 1 << 20)
    assert ids(tmp_path / "objects") == ["a" * 32]


def test_an_empty_folder_in_place_of_the_objects_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    keys = ["a" * 32, "b" * 32]
    for key in keys:
        put(store, key)
    store.close()
    (tmp_path / "objects").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="knows 2 objects"):
        Store(tmp_path, 1 << 20)
    (tmp_path / "objects").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "objects")
    store = Store(tmp_path, 1 << 20)
    assert sorted(store.database.known()) == ids(tmp_path / "objects") == keys
    store.close()


def zero_root(path: Path, name: str) -> None:
    """Make the first page of a table or an index nothing but zeros."""
    db = sqlite3.connect(path)
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


@pytest.mark.parametrize("table", ["objects", "items", "jobs"])
def test_a_damaged_table_is_one_line_at_the_start(tmp_path: Path, table: str) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    store.close()
    zero_root(tmp_path / "jobs.sqlite3", table)
    with pytest.raises(InputError, match="is damaged") as raised:
        Store(tmp_path, 1 << 20)
    assert "\n" not in str(raised.value)
    assert ids(tmp_path / "objects") == ["a" * 32]


@pytest.mark.parametrize("index", ["objects_by_time", "jobs_by_time"])
def test_a_damaged_index_is_mended_at_the_start(tmp_path: Path, index: str) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    store.database.add_job("j" * 32, {}, [("a" * 32, {}, [], "done", True)])
    store.close()
    zero_root(tmp_path / "jobs.sqlite3", index)
    store = Store(tmp_path, 1 << 20)
    assert [row["id"] for row in store.database.objects(9, 1e12, "")] == ["a" * 32]
    assert [row["id"] for row in store.database.jobs(9)] == ["j" * 32]
    assert store.database.rows("PRAGMA integrity_check")[0]["integrity_check"] == "ok"
    store.close()


def test_a_clock_that_goes_back_loses_no_job_and_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [2e9]
    monkeypatch.setattr("time.time", lambda: now[0])
    store = Store(tmp_path, 1 << 20)
    for name in "abc":
        now[0] -= 1e6
        put(store, name * 32)
        store.database.add_job(name * 32, {}, [(name * 32, {}, [], "done" if name != "b" else "live", True)])
        store.database.prune_jobs(1)
    # What is under way is never pruned, nor is the last.
    assert [row["id"][0] for row in store.database.jobs(9)] == ["c", "b"]
    store.database.add_job("d" * 32, {}, [("d" * 32, {}, [], "live", True)])
    assert [row["job"][0] for row in store.database.unfinished()] == ["b", "d"]
    store.database.touch("a" * 32)
    assert [row["id"][0] for row in store.database.least_used()] == ["b", "c", "a"]
    store.close()


def test_what_cannot_be_read_now_is_not_taken_for_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)

    def read(_: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read)
        with pytest.raises(ApiError, match="Too many open files") as raised:
            store.file("a" * 32, "glb")
    assert raised.value.status == 503
    assert store.file("a" * 32, "stl")
    store.close()


@pytest.mark.parametrize(("harm", "why"), [("unlink", "is missing"), ("flip", "damaged"), ("delete", "deleted mean")])
def test_what_is_gone_says_why(tmp_path: Path, harm: str, why: str, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    row, path = store.row("a" * 32), store.files.path("a" * 32)
    if harm == "flip":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    elif harm == "unlink":
        path.unlink()
    else:
        store.delete("a" * 32)
    with pytest.raises(ApiError, match=why) as raised:
        store.mesh(row)
    assert (raised.value.status, raised.value.code) == (410, "gone")
    assert not store.has("a" * 32)
    assert not path.exists()
    assert ("is dropped" in caplog.text) == (harm != "delete")
    store.close()


def test_an_object_that_was_cut_is_dropped_at_the_start_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path, 1 << 20)
    for key in ("a" * 32, "b" * 32):
        put(store, key)
    path = store.files.path("a" * 32)
    store.close()
    path.write_bytes(path.read_bytes()[:100])
    Store(tmp_path, 1 << 20).close()
    assert not path.exists()
    assert f"object {'a' * 32} is dropped: its file has 100 bytes" in caplog.text


def test_pictures_count_towards_the_bound(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    for key in ("a" * 32, "b" * 32):
        put(store, key)
        assert store.file(key, "png").startswith(b"\x89PNG")
    on_disk = sum(path.stat().st_size for path in (tmp_path / "objects").iterdir())
    assert store.database.total_bytes() == (2, on_disk)
    store.cache_bytes = on_disk - 1
    store.trim("b" * 32)
    left = sorted(path.name for path in (tmp_path / "objects").iterdir())
    assert left == [f"{'b' * 32}.npz", f"{'b' * 32}.png"]
    # A picture that is made pushes out what is less used, too.
    store.files.path("b" * 32, "png").unlink()
    store.close()
    store = Store(tmp_path, 1 << 20)
    assert store.database.total_bytes()[1] == sum(path.stat().st_size for path in (tmp_path / "objects").iterdir())
    put(store, "c" * 32)
    store.cache_bytes = store.database.total_bytes()[1] + 1
    store.file("b" * 32, "png")
    assert not store.has("c" * 32)
    store.close()


def test_a_database_of_the_first_format_is_brought_up_to_date(tmp_path: Path) -> None:
    database = Database(tmp_path / "jobs.sqlite3")
    database.add_job("j" * 32, {}, [("a" * 32, {}, [], "live", False)])
    database.close()
    with sqlite3.connect(tmp_path / "jobs.sqlite3") as old:
        old.execute("ALTER TABLE items DROP COLUMN attempts")
        old.execute("ALTER TABLE objects DROP COLUMN picture_bytes")
        old.execute("PRAGMA user_version=1")
    old.close()
    database = Database(tmp_path / "jobs.sqlite3")
    assert [row["attempts"] for row in database.unfinished()] == [0]
    assert database.rows("PRAGMA user_version")[0]["user_version"] == FORMAT
    database.close()


def test_a_change_that_the_disk_refuses_leaves_the_database_usable(tmp_path: Path) -> None:
    database = Database(tmp_path / "jobs.sqlite3")
    pages = database.rows("PRAGMA page_count")[0]["page_count"]
    database.rows(f"PRAGMA max_page_count={pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        database.add_job("j" * 32, {"prompt": "x" * 100_000}, [])
    database.rows("PRAGMA max_page_count=1000000")
    database.add_job("k" * 32, {}, [("a" * 32, {}, [], "live", False)])
    assert [row["id"] for row in database.jobs(9)] == ["k" * 32]
    database.close()


def test_a_smaller_bound_holds_from_the_start(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    for letter in "abc":
        put(store, letter * 32)
    _, total = store.database.total_bytes()
    store.close()
    store = Store(tmp_path, total // 2)
    assert set(store.database.known()) == {"c" * 32}
    store.close()


def test_a_slow_reader_of_a_damaged_file_leaves_its_remake(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    seen = store.row("a" * 32)
    store.delete("a" * 32)
    put(store, "a" * 32)
    store.files.path("a" * 32).write_bytes(b"between two writes")
    with pytest.raises(ApiError, match="made anew meanwhile"):
        store.mesh(seen)
    assert store.has("a" * 32)
    store.close()
