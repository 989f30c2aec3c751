"""A folder of training objects: `objects.npz` and `catalog.jsonl`.

`objects.npz` holds n objects, one after the other:

    vertex_offset, face_offset   (n + 1,) integers: object i has the rows from [i] to before [i + 1]
    vertices                     (V, 3): floats in any place and size; or uint16 v, which means v / 65535 · 2 − 1
    faces                        (F, 3) integers, rows of the object's own vertices, counter-clockwise from outside
    face_color                   (F, 3) uint8, sRGB
    face_part                    (F,) integers, places in the object's `parts`; may be left out

`catalog.jsonl` has one JSON object a line, in the same order, with `id` (of its own), `class` (a noun) and `captions`
(one or more English phrases); and, where they are not as usual, `subclass` (a closer noun; the class), `split` ("train"
or "test"; train), `parts` (a list of {"name": …}; one) and `color_source` (captions may only be recoloured where it is
"material" or "texture"; material). +Y is up, and +Z the front.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.errors import InputError
from helicube.train.objects import PROCEDURAL, TrainingObject, centred
from helicube.train.shards import DAMAGED

__all__ = ["load_catalog"]

# Of each array, the numbers that it may hold, by numpy's letters or names, and the shape of a row.
LAYOUT: Mapping[str, tuple[set[str], tuple[int, ...]]] = {
    "vertex_offset": ({"i", "u"}, ()),
    "face_offset": ({"i", "u"}, ()),
    "vertices": ({"f", "u"}, (3,)),
    "faces": ({"i", "u"}, (3,)),
    "face_color": ({"uint8"}, (3,)),
    "face_part": ({"i", "u"}, ()),
}
OPTIONAL = {"face_part"}
Arrays = Mapping[str, NDArray[Any]]


def load_catalog(folder: Path) -> Iterator[TrainingObject]:
    """All objects, in catalogue order.

    Raises:
        InputError: a file is missing, damaged, or not what the module says, with the line where it is about an object.
    """
    archive, catalog = folder / "objects.npz", folder / "catalog.jsonl"
    for path in (archive, catalog):
        if not path.is_file():
            raise InputError(f"{path} is missing; --data needs a folder with objects.npz and catalog.jsonl")
    arrays = _read_arrays(archive)
    lines = _read_lines(catalog)
    if len(lines) != len(arrays["vertex_offset"]) - 1:
        raise InputError(
            f"{catalog} has {len(lines)} lines and {archive} {len(arrays['vertex_offset']) - 1} objects; "
            "write one line for each object, in the same order"
        )
    seen: set[str] = set()
    for i, line in enumerate(lines):
        where = f"{catalog}, line {i + 1}"
        found = _object(arrays, i, _info(line, where), where)
        if found.id in seen:
            raise InputError(f"{where}: the id {found.id!r} stands on an earlier line too; give each object its own")
        seen.add(found.id)
        yield found


def _read_arrays(path: Path) -> Arrays:
    """Arrays that fit each other."""
    try:
        with np.load(path) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (AttributeError, *DAMAGED):
        raise InputError(f"{path} is damaged, or no .npz of plain arrays; write it again with numpy.savez") from None
    if missing := [name for name in LAYOUT if name not in arrays and name not in OPTIONAL]:
        raise InputError(f"{path} has no {', '.join(missing)}; helicube.train.catalog says what it holds")
    for name, (kinds, row) in LAYOUT.items():
        array = arrays.get(name)
        if array is None:
            continue
        if array.ndim == 0 or array.shape[1:] != row or not kinds & {array.dtype.kind, array.dtype.name}:
            raise InputError(
                f"{path}: {name} is {array.dtype} {array.shape}; helicube.train.catalog says what it holds"
            )
    if arrays["vertices"].dtype.kind == "u" and arrays["vertices"].dtype != np.uint16:
        raise InputError(f"{path}: vertices are {arrays['vertices'].dtype}; give floats, or uint16 over the span ±1")
    arrays.setdefault("face_part", np.zeros(len(arrays["faces"]), np.uint8))
    _check_offsets(arrays, path)
    return arrays


def _check_offsets(arrays: Arrays, path: Path) -> None:
    for name, rows in (("vertex_offset", "vertices"), ("face_offset", "faces")):
        offset = arrays[name].astype(np.int64)
        if not len(offset) or offset[0] != 0 or offset[-1] != len(arrays[rows]) or (np.diff(offset) < 0).any():
            raise InputError(
                f"{path}: {name} must rise from 0 to {len(arrays[rows])}, the number of {rows}; write it so"
            )
    if len(arrays["vertex_offset"]) != len(arrays["face_offset"]):
        raise InputError(f"{path}: vertex_offset and face_offset are of different numbers of objects; write both again")
    for name in ("face_color", "face_part"):
        if len(arrays[name]) != len(arrays["faces"]):
            raise InputError(
                f"{path}: {name} has {len(arrays[name])} rows for {len(arrays['faces'])} faces; give one each"
            )


def _read_lines(path: Path) -> list[str]:
    try:
        # Not splitlines: a caption may hold a separator of other alphabets.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _info(line: str, where: str) -> dict[str, Any]:
    """What a line says, completed."""
    try:
        info = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is no JSON ({error}); write one JSON object a line") from None
    if not isinstance(info, dict):
        raise InputError(f"{where} is no JSON object; write one a line, with id, class and captions")
    whole = {"subclass": info.get("class"), "split": "train", "parts": None, "color_source": "material", **info}
    for name in ("id", "class", "subclass", "split", "color_source"):
        if not isinstance(whole.get(name), str) or not whole[name].strip():
            raise InputError(f"{where}: {name} is {whole.get(name)!r}; it must be a text")
    _check_id(whole["id"], where)
    if whole["split"] not in {"train", "test"}:
        raise InputError(f"{where}: split is {whole['split']!r}; it must be train or test")
    captions = whole.get("captions")
    if not isinstance(captions, list) or not captions or not all(isinstance(c, str) and c.strip() for c in captions):
        raise InputError(f"{where}: captions are {captions!r}; they must be a list of one or more texts")
    parts = whole["parts"] if whole["parts"] is not None else [{"name": whole["class"]}]
    if not isinstance(parts, list) or not all(isinstance(p, dict) and _is_name(p.get("name")) for p in parts):
        raise InputError(f'{where}: parts are {parts!r}; they must be a list of {{"name": …}}, names having letters')
    return whole | {"parts": parts}


def _check_id(name: str, where: str) -> None:
    if name.startswith(PROCEDURAL) or "#" in name:
        raise InputError(f"{where}: id is {name!r}; {PROCEDURAL!r} and '#' mark what is made by code: choose another")
    if any("\ud800" <= char <= "\udfff" for char in name):
        raise InputError(f"{where}: id is {name!r}, which holds half of a character; choose another")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and any(char.isalpha() for char in name)


def _object(arrays: Arrays, i: int, info: Mapping[str, Any], where: str) -> TrainingObject:
    (v0, v1), (f0, f1) = (arrays[name][i : i + 2] for name in ("vertex_offset", "face_offset"))
    faces, parts = arrays["faces"][f0:f1].astype(np.int64), arrays["face_part"][f0:f1]
    if not len(faces):
        raise InputError(f"{where}: object {info['id']!r} has no faces; leave it out")
    if faces.min() < 0 or faces.max() >= v1 - v0:
        raise InputError(
            f"{where}: faces of {info['id']!r} name vertices {faces.min()} to {faces.max()} and it has {v1 - v0}; "
            "count from 0 within each object"
        )
    if parts.min() < 0 or parts.max() >= len(info["parts"]):
        raise InputError(
            f"{where}: face_part of {info['id']!r} goes to {parts.max()}, and parts has {len(info['parts'])}"
        )
    return TrainingObject(
        id=info["id"],
        class_name=info["class"],
        subclass=info["subclass"],
        split=info["split"],
        captions=tuple(info["captions"]),
        vertices=_placed(arrays["vertices"][v0:v1], faces, f"{where}: object {info['id']!r}"),
        faces=faces,
        face_colors=arrays["face_color"][f0:f1],
        face_parts=parts,
        part_names=tuple(part["name"] for part in info["parts"]),
        captions_name_colors=info["color_source"] in {"material", "texture"},
    )


def _placed(vertices: NDArray[Any], faces: NDArray[np.int64], what: str) -> NDArray[np.float32]:
    """(V, 3) with the box of what faces use centred, its longest side ±0.96; others at the centre."""
    if vertices.dtype == np.uint16:
        # Written for this: placed already.
        return np.asarray((vertices.astype(np.float32) / 65535 * 2 - 1).astype(np.float32))
    used = np.zeros(len(vertices), dtype=np.bool_)
    used[faces] = True
    corners = vertices[used].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        side = float(np.ptp(corners, axis=0).max())
    if not 1e-30 < side < 1e30:
        raise InputError(f"{what} has the size {side:g}; give finite vertices that are not all one point")
    placed = np.zeros((len(vertices), 3), np.float32)
    placed[used] = centred(corners)
    return placed
