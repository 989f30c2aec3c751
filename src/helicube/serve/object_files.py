"""Finished meshes as files: whole and checked, or not there."""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
from collections.abc import Container
from pathlib import Path

import numpy as np

from helicube.errors import InputError
from helicube.geometry.mesh import Mesh
from helicube.serve.png import is_whole_png

__all__ = ["ObjectFiles"]

KEY = re.compile(r"[0-9a-f]{32}")
# What this class writes: finished files, and parts that a killed process left.
OURS = re.compile(r"([0-9a-f]{32})\.(npz|png)|\.[0-9a-f]{32}\.(npz|png)\.part(\.[0-9a-f]{8})?")
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

    @property
    def lost(self) -> Path:
        """Where objects go that nothing is known of: they are their owner's to delete."""
        return self.folder.parent / "lost"

    @staticmethod
    def is_key(name: str) -> bool:
        return KEY.fullmatch(name) is not None

    def path(self, key: str, ending: str = "npz") -> Path:
        # Ids from outside are checked by the routes; this holds whatever they let through.
        assert KEY.fullmatch(key), f"{key!r} is not an object's id"
        return self.folder / f"{key}.{ending}"

    @property
    def is_empty(self) -> bool:
        return next(self.folder.iterdir(), None) is None

    def stage(self, key: str, mesh: Mesh) -> tuple[Path, int, str]:
        """Write a mesh to disk under a passing name; that name, its bytes and its SHA-256. See `place`."""
        buffer = io.BytesIO()
        arrays = {name: value for name in PARTS if (value := getattr(mesh, name)) is not None}
        np.savez(buffer, allow_pickle=False, **arrays)
        data = buffer.getvalue()
        return self._write(self.path(key), data), len(data), hashlib.sha256(data).hexdigest()

    def write_bytes(self, path: Path, data: bytes) -> None:
        self.place(self._write(path, data), path)

    @staticmethod
    def _write(path: Path, data: bytes) -> Path:
        # Two threads may make the same object: one for a job that was cancelled since.
        passing = path.with_name(f".{path.name}.part.{secrets.token_hex(4)}")
        try:
            with passing.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            passing.unlink(missing_ok=True)
            raise
        return passing

    def place(self, passing: Path, path: Path) -> None:
        """Give a file its name, for good when this returns."""
        passing.replace(path)
        if hasattr(os, "O_DIRECTORY"):
            # The name too is to outlive a power cut.
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def read(self, key: str, sha256: str) -> Mesh | None:
        """The mesh, or None if its file is missing or not what was written.

        Raises:
            OSError: the file may be sound, but cannot be read now.
        """
        try:
            data = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != sha256:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return Mesh(**{name: arrays[name] for name in arrays.files})

    def read_picture(self, key: str) -> bytes | None:
        """The picture, or None if there is none or it is not what was written.

        Raises:
            OSError: the file may be sound, but cannot be read now.
        """
        try:
            data = self.path(key, "png").read_bytes()
        except FileNotFoundError:
            return None
        return data if is_whole_png(data) else None

    def delete(self, key: str) -> None:
        for ending in ("npz", "png"):
            self.path(key, ending).unlink(missing_ok=True)

    def size(self, key: str, ending: str = "npz") -> int:
        """Bytes of the file, −1 if there is none.

        Raises:
            OSError: nothing can be said of it.
        """
        try:
            return self.path(key, ending).stat().st_size
        except FileNotFoundError:
            return -1

    def sweep(self, known: Container[str]) -> int:
        """Clear away what has no row, and no file of anyone else: parts and pictures go, finished meshes to `lost`.

        Returns:
            How many meshes were moved.
        """
        ours = [(path, match) for path in self.folder.iterdir() if (match := OURS.fullmatch(path.name))]
        left = [(path, match[2]) for path, match in ours if match[1] not in known]
        for path, ending in left:
            if ending == "npz":
                self.lost.mkdir(exist_ok=True)
                path.replace(self.lost / path.name)
            else:
                path.unlink(missing_ok=True)
        return sum(ending == "npz" for _, ending in left)
