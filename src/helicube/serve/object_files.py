"""Finished meshes as files: whole and checked, or not there."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Container
from pathlib import Path

import numpy as np

from helicube.errors import InputError
from helicube.geometry.mesh import Mesh

__all__ = ["ObjectFiles"]

KEY = re.compile(r"[0-9a-f]{32}")
PARTS = ("vertices", "faces", "vertex_colors", "vertex_normals")


class ObjectFiles:
    """A folder of meshes by id: arrays as they came from the pipeline, so that every format can be made from them.

    Raises:
        InputError: the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be made ({error.strerror}); choose another --data-dir") from None

    def path(self, key: str, ending: str = "npz") -> Path:
        # Ids from outside are checked by the routes; this holds whatever they let through.
        assert KEY.fullmatch(key), f"{key!r} is not an object's id"
        return self.folder / f"{key}.{ending}"

    def write(self, key: str, mesh: Mesh) -> tuple[int, str]:
        """Bytes and SHA-256 of the file, which is on disk when this returns."""
        buffer = io.BytesIO()
        arrays = {name: value for name in PARTS if (value := getattr(mesh, name)) is not None}
        np.savez(buffer, allow_pickle=False, **arrays)
        data = buffer.getvalue()
        self.write_bytes(self.path(key), data)
        return len(data), hashlib.sha256(data).hexdigest()

    def write_bytes(self, path: Path, data: bytes) -> None:
        passing = path.with_name(f".{path.name}.part")
        with passing.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        passing.replace(path)
        if hasattr(os, "O_DIRECTORY"):
            # The name too is to outlive a power cut.
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def read(self, key: str, sha256: str) -> Mesh | None:
        """The mesh, or None if its file is missing or not what was written."""
        try:
            data = self.path(key).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(data).hexdigest() != sha256:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return Mesh(**{name: arrays[name] for name in arrays.files})

    def delete(self, key: str) -> None:
        for ending in ("npz", "png"):
            self.path(key, ending).unlink(missing_ok=True)

    def size(self, key: str) -> int:
        """Bytes of the file, −1 if there is none."""
        try:
            return self.path(key).stat().st_size
        except OSError:
            return -1

    def sweep(self, known: Container[str]) -> int:
        """Delete whatever a killed process left: parts, and files without a row; how many."""
        left = [p for p in self.folder.iterdir() if p.name.startswith(".") or p.stem not in known]
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)
