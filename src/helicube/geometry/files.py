"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from helicube.errors import MeshFileError

__all__ = ["unwritable", "write_files"]


def unwritable(path: Path) -> str | None:
    """Why no file could be written there, and what to do; None if one could. To be asked before long work."""
    if path.is_dir():
        return "it is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist; create it first"
    if not os.access(path.parent, os.W_OK):
        return f"the folder {path.parent} may not be written; check its permissions"
    return None


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write each file beside its place under a passing name, and only then move all of them there, in this order.

    Raises:
        MeshFileError: the folder is missing or cannot be written; nothing is left behind.
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        for path, data in contents.items():
            passing = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            # Not tempfile: that gives 0600, and a mesh gets what any new file would get.
            with passing.open("xb") as file:
                waiting.append((passing, path))
                file.write(data)
        while waiting:
            passing, path = waiting[0]
            passing.replace(path)
            waiting.pop(0)
    except OSError as error:
        where = ", ".join(str(path) for path in contents)
        raise MeshFileError(f"cannot write {where}: {error.strerror}; check the folder and its permissions") from error
    finally:
        for passing, _ in waiting:
            with contextlib.suppress(OSError):
                passing.unlink()
