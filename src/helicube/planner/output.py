"""Files of an answer: written whole, or not at all."""

from __future__ import annotations

import csv
import io
import os
from contextlib import suppress
from pathlib import Path

from helicube.errors import InputError

__all__ = ["csv_text", "target_of", "write_text"]


def csv_text(rows: list[dict[str, object]]) -> str:
    """Rows of equal keys as CSV."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def target_of(path: Path) -> Path:
    """Where to write: a link is followed, so that it stays a link.

    Raises:
        InputError: the path is a folder.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file in it")
        return path.resolve() if path.is_symlink() else path
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); choose another name") from error


def write_text(path: Path, text: str) -> None:
    """Write a file in one step; a failed run leaves no half of it.

    Raises:
        InputError: the folder is missing or cannot be written.
    """
    path = target_of(path)
    # The process in the name keeps two writers apart; the stem is cut so that the name fits the file system.
    temporary = path.with_name(f".{path.name[:40]}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written ({error.strerror}); choose another folder") from error
