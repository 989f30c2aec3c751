"""From a draft to a training object."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import count as count_from

import numpy as np

from helicube.errors import InputError
from helicube.train.objects import PROCEDURAL, TrainingObject, centred
from helicube.train.procedural.describe import color_shares, describe, face_areas
from helicube.train.procedural.draft import Draft
from helicube.train.procedural.registry import CLASSES
from helicube.train.procedural.solid import Floats

__all__ = ["generate", "generate_many"]

# Objects of one class in a stream of `generate_many`; streams of different seeds share none.
_STREAM = 1_000_000


def generate(class_name: str, seed: int) -> TrainingObject:
    """The object of a class that belongs to a seed >= 0; the same on every call.

    Raises:
        InputError: an unknown class or a negative seed.
    """
    if class_name not in CLASSES:
        raise InputError(f"no procedural class {class_name!r}; choose one of {', '.join(CLASSES)}")
    if seed < 0:
        raise InputError(f"seed={seed} is negative; choose 0 or more")
    draft = Draft(np.random.default_rng([zlib.crc32(class_name.encode()), seed]))
    CLASSES[class_name](draft)
    draft.nouns = draft.nouns or [class_name]
    return _finish(draft, class_name, seed)


def generate_many(count: int, seed: int) -> Iterator[TrainingObject]:
    """`count` objects, one class after the other; the k-th of a class is the same however many classes there are."""
    names = list(CLASSES)
    for i in range(count):
        yield generate(names[i % len(names)], seed * _STREAM + i // len(names))


def _finish(draft: Draft, class_name: str, seed: int) -> TrainingObject:
    """Join the pieces, normalise the box, measure the colours and write the captions."""
    solids = [piece.solid for piece in draft.pieces]
    starts = np.cumsum([0] + [len(solid.vertices) for solid in solids[:-1]])
    points = np.concatenate([solid.vertices for solid in solids])
    faces = np.concatenate([solid.faces + start for solid, start in zip(solids, starts, strict=True)])
    points = points * (1 + draft.wobble * draft.rng.uniform(-1, 1, 3)) if draft.wobble else points
    vertices = centred(points)
    sizes = [len(solid.faces) for solid in solids]
    areas = np.add.reduceat(face_areas(points, faces), np.cumsum([0, *sizes[:-1]]))
    shares = _shares(draft, areas)
    numbers = dict(zip(dict.fromkeys(piece.part for piece in draft.pieces), count_from(), strict=False))
    return TrainingObject(
        id=f"{PROCEDURAL}{class_name.replace(' ', '-')}-{seed:06d}",
        class_name=class_name,
        subclass=draft.subclass or draft.nouns[0],
        split="train",
        captions=describe(draft, shares),
        vertices=vertices,
        faces=faces,
        face_colors=np.repeat(np.array([piece.color for piece in draft.pieces], dtype=np.uint8), sizes, axis=0),
        face_parts=np.repeat(np.array([numbers[piece.part] for piece in draft.pieces], dtype=np.uint8), sizes),
        part_names=tuple(numbers),
        captions_name_colors=draft.name_colors,
    )


def _shares(draft: Draft, areas: Floats) -> list[tuple[str, float]]:
    """Shares of the colours without wheels, where anything else is left: people say "a red tractor" of a red body."""
    rolling = np.array([piece.part.startswith("wheel") for piece in draft.pieces])
    areas = np.where(rolling, 0.0, areas) if areas[~rolling].sum() > 0.1 * areas.sum() else areas
    return color_shares([piece.color for piece in draft.pieces], areas)
