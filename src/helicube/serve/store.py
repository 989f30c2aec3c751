"""Jobs and objects on disk: what a restart finds again."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

from helicube.errors import InputError
from helicube.geometry.export import encode
from helicube.geometry.mesh import Mesh
from helicube.serve.byte_cache import ByteCache
from helicube.serve.database import Database, Row
from helicube.serve.disk_state import DiskState
from helicube.serve.mesh_json import encode_json
from helicube.serve.object_files import ObjectFiles
from helicube.serve.problem import ApiError, gone, not_found, unreadable
from helicube.serve.work import Owner

__all__ = ["ENDINGS", "Staged", "Store", "file_name"]

# Ending to media type.
ENDINGS = {
    "glb": "model/gltf-binary",
    "obj": "model/obj",
    "mtl": "model/mtl",
    "stl": "model/stl",
    "ply": "application/octet-stream",
    "json": "application/json",
    "png": "image/png",
}
ENCODED_BYTES = 64 << 20
# Passing name, bytes, SHA-256.
Staged = tuple[Path, int, str]

log = logging.getLogger(__name__)


class Store:
    """The data directory: a database, and a file for each finished mesh.

    Args:
        cache_bytes: bound on all meshes together; the least used go first.

    Raises:
        InputError: the folder is in use, or cannot be written.
    """

    def __init__(self, folder: Path, cache_bytes: int) -> None:
        self.cache_bytes = cache_bytes
        self.files, self.disk = ObjectFiles(folder / "objects"), DiskState(folder)
        self.database = open_database(folder / "jobs.sqlite3", self.files)
        self.encoded = ByteCache(ENCODED_BYTES)
        # One picture at a time: rendering takes all cores.
        self.picture_lock = threading.Lock()
        try:
            self._sweep()
        except (OSError, sqlite3.Error) as error:
            self.close()
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{folder} cannot be read ({why}); check --data-dir") from None
        except InputError:
            self.close()
            raise

    def _sweep(self) -> None:
        """Bring rows and files in line, and tell of whatever is missing or left over."""
        known, path = self.database.known(), self.database.path
        if wrong := [key for key in known if not self.files.is_key(key)]:
            raise InputError(f"{path} is damaged ({wrong[0]!r} is no object's id); restore it")
        if known and all(self.files.size(key) < 0 for key in known):
            raise InputError(
                f"{path} knows {len(known)} objects, but no file of them is in {self.files.folder}; "
                f"put them back, or delete {path.name} to begin anew"
            )
        for key, (size, picture) in known.items():
            if (found := self.files.size(key)) != size:
                log.error("object %s is dropped: its file has %d bytes, not %d", key, max(0, found), size)
                self.delete(key)
            elif self.files.size(key, "png") != (picture or -1):
                self.files.path(key, "png").unlink(missing_ok=True)
                self.database.book_picture(key, 0)
        if moved := self.files.sweep(self.database.known()):
            log.warning("%d finished objects that %s does not know were moved to %s", moved, path, self.files.lost)
        # The bound may have become smaller.
        self.trim("")

    def close(self) -> None:
        self.database.close()

    def has(self, key: str) -> bool:
        return self.database.object(key) is not None

    def finish(self, key: str, staged: Staged, about: dict[str, Any], owners: list[Owner]) -> None:
        """Keep a finished object: first the file, then the row that makes it count.

        Args:
            staged: the mesh on disk, see `ObjectFiles.stage`.
        """
        passing, size, sha256 = staged
        self.files.place(passing, self.files.path(key))
        self.database.finish_object(key, about, size, sha256, owners)

    def trim(self, keep: str) -> None:
        """Delete the least used objects beyond the bound, but not `keep`."""
        _, total = self.database.total_bytes()
        while total > self.cache_bytes:
            old = [row for row in self.database.least_used() if row["id"] != keep]
            if not old:
                return
            for row in old:
                if total > self.cache_bytes:
                    self.delete(row["id"])
                    total -= row["bytes"]

    def delete(self, key: str) -> None:
        try:
            # The row first: an object without a file must not be found.
            self.database.delete_object(key)
            self.files.delete(key)
        except sqlite3.OperationalError:
            # A full disk takes no change of a row, until the files have made room for it.
            self.files.delete(key)
            self.database.delete_object(key)
        finally:
            self.encoded.drop(lambda entry: isinstance(entry, tuple) and entry[0] == key)

    def touch(self, key: str) -> None:
        """Book a use, which is no reason to refuse anything."""
        if self.disk.is_sound:
            try:
                self.database.touch(key)
            except sqlite3.Error as error:
                self.disk.refused(error)

    def row(self, key: str) -> Row:
        found = self.database.object(key)
        if found is None:
            raise not_found("object", key)
        return found

    def mesh(self, row: Row) -> Mesh:
        try:
            mesh = self.files.read(row["id"], row["sha256"])
        except OSError as error:
            # Such as too many open files: that says nothing against the object.
            raise unreadable(row["id"], error) from None
        if mesh is None:
            raise self._drop(row)
        return mesh

    def _drop(self, row: Row) -> ApiError:
        """Remove an object whose file is not what was written; what to answer."""
        key, found = row["id"], self.database.object(row["id"])
        if found is None:
            return gone(key, "was deleted meanwhile")
        if found["created_at"] != row["created_at"]:
            # Another reader was here before, and the object is back.
            return gone(key, "was made anew meanwhile")
        what = "is missing on the disk" if self.files.size(key) < 0 else "was damaged on the disk"
        log.error("object %s is dropped: its file %s", key, what)
        self.delete(key)
        return gone(key, f"is removed, as its file {what}")

    def file(self, key: str, ending: str, *, named: bool = False) -> bytes:
        """An object as a file of the format that the ending names.

        Args:
            named: an OBJ names its materials' file as `file_name` does, and not by the id.
        """
        row = self.row(key)
        self.touch(key)
        stem = file_name(row, "").removesuffix(".") if named and ending in {"obj", "mtl"} else key
        data = self.encoded.get((key, ending, stem))
        if data is None:
            data = self._picture(row) if ending == "png" else self._encode(row, ending, stem)
            self.encoded.put((key, ending, stem), data)
        return data

    def _encode(self, row: Row, ending: str, stem: str) -> bytes:
        mesh = self.mesh(row)
        if ending == "json":
            return encode_json(mesh)
        about = json.loads(row["about"])
        file_format = "obj" if ending == "mtl" else ending
        parts = encode(mesh, file_format, name=about["prompt"][:60], stem=stem, up=about["settings"]["up"])
        return parts[".mtl" if ending == "mtl" else ""]

    def _picture(self, row: Row) -> bytes:
        from helicube.geometry.pictures import encode_png
        from helicube.geometry.render import RenderOptions, render

        try:
            found = self.files.read_picture(row["id"])
        except OSError as error:
            raise unreadable(row["id"], error) from None
        if found is not None:
            return found
        if self.has_picture(row["id"]):
            log.error("the picture of object %s was damaged on the disk; it is made anew", row["id"])
        with self.picture_lock:
            data = encode_png(render(self.mesh(row), RenderOptions(background=None)))
            self._keep_picture(row["id"], data)
        if not self.has(row["id"]):
            # Deleted meanwhile: leave nothing behind.
            self.files.path(row["id"], "png").unlink(missing_ok=True)
            raise gone(row["id"], "was deleted meanwhile")
        return data

    def _keep_picture(self, key: str, data: bytes) -> None:
        try:
            self.files.write_bytes(self.files.path(key, "png"), data)
            self.database.book_picture(key, len(data))
            self.trim(key)
        except (OSError, sqlite3.Error) as error:
            # It can be shown all the same.
            self.disk.refused(error)

    def has_picture(self, key: str) -> bool:
        return self.files.path(key, "png").is_file()


def open_database(path: Path, files: ObjectFiles) -> Database:
    """The database beside a folder of objects, made only where that folder is empty.

    Raises:
        InputError: there are files, but no database that knows them: deleting them is for their owner.
    """
    if not files.is_empty and not (path.is_file() and path.stat().st_size):
        raise InputError(f"{files.folder} holds files but {path} is missing; restore it, or choose another --data-dir")
    return Database(path, may_be_new=files.is_empty)


def file_name(row: Row, ending: str) -> str:
    """A file's name for a download, made from the prompt."""
    about = json.loads(row["about"])
    words = re.sub(r"[^a-z0-9]+", "-", about["prompt"].lower()).strip("-")[:50] or "object"
    return f"{words}-{about['seed']}.{ending}"
