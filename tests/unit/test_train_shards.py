"""Shards know what they were made of: stale ones are refused, old ones taken as they are, empty ones written once."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from helicube.errors import InputError
from helicube.models.cube.lattice_code import LatticeCode
from helicube.train.items import unseen_mask
from helicube.train.objects import TrainingObject
from helicube.train.shards import ItemInfo, load_shards, prepare_shards
from helicube.train.token_set import kept_tokens, tokenize_items
from processes import alive
from train_cases import COLOR, SHAPE

CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float32)
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def box(name: str, *, is_flat: bool = False) -> TrainingObject:
    """A box, or one side of it, which encloses nothing."""
    faces = np.array([(a, b, c) for p, q, r, s in SIDES for a, b, c in ((p, q, r), (p, r, s))])
    faces = faces[:2] if is_flat else faces
    return TrainingObject(
        id=name,
        class_name="box",
        subclass="box",
        split="train",
        captions=("a box",),
        vertices=CORNERS * np.float32(0.96),
        faces=faces,
        face_colors=np.full((len(faces), 3), 200, np.uint8),
        face_parts=np.zeros(len(faces), np.uint8),
        part_names=("box",),
    )


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helicube.train.shards.SHARD", 2)


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted(folder.iterdir())}


def test_the_same_objects_are_sampled_once(tmp_path: Path) -> None:
    objects = [box("a"), box("b"), box("c")]
    prepare_shards(objects, tmp_path, name="train", workers=1)
    before = stamps(tmp_path)
    assert list(before) == ["train-0000.npz", "train-0001.npz"]
    prepare_shards([*objects[:2], objects[2]], tmp_path, name="train", workers=1)
    assert stamps(tmp_path) == before
    assert [info.id for info in load_shards(tmp_path).infos] == ["a", "b", "c"]


@pytest.mark.parametrize("change", ["caption", "vertex", "color", "order", "fewer"])
def test_shards_of_other_objects_are_refused_and_kept(tmp_path: Path, change: str) -> None:
    a, b, c = objects = [box("a"), box("b"), box("c")]
    prepare_shards(objects, tmp_path, name="train", workers=1)
    before = stamps(tmp_path)
    other = {
        "caption": [a, b, replace(c, captions=("a crate",))],
        "vertex": [a, b, replace(c, vertices=c.vertices * np.float32(0.5))],
        "color": [a, b, replace(c, face_colors=c.face_colors + np.uint8(1))],
        "order": [b, a, c],
        "fewer": [a, b],
    }[change]
    with pytest.raises(InputError, match=r"1 of 2 shards train-\* .* another --out"):
        prepare_shards(other, tmp_path, name="train", workers=1)
    assert stamps(tmp_path) == before


def test_shards_that_do_not_say_what_they_are_of_are_taken(tmp_path: Path) -> None:
    """As they were written before digests were kept."""
    prepare_shards([box("a"), box("b")], tmp_path, name="train", workers=1)
    path = tmp_path / "train-0000.npz"
    with np.load(path) as shard:
        arrays = {name: shard[name] for name in shard.files if name != "digest"}
    np.savez_compressed(path, allow_pickle=False, **arrays)
    before = stamps(tmp_path)
    prepare_shards([box("x"), box("y")], tmp_path, name="train", workers=1)
    assert stamps(tmp_path) == before


def test_a_damaged_shard_is_one_clear_line(tmp_path: Path) -> None:
    prepare_shards([box("a")], tmp_path, name="train", workers=1)
    path = tmp_path / "train-0000.npz"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="is damaged"):
        load_shards(tmp_path)


def test_objects_without_volume_leave_an_empty_shard(tmp_path: Path) -> None:
    items = tmp_path / "items"
    objects = [box("a", is_flat=True), box("b", is_flat=True), box("c")]
    assert prepare_shards(objects, items, name="train", workers=1) == ["a", "b"]
    before = stamps(items)
    assert list(before) == ["train-0000.npz", "train-0001.npz"]
    assert prepare_shards(objects, items, name="train", workers=1) == ["a", "b"], "told again"
    assert stamps(items) == before
    found = load_shards(items)
    assert [info.id for info in found.infos] == ["c"]
    assert len(load_shards(items, ("train-0000",))) == 0
    torch.manual_seed(0)
    code = LatticeCode(SHAPE, COLOR).eval().requires_grad_(False)
    want = tokenize_items(code, found)
    for _ in range(2):
        rows = [row for part in kept_tokens(code, items) for row in part.shape_ids]
        assert np.array_equal(np.stack(rows), want.shape_ids)


def test_tokens_that_are_damaged_are_made_again(tmp_path: Path) -> None:
    prepare_shards([box("a"), box("b")], tmp_path, name="train", workers=1)
    torch.manual_seed(0)
    code = LatticeCode(SHAPE, COLOR).eval().requires_grad_(False)
    want = kept_tokens(code, tmp_path)
    [kept] = tmp_path.glob("tokens-*/*.npz")
    whole = kept.read_bytes()
    for damaged in (b"", b"PK nonsense", whole[: len(whole) // 2]):
        kept.write_bytes(damaged)
        found = kept_tokens(code, tmp_path)
        assert [len(part) for part in found] == [len(part) for part in want]
        assert np.array_equal(found[0].shape_ids, want[0].shape_ids)
        assert len(kept.read_bytes()) == len(whole)


def test_parts_are_kept_back_with_their_whole() -> None:
    def info(name: str) -> ItemInfo:
        return ItemInfo(id=name, class_name="", subclass="", split="train", captions=(), captions_name_colors=False)

    wholes = [info(f"car-{i}") for i in range(400)]
    kept = unseen_mask(wholes)
    assert 2 < kept.sum() < 30
    parts = [info(f"car-{i}#wheel-{k}") for i in range(400) for k in range(3)]
    assert np.array_equal(unseen_mask(parts), np.repeat(kept, 3))
    assert unseen_mask([]).dtype == np.bool_


def test_after_an_error_the_other_shards_are_not_tried(tmp_path: Path) -> None:
    broken = replace(box("box-0"), faces=np.array([(0, 1, 99)]))
    with pytest.raises(IndexError):
        prepare_shards([broken, *(box(f"box-{i}") for i in range(1, 80))], tmp_path, name="train", workers=1)
    assert len(list(tmp_path.glob("train-*"))) < 30


def test_arrays_of_a_shard_that_disagree_are_told(tmp_path: Path) -> None:
    prepare_shards([box("a"), box("b")], tmp_path, name="train", workers=1)
    path = tmp_path / "train-0000.npz"
    with np.load(path) as shard:
        arrays = {key: shard[key] for key in shard.files}
    np.savez_compressed(path, **{**arrays, "points": arrays["points"][:1]})
    with pytest.raises(InputError, match=r"train-0000\.npz is damaged \(its arrays are not of 2 items\)"):
        load_shards(tmp_path)


def test_workers_do_not_outlive_whoever_started_them() -> None:
    """Also where that was killed: workers wait for work on a pipe that each of them keeps open."""
    code = (
        "import os, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from helicube.train.worker_life import live_with_parent\n"
        "with ProcessPoolExecutor(2, initializer=live_with_parent) as pool:\n"
        "    print(*pool.map(worker, range(2)), flush=True)\n"
        "    time.sleep(60)\n"
    )
    worker = "def worker(_):\n    import os, time\n    time.sleep(0.5)\n    return os.getpid()\n"
    process = subprocess.Popen([sys.executable, "-c", worker + code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    workers = [int(word) for word in process.stdout.readline().split()]
    assert len(set(workers)) == 2
    process.kill()
    process.wait()
    until = time.monotonic() + 60
    while any(map(alive, workers)):
        assert time.monotonic() < until, "workers are left"
        time.sleep(0.1)
