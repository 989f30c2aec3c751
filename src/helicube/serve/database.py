"""Jobs and finished objects in SQLite. A row of an object is written only when its file is safely in place."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helicube.errors import InputError

__all__ = ["Database", "NewItem"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, created_at REAL NOT NULL, ended_at REAL, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS items (
    job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE, place INTEGER NOT NULL, object TEXT NOT NULL,
    spec TEXT NOT NULL, notes TEXT NOT NULL, status TEXT NOT NULL, cached INTEGER NOT NULL, error TEXT,
    attempts INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (job, place));
CREATE TABLE IF NOT EXISTS objects (
    id TEXT PRIMARY KEY, created_at REAL NOT NULL, used_at REAL NOT NULL, bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL, about TEXT NOT NULL, picture_bytes INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS items_by_object ON items(object);
CREATE INDEX IF NOT EXISTS jobs_by_time ON jobs(created_at);
CREATE INDEX IF NOT EXISTS objects_by_time ON objects(created_at);
CREATE INDEX IF NOT EXISTS objects_by_use ON objects(used_at);
"""
# Layout of the tables; another one is refused rather than misread.
FORMAT = 2
# What format 1 lacks.
ADDED = (
    "ALTER TABLE items ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE objects ADD COLUMN picture_bytes INTEGER NOT NULL DEFAULT 0",
)

# Object's id, spec, notes, "live" or "done", whether from the cache.
NewItem = tuple[str, dict[str, Any], Sequence[str], str, bool]
Row = dict[str, Any]


class Database:
    """One connection, shared by threads under a lock; no other process may open the file meanwhile.

    Raises:
        InputError: the file is in use by another service, is damaged, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        try:
            self.connection = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
            self.connection.row_factory = sqlite3.Row
            # Exclusive: a second service on the same folder would start the same jobs. FULL: an answer "accepted" or
            # "done" outlives a power cut.
            for line in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                self.connection.execute(f"PRAGMA {line}").fetchall()
            found = self.connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in {0, 1, FORMAT}:
                raise InputError(f"{path} has format {found}, not {FORMAT}; choose another --data-dir")
            self._bring_up_to_date(found)
        except sqlite3.Error as error:
            why = "another helicube serves from this folder" if "locked" in str(error) else str(error)
            raise InputError(f"{path} cannot be used ({why}); choose another --data-dir") from None

    def _bring_up_to_date(self, found: int) -> None:
        with self.change() as db:
            for line in ADDED if found == 1 else ():
                db.execute(line)
            for line in SCHEMA.strip().removesuffix(";").split(";"):
                db.execute(line)
            db.execute(f"PRAGMA user_version={FORMAT}")

    def close(self) -> None:
        with self.lock:
            self.connection.close()

    @contextmanager
    def change(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction: all or nothing.

        Args:
            durable: on disk when it ends; else a power cut, but no kill, may undo it, and nobody waits for the disk.
        """
        with self.lock:
            self.connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                # SQLite has ended it by itself after some errors, such as a full disk.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: object) -> list[Row]:
        with self.lock:
            return [dict(row) for row in self.connection.execute(query, values).fetchall()]

    # Jobs.

    def add_job(self, job: str, request: dict[str, Any], items: Sequence[NewItem]) -> None:
        now = time.time()
        ended = now if all(status == "done" for _, _, _, status, _ in items) else None
        with self.change() as db:
            db.execute("INSERT INTO jobs VALUES (?, ?, ?, ?)", (job, now, ended, json.dumps(request)))
            db.executemany(
                "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, NULL, 0)",
                [
                    (job, i, key, json.dumps(spec), json.dumps(list(notes)), status, int(cached))
                    for i, (key, spec, notes, status, cached) in enumerate(items)
                ],
            )

    def job(self, job: str) -> Row | None:
        found = self.rows("SELECT * FROM jobs WHERE id = ?", job)
        return found[0] if found else None

    def jobs(self, limit: int) -> list[Row]:
        return self.rows("SELECT * FROM jobs ORDER BY created_at DESC, rowid DESC LIMIT ?", limit)

    def items(self, job: str) -> list[Row]:
        return self.rows("SELECT * FROM items WHERE job = ? ORDER BY place", job)

    def unfinished(self) -> list[Row]:
        """Items still to be made, in the order in which they were asked for."""
        return self.rows(
            "SELECT items.* FROM items JOIN jobs ON jobs.id = items.job WHERE items.status = 'live' "
            "ORDER BY jobs.created_at, jobs.rowid, items.place"
        )

    def rename_item(self, job: str, place: int, key: str) -> None:
        with self.change() as db:
            db.execute("UPDATE items SET object = ? WHERE job = ? AND place = ?", (key, job, place))

    def begin_items(self, owners: Sequence[tuple[str, int]]) -> None:
        """Count an attempt at items; without waiting for the disk, as only a process that dies is to be remembered."""
        with self.change(durable=False) as db:
            db.executemany("UPDATE items SET attempts = attempts + 1 WHERE job = ? AND place = ?", owners)

    def forgive(self) -> None:
        """Forget the attempts: the process ends of itself."""
        with self.change(durable=False) as db:
            db.execute("UPDATE items SET attempts = 0 WHERE status = 'live' AND attempts > 0")

    def end_items(self, owners: Sequence[tuple[str, int]], status: str, error: dict[str, str] | None = None) -> None:
        """Book the end of items, and of the jobs that they were the last of."""
        with self.change() as db:
            self._end(db, owners, status, error)

    def finish_object(
        self, key: str, about: dict[str, Any], size: int, sha256: str, owners: Sequence[tuple[str, int]]
    ) -> None:
        """Book a finished object, and the ends that follow from it, in one transaction."""
        now = time.time()
        with self.change() as db:
            db.execute(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, 0)",
                (key, now, now, size, sha256, json.dumps(about)),
            )
            self._end(db, owners, "done", None)

    @staticmethod
    def _end(
        db: sqlite3.Connection, owners: Sequence[tuple[str, int]], status: str, error: dict[str, str] | None
    ) -> None:
        text = None if error is None else json.dumps(error)
        db.executemany(
            "UPDATE items SET status = ?, error = ? WHERE job = ? AND place = ? AND status = 'live'",
            [(status, text, job, place) for job, place in owners],
        )
        db.executemany(
            "UPDATE jobs SET ended_at = ? WHERE id = ? AND ended_at IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM items WHERE job = jobs.id AND status = 'live')",
            [(time.time(), job) for job in {job for job, _ in owners}],
        )

    def delete_job(self, job: str) -> None:
        with self.change() as db:
            db.execute("DELETE FROM jobs WHERE id = ?", (job,))

    def prune_jobs(self, keep: int) -> None:
        """Forget the oldest ended jobs beyond `keep`."""
        with self.change() as db:
            db.execute(
                "DELETE FROM jobs WHERE ended_at IS NOT NULL AND id NOT IN "
                "(SELECT id FROM jobs ORDER BY created_at DESC, rowid DESC LIMIT ?)",
                (keep,),
            )

    # Objects.

    def object(self, key: str) -> Row | None:
        found = self.rows("SELECT * FROM objects WHERE id = ?", key)
        return found[0] if found else None

    def objects(self, limit: int, before: float, before_id: str) -> list[Row]:
        """Newest first, from just below (`before`, `before_id`) on."""
        return self.rows(
            "SELECT * FROM objects WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?",
            before, before_id, limit,
        )  # fmt: skip

    def known(self) -> dict[str, tuple[int, int]]:
        """Bytes of each object's mesh and of its picture."""
        found = self.rows("SELECT id, bytes, picture_bytes FROM objects")
        return {row["id"]: (row["bytes"], row["picture_bytes"]) for row in found}

    def book_picture(self, key: str, size: int) -> None:
        with self.change(durable=False) as db:
            db.execute("UPDATE objects SET picture_bytes = ? WHERE id = ?", (size, key))

    def touch(self, key: str) -> None:
        with self.change(durable=False) as db:
            db.execute("UPDATE objects SET used_at = ? WHERE id = ?", (time.time(), key))

    def delete_object(self, key: str) -> None:
        with self.change() as db:
            db.execute("DELETE FROM objects WHERE id = ?", (key,))

    def total_bytes(self) -> tuple[int, int]:
        """Number of objects, and bytes of their files."""
        row = self.rows("SELECT COUNT(*) AS n, COALESCE(SUM(bytes + picture_bytes), 0) AS size FROM objects")[0]
        return int(row["n"]), int(row["size"])

    def least_used(self, limit: int = 16) -> list[Row]:
        query = "SELECT id, bytes + picture_bytes AS bytes FROM objects ORDER BY used_at, rowid LIMIT ?"
        return self.rows(query, limit)
