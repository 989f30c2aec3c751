"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from pathlib import Path

from helicube.errors import MeshFileError

__all__ = ["write_files"]


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
