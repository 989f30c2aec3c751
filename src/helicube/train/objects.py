"""Training objects: meshes with face colours, named parts and captions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.box_sample import EXTENT

__all__ = ["PROCEDURAL", "Named", "TrainingObject", "centred"]

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


def centred(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Points (V, 3) of some size, moved and scaled to where a `TrainingObject` has them."""
    low, high = points.min(axis=0), points.max(axis=0)
    placed = ((points - (low + high) / 2) * (2 * EXTENT / float((high - low).max()))).astype(np.float32)
    return np.asarray(np.clip(placed, -EXTENT, EXTENT))
