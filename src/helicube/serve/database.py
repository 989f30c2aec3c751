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

from helicube.serve.database_file import FORMAT, open_connection

__all__ = ["Database", "NewItem", "Row"]

# A use is later than all before it, whatever the clock says.
LATEST = "MAX(?, COALESCE((SELECT MAX(used_at) FROM objects), 0) + 1e-6)"
# Object's id, spec, notes, "live" or "done", whether from the cache.
NewItem = tuple[str, dict[str, Any], Sequence[str], str, bool]
Row = dict[str, Any]


class Database:
    """One connection, shared by threads under a lock; no other process may open the file meanwhile.

    Args:
        may_be_new: see `database_file.open_connection`.

    Raises:
        InputError: the file is in use by another service, is damaged, or cannot be written.
    """

    def __init__(self, path: Path, *, may_be_new: bool = True) -> None:
        self.path, self.lock = path, threading.RLock()
        self.connection = open_connection(path, may_be_new=may_be_new)

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

    def probe(self) -> None:
        """Write something that changes nothing.

        Raises:
            sqlite3.Error: the disk does not take it.
        """
        with self.change() as db:
            db.execute(f"PRAGMA user_version={FORMAT}")

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
        """Newest first, by row and not by the clock, which may be set back."""
        return self.rows("SELECT * FROM jobs ORDER BY rowid DESC LIMIT ?", limit)

    def items(self, job: str) -> list[Row]:
        return self.rows("SELECT * FROM items WHERE job = ? ORDER BY place", job)

    def unfinished(self) -> list[Row]:
        """Items still to be made, in the order in which they were asked for."""
        return self.rows(
            "SELECT items.* FROM items JOIN jobs ON jobs.id = items.job WHERE items.status = 'live' "
            "ORDER BY jobs.rowid, items.place"
        )

    def rename_item(self, job: str, place: int, key: str) -> None:
        with self.change() as db:
            db.execute("UPDATE items SET object = ? WHERE job = ? AND place = ?", (key, job, place))

    def count_attempts(self, owners: Sequence[tuple[str, int]], by: int) -> None:
        """Count attempts at items; without waiting for the disk, as only a process that dies is to be remembered."""
        with self.change(durable=False) as db:
            rows = [(by, *owner) for owner in owners]
            db.executemany("UPDATE items SET attempts = MAX(0, attempts + ?) WHERE job = ? AND place = ?", rows)

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
                f"INSERT OR REPLACE INTO objects VALUES (?, ?, {LATEST}, ?, ?, ?, 0)",
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
        """Forget the oldest ended jobs beyond `keep`; the one accepted last is never among them."""
        with self.change() as db:
            db.execute(
                "DELETE FROM jobs WHERE ended_at IS NOT NULL AND id NOT IN "
                "(SELECT id FROM jobs ORDER BY rowid DESC LIMIT ?)",
                (max(1, keep),),
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
            db.execute(f"UPDATE objects SET used_at = {LATEST} WHERE id = ?", (time.time(), key))

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
