"""Training objects: meshes with face colours, named parts and captions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROCEDURAL", "Named", "TrainingObject"]

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
    # (F,) integers, index into part_names.
    face_parts: NDArray[np.integer]
    part_names: tuple[str, ...]
    # Whether captions may name a colour, so that a recoloured copy may have them rewritten.
    captions_name_colors: bool = True
