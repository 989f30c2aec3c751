"""Single named parts of an object ("wheel of a car"), each a training object in its own box."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helicube.train.class_words import COLLECTIVE_CLASSES, DATA_CLASSES
from helicube.train.color_names import color_name
from helicube.train.objects import TrainingObject, centred
from helicube.train.words import with_article

__all__ = ["part_noun", "part_objects"]

_MIN_FACES = 8
_MIN_FLATNESS = 0.01
# Boxes of pieces that come this near, as a share of the object's box, belong to one part: a tire and its hub.
_TOUCH = 0.004

_PLACES = frozenset(
    (
        "left", "right", "front", "back", "middle", "big", "small", "upper", "lower", "inner", "outer", "rear",
        "freezer", "fridge",
    )
)  # fmt: skip
_SINGULAR = {
    "wheels": "wheel", "legs": "leg", "doors": "door", "windows": "window", "arms": "arm", "feet": "foot",
    "horns": "horn", "ears": "ear", "flags": "flag", "sails": "sail", "drawers": "drawer", "tomatoes": "tomato slice",
    "skirts": "skirt", "shelves": "shelf", "cushions": "cushion", "tracks": "track",
}  # fmt: skip
# Marks and beads that nobody asks for, and names that say nothing.
_SKIPPED = frozenset(
    (
        "text", "line", "mark", "hole", "seed", "spot", "stripe", "label", "sprinkles", "sesame", "eyes", "nose",
        "button", "rope", "string", "topping", "dial", "patch", "grass", "border", "pattern", "fringe", "tape", "band",
        "teeth", "mouth", "water", "earth", "left", "right", "front", "back", "character", "element", "ring", "panel",
        "hinge", "key", "rubble", "chocolate", "tip", "side", "part", "swirl", "sauce", "rim", "cell", "wires",
    )
)  # fmt: skip

# Parts that are things of their own class; a car's window or a toilet's bowl is not what "a window" asks for.
_WHOLE_THINGS = frozenset(
    (
        "wheel", "pillow", "log", "flag", "book", "candle", "crate", "cup", "mushroom", "lamp", "column", "flower",
        "fruit", "campfire", "barrel", "pistol", "sword", "cannon", "backpack", "mug",
    )
)  # fmt: skip


def part_noun(name: str) -> str:
    """The common noun of a part's name: without number and place, in the singular ("wheel front left" -> "wheel")."""
    words = [word for word in name.lower().split() if not word.isdigit()]
    kept = [word for word in words if word not in _PLACES] or words
    kept[-1] = _SINGULAR.get(kept[-1], kept[-1])
    return " ".join(kept)


def part_objects(item: TrainingObject) -> list[TrainingObject]:
    """The distinct parts of an object, each scaled to its own box; empty for objects of one part.

    The class is the part's noun ("wheel"), or "car window" where a window of a car is not what "a window" means.

    Left out: parts with fewer than 8 faces or flatter than 1 % of their longest side, marks such as "text", and parts
    of the same name and shape as an earlier one.
    """
    if len(item.part_names) < 2:
        return []
    found: list[TrainingObject] = []
    seen: list[tuple[str, NDArray[np.float64]]] = []
    for number, name in enumerate(item.part_names):
        noun = part_noun(name)
        if noun in _SKIPPED or noun in {item.class_name, item.subclass}:
            continue
        for faces in _pieces(item, np.flatnonzero(item.face_parts == number)):
            made = _single(item, faces, noun, len(found))
            if made is None:
                continue
            shape = _shape(made)
            if any(other == noun and np.allclose(known, shape, rtol=0.02, atol=0.005) for other, known in seen):
                continue
            seen.append((noun, shape))
            found.append(made)
    return found


def _pieces(item: TrainingObject, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Groups of a part's face rows: connected faces, and groups whose boxes touch, together."""
    if not len(rows):
        return
    faces = item.faces[rows]
    used, local = np.unique(faces, return_inverse=True)
    local = local.reshape(-1, 3)
    # Vertices at one place count as one: the catalogue merges them, but code may not.
    _, place = np.unique(np.round(item.vertices[used], 4), axis=0, return_inverse=True)
    local = place.reshape(-1)[local]
    ends = np.concatenate([local[:, [0, 1]], local[:, [1, 2]]])
    size = len(used)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    labels = connected_components(graph, directed=False)[1][local[:, 0]]
    _, labels = np.unique(labels, return_inverse=True)
    groups = _touching(item.vertices[faces], labels)
    for group in range(int(groups.max()) + 1):
        yield rows[groups[labels] == group]


def _touching(corners: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """(C,) group of each of C components whose boxes touch; corners (F, 3, 3), labels (F,)."""
    count = int(labels.max()) + 1
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(low, labels, corners.min(axis=1))
    np.maximum.at(high, labels, corners.max(axis=1))
    near = ((low[:, None] - _TOUCH <= high[None]) & (low[None] - _TOUCH <= high[:, None])).all(axis=2)
    groups: NDArray[np.int64] = connected_components(coo_array(near), directed=False)[1].astype(np.int64)
    return groups


def _single(item: TrainingObject, rows: NDArray[np.int64], noun: str, number: int) -> TrainingObject | None:
    """The part made of some face rows, or None where it is too small or flat."""
    if len(rows) < _MIN_FACES or len(rows) == len(item.faces):
        return None
    used, faces = np.unique(item.faces[rows], return_inverse=True)
    points = item.vertices[used].astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    longest = float((high - low).max())
    if longest <= 0 or float((high - low).min()) < _MIN_FLATNESS * longest:
        return None
    whole = item.subclass if item.class_name in COLLECTIVE_CLASSES else item.class_name
    colors = item.face_colors[rows]
    return TrainingObject(
        id=f"{item.id}#{noun.replace(' ', '-')}-{number}",
        class_name=f"{whole} {noun}" if noun in DATA_CLASSES - _WHOLE_THINGS else noun,
        subclass=f"{noun} of {whole}",
        split=item.split,
        captions=_captions(item, rows, noun, whole),
        vertices=centred(points),
        faces=faces.reshape(-1, 3).astype(np.int64),
        face_colors=colors,
        face_parts=np.zeros(len(rows), dtype=np.uint8),
        part_names=(noun,),
        captions_name_colors=item.captions_name_colors,
    )


def _captions(item: TrainingObject, rows: NDArray[np.int64], noun: str, whole: str) -> tuple[str, ...]:
    """Captions of a part; colours only where the object's captions may name them."""
    captions = [f"{noun} of {with_article(whole)}", with_article(f"{whole} {noun}")]
    if item.captions_name_colors:
        rest = np.ones(len(item.faces), dtype=bool)
        rest[rows] = False
        own, other = _main_color(item, rows), _main_color(item, np.flatnonzero(rest))
        captions.append(with_article(f"{own} {whole} {noun}"))
        captions.append(f"{with_article(f'{own} {noun}')} of {with_article(f'{other} {whole}')}")
    if noun in DATA_CLASSES & _WHOLE_THINGS:
        captions.append(with_article(noun))
    return tuple(captions)


def _main_color(item: TrainingObject, rows: NDArray[np.int64]) -> str:
    """Name of the colour that covers most of the surface of some faces."""
    a, b, c = (item.vertices[item.faces[rows, i]] for i in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    colors, inverse = np.unique(item.face_colors[rows], axis=0, return_inverse=True)
    shares: dict[str, float] = {}
    for color, area in zip(colors, np.bincount(inverse.reshape(-1), areas), strict=True):
        name = color_name(color)
        shares[name] = shares.get(name, 0.0) + float(area)
    return max(shares, key=lambda name: shares[name])


def _shape(item: TrainingObject) -> NDArray[np.float64]:
    """(4,) numbers that do not change when a shape is turned, mirrored or scaled."""
    corners = item.vertices[item.faces].astype(np.float64)
    a, b, c = (corners[:, i] for i in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    middles = corners.mean(axis=1)
    center = (middles * areas[:, None]).sum(axis=0) / areas.sum()
    radius = np.linalg.norm(middles - center, axis=1)
    size = float(np.sqrt((radius**2 * areas).sum() / areas.sum()))
    volume = abs(float(np.einsum("ij,ij->", a - center, np.cross(b - center, c - center)))) / 6
    return np.array([len(item.faces), areas.sum() / size**2, volume / size**3, radius.max() / size])
