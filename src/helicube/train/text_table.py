"""The text table that a decoder is trained with: kept beside its run, and taken into the bundle."""

from __future__ import annotations

import hashlib
from pathlib import Path

from helicube.errors import InputError
from helicube.geometry.files import whole_file

__all__ = ["copy_table", "table_digest"]

FILES = ("static.safetensors", "vocab.txt")


def table_digest(folder: Path) -> str:
    """Changes with everything that a prompt's states depend on."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()[:16]


def copy_table(source: Path, target: Path) -> None:
    """Put a table into a folder, which is made if need be.

    Raises:
        InputError: another table is there.
    """
    if target.is_dir() and any(target.iterdir()):
        if not all((target / name).is_file() for name in FILES) or table_digest(target) != table_digest(source):
            raise InputError(f"{target} holds another text table than {source}; move it away, or give another --out")
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        with whole_file(target / name) as passing:
            passing.write_bytes((source / name).read_bytes())
