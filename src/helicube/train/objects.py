"""Training objects: meshes with face colours, named parts and captions, from a catalogue folder or from code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helicube.errors import InputError

__all__ = ["PROCEDURAL", "Named", "TrainingObject", "load_catalog"]

# What ids of objects that a program made start with.
PROCEDURAL = "proc-"


class Named(Protocol):
    """Anything that has the nouns of an object."""

    @property
    def class_name(self) -> str: ...

    @property
    def subclass(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingObject:
    """One object, +Y up, right-handed, bounding box centred on the origin with its longest side spanning ±0.96."""

    id: str
    # Common noun that the figures are reported by ("chair"), and a more specific one ("office chair").
    class_name: str
    subclass: str
    # "train" or "test".
    split: str
    # English descriptions of the whole object.
    captions: tuple[str, ...]
    # (V, 3) float32.
    vertices: NDArray[np.float32]
    # (F, 3) int64, counter-clockwise seen from outside.
    faces: NDArray[np.int64]
    # (F, 3) uint8, sRGB base colour.
    face_colors: NDArray[np.uint8]
    # (F,) uint8, index into part_names.
    face_parts: NDArray[np.uint8]
    part_names: tuple[str, ...]
    # Whether captions may name a colour, so that a recoloured copy may have them rewritten.
    captions_name_colors: bool = True


def load_catalog(folder: Path) -> Iterator[TrainingObject]:
    """Read `objects.npz` and `catalog.jsonl` (format: the README beside them), in catalogue order.

    Raises:
        InputError: a file is missing.
    """
    for name in ("objects.npz", "catalog.jsonl"):
        if not (folder / name).is_file():
            raise InputError(f"{folder / name} is missing; --data needs a folder with objects.npz and catalog.jsonl")
    with np.load(folder / "objects.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    with (folder / "catalog.jsonl").open(encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            info = json.loads(line)
            v0, v1 = arrays["vertex_offset"][i : i + 2]
            f0, f1 = arrays["face_offset"][i : i + 2]
            yield TrainingObject(
                id=info["id"],
                class_name=info["class"],
                subclass=info["subclass"],
                split=info["split"],
                captions=tuple(info["captions"]),
                vertices=(arrays["vertices"][v0:v1].astype(np.float32) / 65535 * 2 - 1).astype(np.float32),
                faces=arrays["faces"][f0:f1].astype(np.int64),
                face_colors=arrays["face_color"][f0:f1],
                face_parts=arrays["face_part"][f0:f1],
                part_names=tuple(part["name"] for part in info["parts"]),
                captions_name_colors=info["color_source"] in {"material", "texture"},
            )
