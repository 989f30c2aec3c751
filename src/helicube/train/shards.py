"""Prepared training items on disk: shards that are written once, resumed after an interruption, and loaded whole."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from helicube.errors import InputError
from helicube.geometry.box_sample import BAND, EXTENT, POINTS, RESOLUTION, BoxSample, sample_in_box
from helicube.geometry.files import whole_file
from helicube.train.objects import PROCEDURAL, TrainingObject
from helicube.train.worker_life import live_with_parent

__all__ = ["DAMAGED", "ItemInfo", "ItemSet", "load_shards", "parse_infos", "prepare_shards", "shard_paths"]

# What reading a damaged .npz, or one of something else, raises.
DAMAGED = (ValueError, TypeError, EOFError, KeyError, BadZipFile, zlib.error)
SHARD = 64
# Raised when the same objects give other samples.
VERSION = 1
ARRAYS = [field.name for field in fields(BoxSample)]
NO_ITEMS: dict[str, NDArray[Any]] = {
    "bits": np.zeros((0, RESOLUTION**3 // 8), np.uint8),
    "band": np.zeros((0, BAND), np.uint32),
    "points": np.zeros((0, POINTS, 3), np.int16),
    "normals": np.zeros((0, POINTS, 3), np.int8),
    "colors": np.zeros((0, POINTS, 3), np.uint8),
    "extents": np.zeros((0, 3), np.float32),
}


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


def prepare_shards(objects: Iterable[TrainingObject], out: Path, *, name: str, workers: int = 2) -> list[str]:
    """Sample all objects into `out/NAME-*.npz`; shards that are there already are kept.

    Returns the ids of those that enclose no volume, and are left out.

    Args:
        objects: in a fixed order, since a shard is named by its place in it.
        name: prefix of the shards ("train", "test", "parts", "procedural").

    Raises:
        InputError: shards there are of other objects, or of an earlier version of the sampling, or more than these
            objects fill. Nothing is written then, and nothing is ever removed.
    """
    out.mkdir(parents=True, exist_ok=True)
    items = list(objects)
    shards = [
        (out / f"{name}-{s // SHARD:04d}.npz", items[s : s + SHARD], _digest(items[s : s + SHARD]))
        for s in range(0, len(items), SHARD)
    ]
    _refuse_stale({path: digest for path, _, digest in shards}, out, name)
    todo = [shard for shard in shards if not shard[0].exists()]
    with ProcessPoolExecutor(workers, initializer=live_with_parent) as pool:
        jobs = [pool.submit(_write_shard, objects, path, digest) for path, objects, digest in todo]
        try:
            for job in track(jobs, description=f"sampling {name}"):
                job.result()
        except BrokenProcessPool:
            raise InputError(
                f"a worker was ended while sampling {name}, most likely for want of memory; give fewer --workers: "
                "what is done is kept"
            ) from None
        finally:
            # After an error the rest would only fail as well, one by one.
            pool.shutdown(wait=False, cancel_futures=True)
    return [name for path, objects, _ in shards for name in _left_out(path, objects)]


def _left_out(path: Path, objects: Sequence[TrainingObject]) -> list[str]:
    with _opened(path) as shard:
        sampled = {info.id for info in parse_infos(str(shard["infos"]))}
    return [source.id for source in objects if source.id not in sampled]


def _digest(objects: Sequence[TrainingObject]) -> str:
    """Changes with all that a shard depends on."""
    digest = hashlib.sha256(repr((VERSION, RESOLUTION, EXTENT, BAND, POINTS)).encode())
    for source in objects:
        info = {field.name: getattr(source, field.name) for field in fields(ItemInfo)}
        digest.update(json.dumps(info, sort_keys=True).encode())
        for array in (source.vertices, source.faces, source.face_colors):
            digest.update(repr((array.shape, array.dtype.str)).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _refuse_stale(digests: dict[Path, str], out: Path, name: str) -> None:
    there = sorted(out.glob(f"{name}-[0-9]*.npz"))
    stale = [path for path in there if path not in digests or _kept_digest(path) not in {None, digests[path]}]
    if stale:
        raise InputError(
            f"{len(stale)} of {len(there)} shards {name}-* in {out} (first: {stale[0].name}) are of other objects than "
            "those now asked for; prepare into another --out, or move these away"
        )


def _kept_digest(path: Path) -> str | None:
    """Of what a shard was made; None for those written before it was kept, which are taken as they are."""
    with _opened(path) as shard:
        return str(shard["digest"]) if "digest" in shard else None


@contextmanager
def _opened(path: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    try:
        with np.load(path) as shard:
            yield shard
    except DAMAGED as error:
        raise InputError(f"{path} is damaged ({error}); move it away and prepare again") from None


def _write_shard(objects: Sequence[TrainingObject], path: Path, digest: str) -> None:
    infos, items = [], []
    for source in objects:
        # Seeded by name, so that a shard does not depend on the others.
        item = sample_in_box(source.vertices, source.faces, source.face_colors, seed=zlib.crc32(source.id.encode()))
        if item is not None:
            items.append(item)
            infos.append({field.name: getattr(source, field.name) for field in fields(ItemInfo)})
    # Without any item too: else it would be sampled again each time.
    arrays = {key: np.stack([getattr(item, key) for item in items]) for key in ARRAYS} if items else NO_ITEMS
    texts = {"digest": np.array(digest), "infos": np.array(json.dumps(infos))}
    with whole_file(path) as passing:
        np.savez_compressed(passing, allow_pickle=False, **texts, **arrays)


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
        with _opened(path) as shard:
            own = parse_infos(str(shard["infos"]))
            if any(len(shard[key]) != len(own) for key in ARRAYS):
                raise ValueError(f"its arrays are not of {len(own)} items")
            infos += own
            for key in ARRAYS:
                columns[key].append(shard[key])
    arrays = {key: np.concatenate(columns[key]) for key in ARRAYS}
    return ItemSet(infos=tuple(infos), **arrays)
