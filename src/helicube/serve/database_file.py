"""The file of the database: its tables, and whether it is whole."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from helicube.errors import InputError

__all__ = ["FORMAT", "open_connection"]

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
TABLES = ("jobs", "items", "objects")
# Layout of the tables; another one is refused rather than misread.
FORMAT = 2
# What format 1 lacks.
ADDED = (
    "ALTER TABLE items ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE objects ADD COLUMN picture_bytes INTEGER NOT NULL DEFAULT 0",
)
# Exclusive: a second service on the same folder would start the same jobs. FULL: an answer "accepted" or "done"
# outlives a power cut. Checkpoints: SQLite's own, every 1000 pages, would leave all of a small service in the -wal.
SETTINGS = (
    "locking_mode=EXCLUSIVE",
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "wal_autocheckpoint=100",
)

log = logging.getLogger(__name__)


def open_connection(path: Path, *, may_be_new: bool = True) -> sqlite3.Connection:
    """Open the file for this process alone, checked and up to date.

    Args:
        may_be_new: False: one without tables has lost what it knew.

    Raises:
        InputError: the file is in use by another service, is damaged, or cannot be written.
    """
    try:
        connection = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        try:
            for line in SETTINGS:
                connection.execute(f"PRAGMA {line}").fetchall()
            _refuse_what_is_not_whole(connection, path, may_be_new=may_be_new)
            _bring_up_to_date(connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise unusable(path, error) from None
    return connection


def unusable(path: Path, error: sqlite3.Error) -> InputError:
    text, remedy = str(error), "choose another --data-dir"
    if "locked" in text:
        text = "another helicube serves from this folder"
    elif "full" in text:
        remedy = "free some space, or choose another --data-dir"
    elif not os.access(path.parent, os.W_OK):
        text = "the folder is read-only"
    return InputError(f"{path} cannot be used ({text}); {remedy}")


def _refuse_what_is_not_whole(db: sqlite3.Connection, path: Path, *, may_be_new: bool) -> None:
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found not in {0, 1, FORMAT}:
        raise InputError(f"{path} has format {found}, not {FORMAT}; choose another --data-dir")
    if found == 0 and not may_be_new:
        # So it looks where the -wal file, which may hold all of it, was lost or left out of a copy.
        raise InputError(
            f"{path} has no tables, but there are files beside it; restore it together with its -wal file, "
            "or choose another --data-dir"
        )
    names = {row["name"] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found and (missing := [name for name in TABLES if name not in names]):
        raise InputError(f"{path} is damaged (no table {missing[0]!r}); restore it, or choose another --data-dir")
    if damage := _damage(db):
        _mend_indices(db)
        if _damage(db):
            raise InputError(f"{path} is damaged ({damage}); restore it, or choose another --data-dir")
        log.warning("%s was damaged (%s); its indices are made anew, and it is whole again", path, damage)


def _damage(db: sqlite3.Connection) -> str:
    """The first thing wrong with the file, empty if it is whole."""
    try:
        text = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if text == "ok" else text.strip().splitlines()[-1]


def _mend_indices(db: sqlite3.Connection) -> None:
    """Drop the indices if all tables can be read; `_bring_up_to_date` makes them anew.

    Neither REINDEX nor DROP INDEX will do: both walk the damaged pages in order to free them.
    """
    try:
        for table in TABLES:
            db.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall()
        db.execute("PRAGMA writable_schema=ON")
        # Those of primary keys have no text, and are not made anew.
        db.execute("DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        db.execute("PRAGMA writable_schema=RESET").fetchall()
        # Frees the pages that nobody owns now.
        db.execute("VACUUM")
    except sqlite3.DatabaseError as error:
        log.warning("the database's indices cannot be made anew (%s)", error)


def _bring_up_to_date(db: sqlite3.Connection) -> None:
    found = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute("BEGIN IMMEDIATE")
    for line in ADDED if found == 1 else ():
        db.execute(line)
    for line in SCHEMA.strip().removesuffix(";").split(";"):
        db.execute(line)
    db.execute(f"PRAGMA user_version={FORMAT}")
    db.execute("COMMIT")
    # So that the file itself is never without its tables.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
