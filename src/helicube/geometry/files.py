"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from helicube.errors import InputError, MeshFileError

__all__ = ["unwritable", "whole_file", "write_files"]


def unwritable(path: Path) -> str | None:
    """Why no file could be written there, and what to do; None if one could. To be asked before long work."""
    if path.is_dir():
        return "it is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist; create it first"
    if not os.access(path.parent, os.W_OK):
        return f"the folder {path.parent} may not be written; check its permissions"
    return None


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A passing name to write to, which takes the place of `path` after the block, or is removed if that fails.

    It lies beside `path`, ends like it, and no two processes get the same.

    Raises:
        InputError: the folder is missing or cannot be written, or the disk is full; what was at `path` is as it was.
    """
    try:
        with _passing(path) as passing:
            yield passing
    except OSError as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from error


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write each file beside its place under a passing name, and only then move all of them there, in this order.

    Raises:
        MeshFileError: the folder is missing or cannot be written; nothing is left behind.
    """
    try:
        with contextlib.ExitStack() as stack:
            # What is entered last is moved first.
            passing = {path: stack.enter_context(_passing(path)) for path in reversed(list(contents))}
            for path, data in contents.items():
                passing[path].write_bytes(data)
    except OSError as error:
        where = ", ".join(str(path) for path in contents)
        raise MeshFileError(f"cannot write {where}: {_reason(error)}") from error


@contextlib.contextmanager
def _passing(path: Path) -> Iterator[Path]:
    # Not tempfile: that gives 0600, and these files get what any new file would get.
    passing = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        yield passing
        passing.replace(path)
    finally:
        with contextlib.suppress(OSError):
            passing.unlink()


def _reason(error: OSError) -> str:
    return f"{error.strerror or error}; check the folder, its permissions and the free space"
