"""Prepared training items on disk: shards that are written once, resumed after an interruption, and loaded whole."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from helicube.errors import InputError
from helicube.geometry.box_sample import BoxSample, sample_in_box
from helicube.train.objects import PROCEDURAL, TrainingObject

__all__ = ["ItemInfo", "ItemSet", "load_shards", "parse_infos", "prepare_shards", "shard_paths"]

SHARD = 64
ARRAYS = [field.name for field in fields(BoxSample)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemInfo:
    """What is known of an item besides its geometry."""

    id: str
    class_name: str
    subclass: str
    split: str
    captions: tuple[str, ...]
    captions_name_colors: bool

    @property
    def is_procedural(self) -> bool:
        """Whether it was made by a program, not by a person."""
        return self.id.startswith(PROCEDURAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSet:
    """Many items, array by array; the leading axis of each is the item. Shapes: see BoxSample."""

    infos: tuple[ItemInfo, ...]
    bits: NDArray[np.uint8]
    band: NDArray[np.uint32]
    points: NDArray[np.int16]
    normals: NDArray[np.int8]
    colors: NDArray[np.uint8]
    extents: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.infos)


def prepare_shards(objects: Iterable[TrainingObject], out: Path, *, name: str, workers: int = 2) -> None:
    """Sample all objects into `out/NAME-*.npz`; shards that are there already are kept.

    Args:
        objects: in a fixed order, since a shard is named by its place in it.
        name: prefix of the shards ("catalog", "parts", "procedural").
    """
    out.mkdir(parents=True, exist_ok=True)
    items = list(objects)
    starts = range(0, len(items), SHARD)
    todo = [s for s in starts if not (out / f"{name}-{s // SHARD:04d}.npz").exists()]
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(_write_shard, items[s : s + SHARD], out / f"{name}-{s // SHARD:04d}.npz") for s in todo]
        for job in track(jobs, description=f"sampling {name}"):
            job.result()


def _write_shard(objects: Sequence[TrainingObject], path: Path) -> None:
    infos, items = [], []
    for source in objects:
        # Seeded by name, so that a shard does not depend on the others.
        item = sample_in_box(source.vertices, source.faces, source.face_colors, seed=zlib.crc32(source.id.encode()))
        if item is not None:
            items.append(item)
            infos.append({field.name: getattr(source, field.name) for field in fields(ItemInfo)})
    if not items:
        return
    arrays = {key: np.stack([getattr(item, key) for item in items]) for key in ARRAYS}
    partial = path.with_suffix(".partial")
    with partial.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, infos=np.array(json.dumps(infos)), **arrays)
    partial.replace(path)


def shard_paths(folder: Path, names: Sequence[str] = ("",)) -> list[Path]:
    """All shards whose file name starts with one of `names`, in order of name.

    Raises:
        InputError: there is none.
    """
    paths = sorted(p for p in folder.glob("*.npz") if p.name.startswith(tuple(names)))
    if not paths:
        raise InputError(f"{folder} holds no prepared items; run: helicube train prepare --data DIR --out {folder}")
    return paths


def parse_infos(text: str) -> list[ItemInfo]:
    """What a shard says of its items."""
    return [ItemInfo(**{**raw, "captions": tuple(raw["captions"])}) for raw in json.loads(text)]


def load_shards(folder: Path, names: Sequence[str] = ("",)) -> ItemSet:
    """Read the shards that `shard_paths` finds, whole."""
    paths = shard_paths(folder, names)
    infos: list[ItemInfo] = []
    columns: dict[str, list[NDArray[np.generic]]] = {key: [] for key in ARRAYS}
    for path in paths:
        with np.load(path) as shard:
            infos += parse_infos(str(shard["infos"]))
            for key in ARRAYS:
                columns[key].append(shard[key])
    arrays = {key: np.concatenate(columns[key]) for key in ARRAYS}
    return ItemSet(infos=tuple(infos), **arrays)
