"""Which items a training run sees: preparing them once, and splitting off the unseen."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helicube.train.catalog import load_catalog
from helicube.train.objects import TrainingObject
from helicube.train.part_objects import part_objects
from helicube.train.procedural import generate_many
from helicube.train.shards import ItemInfo, ItemSet, load_shards, prepare_shards

__all__ = ["TRAINING", "choose", "load_items", "prepare_items", "split_unseen", "unseen_mask"]

# One item in this many is kept back to choose settings by; the test split is for the figures alone.
UNSEEN_SHARE = 40

# Names of the shards of the training split.
TRAINING = ("train", "parts", "procedural")


def prepare_items(data: Path, out: Path, *, num_procedural: int, workers: int, seed: int = 0) -> list[str]:
    """Sample the catalogue, its parts and procedural objects into `out`; what is there already is kept.

    Returns the ids of objects of the catalogue that enclose no volume, and are left out.

    Args:
        data: folder with `objects.npz` and `catalog.jsonl`.
    """
    catalog = list(load_catalog(data))
    train = [item for item in catalog if item.split == "train"]
    test = [item for item in catalog if item.split == "test"]
    left = prepare_shards(test, out, name="test", workers=workers)
    left += prepare_shards(train, out, name="train", workers=workers)
    prepare_shards(list(_parts(train)), out, name="parts", workers=workers)
    prepare_shards(list(generate_many(num_procedural, seed)), out, name="procedural", workers=workers)
    return left


def _parts(items: list[TrainingObject]) -> Iterator[TrainingObject]:
    return chain.from_iterable(part_objects(item) for item in items)


def load_items(folder: Path) -> ItemSet:
    """All prepared items of the training split."""
    return load_shards(folder, TRAINING)


def choose(items: ItemSet, mask: NDArray[np.bool_]) -> ItemSet:
    """The items where mask (n,) is true."""
    arrays = {f.name: getattr(items, f.name)[mask] for f in fields(ItemSet) if f.name != "infos"}
    return ItemSet(infos=tuple(info for info, keep in zip(items.infos, mask, strict=True) if keep), **arrays)


def unseen_mask(infos: Sequence[ItemInfo] | Sequence[TrainingObject]) -> NDArray[np.bool_]:
    """Which items (n,) are kept back; this depends on their ids alone, of parts on that of the whole."""
    whole = (info.id.partition("#")[0] for info in infos)
    return np.array([zlib.crc32(name.encode()) % UNSEEN_SHARE == 0 for name in whole], dtype=np.bool_)


def split_unseen(items: ItemSet) -> tuple[ItemSet, ItemSet]:
    """Items to learn from, and a few kept back."""
    unseen = unseen_mask(items.infos)
    return choose(items, ~unseen), choose(items, unseen)
