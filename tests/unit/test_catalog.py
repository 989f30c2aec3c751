"""Folders of training objects: the least that may be given, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from helicube.cli.main import cli
from helicube.errors import InputError
from helicube.train.catalog import load_catalog
from helicube.train.objects import TrainingObject

CORNERS = np.array([[0, 0, 0], [4, 0, 0], [0, 2, 0], [0, 0, 1]], np.float64)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def arrays(**changed: Any) -> dict[str, Any]:
    """Two tetrahedra, with what must be given alone."""
    whole = {
        "vertex_offset": np.array([0, 4, 8]),
        "face_offset": np.array([0, 4, 8]),
        "vertices": np.concatenate([CORNERS, CORNERS + 7]),
        "faces": np.concatenate([FACES, FACES]),
        "face_color": np.full((8, 3), 90, np.uint8),
    } | changed
    return {name: array for name, array in whole.items() if array is not None}


LINES: list[dict[str, Any]] = [
    {"id": "mine-1", "class": "wedge", "captions": ["a wedge"]},
    {"id": "mine-2", "class": "wedge", "captions": ["a grey wedge"], "split": "test", "color_source": "none"},
]


def read(folder: Path, lines: list[Any] | None = None, **changed: Any) -> list[TrainingObject]:
    np.savez(folder / "objects.npz", **arrays(**changed))
    texts = [line if isinstance(line, str) else json.dumps(line) for line in (LINES if lines is None else lines)]
    (folder / "catalog.jsonl").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return list(load_catalog(folder))


def test_the_least_that_is_documented_is_enough(tmp_path: Path) -> None:
    one, two = read(tmp_path)
    assert (one.id, one.class_name, one.subclass, one.split, one.captions) == (
        "mine-1", "wedge", "wedge", "train", ("a wedge",),
    )  # fmt: skip
    assert (one.part_names, one.captions_name_colors) == (("wedge",), True)
    assert (two.split, two.captions_name_colors) == ("test", False)
    # Wherever it stood and however large it was.
    assert np.allclose(one.vertices, two.vertices, atol=1e-6)
    assert one.vertices.dtype == np.float32
    assert np.allclose([one.vertices.min(axis=0), one.vertices.max(axis=0)], np.outer([-1, 1], [0.96, 0.48, 0.24]))
    assert (one.faces == FACES).all()


def test_whole_numbers_are_taken_as_placed(tmp_path: Path) -> None:
    grid = np.array([[0, 0, 0], [65535, 0, 0], [0, 65535, 0], [0, 0, 65535]], np.uint16)
    one, _ = read(tmp_path, vertices=np.concatenate([grid, grid]))
    assert (one.vertices.min(), one.vertices.max()) == (-1, 1)


def test_a_vertex_that_no_face_uses_does_not_shrink_the_object(tmp_path: Path) -> None:
    vertices = np.concatenate([CORNERS, [[1e6, 0, 0]], CORNERS])
    one, two = read(tmp_path, vertices=vertices, vertex_offset=np.array([0, 5, 9]))
    assert np.allclose(one.vertices[:4], two.vertices, atol=1e-6)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"faces": None}, "has no faces"),
        ({"faces": np.zeros((8, 4), np.int64)}, r"faces is int64 \(8, 4\)"),
        ({"face_color": np.zeros((8, 3))}, "face_color is float64"),
        ({"face_color": np.zeros((7, 3), np.uint8)}, "face_color has 7 rows for 8 faces"),
        ({"vertices": np.zeros((8, 3), np.uint32)}, "vertices are uint32; give floats"),
        ({"vertex_offset": np.array([0, 4, 9])}, "vertex_offset must rise from 0 to 8"),
        ({"vertex_offset": np.array([0, 8])}, "different numbers of objects"),
        ({"face_offset": np.array([0, 0, 8])}, "line 1: object 'mine-1' has no faces"),
        ({"faces": np.concatenate([FACES, FACES + 1])}, "line 2: faces of 'mine-2' name vertices 1 to 4 and it has 4"),
        ({"vertices": np.full((8, 3), np.nan)}, "line 1: object 'mine-1' has the size nan"),
        ({"vertices": np.concatenate([CORNERS, CORNERS]) * 4e307}, r"line 1: object 'mine-1' has the size 1\.6e\+308"),
        ({"vertices": np.concatenate([CORNERS, CORNERS]) * 1e-310}, "line 1: object 'mine-1' has the size 4e-310"),
        ({"faces": np.array(3)}, r"faces is int64 \(\)"),
        ({"vertex_offset": np.array(3)}, r"vertex_offset is int64 \(\)"),
        ({"face_part": np.ones(8, np.uint8)}, "line 1: face_part of 'mine-1' goes to 1, and parts has 1"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path, **changed)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is no JSON"),
        ([1], "line 2 is no JSON object"),
        ({"id": "mine-2", "class": "wedge"}, "line 2: captions are None"),
        ({**LINES[1], "captions": "a wedge"}, "they must be a list"),
        ({**LINES[1], "captions": [" "]}, "one or more texts"),
        ({**LINES[1], "class": 3}, "class is 3; it must be a text"),
        ({**LINES[1], "split": "dev"}, "split is 'dev'; it must be train or test"),
        ({**LINES[1], "parts": ["lid"]}, "parts are"),
        ({**LINES[1], "parts": [{"name": "1"}]}, "names having letters"),
        ({**LINES[1], "id": "proc-1"}, "mark what is made by code"),
        ({**LINES[1], "id": "chair#2"}, "mark what is made by code"),
        ({**LINES[1], "id": "\ud800"}, "half of a character"),
        ("[" * 100_000, "line 2 is no JSON"),
        ({**LINES[1], "id": "mine-1"}, "'mine-1' stands on an earlier line too"),
    ],
)
def test_lines_that_do_not_fit_are_named(tmp_path: Path, line: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path, lines=[LINES[0], line])


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has 1 lines and .* 2 objects"):
        read(tmp_path, lines=LINES[:1])
    whole = (tmp_path / "objects.npz").read_bytes()
    np.save(tmp_path / "plain.npy", np.zeros(3))
    garbled = whole[:60] + bytes(len(whole) - 120) + whole[-60:]
    for damaged in (b"", b"PK\x03\x04 cut", whole[: len(whole) // 2], garbled, (tmp_path / "plain.npy").read_bytes()):
        (tmp_path / "objects.npz").write_bytes(damaged)
        with pytest.raises(InputError, match=r"objects\.npz is damaged"):
            list(load_catalog(tmp_path))


def test_lines_may_be_written_as_editors_do(tmp_path: Path) -> None:
    read(tmp_path)
    line = json.dumps({**LINES[0], "captions": ["a\u2028wedge"]}, ensure_ascii=False)
    text = f"\ufeff{line}\r\n{json.dumps(LINES[1])}\r\n\r\n"
    (tmp_path / "catalog.jsonl").write_bytes(text.encode())
    assert [one.id for one in load_catalog(tmp_path)] == ["mine-1", "mine-2"]


def test_the_command_tells_it_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path, lines=[LINES[0], {**LINES[1], "captions": []}])
    done = CliRunner().invoke(cli, ["train", "prepare", "--data", str(tmp_path), "--out", str(tmp_path / "items")])
    assert isinstance(done.exception, InputError)
    assert not list((tmp_path / "items").glob("*"))


def test_objects_without_volume_are_named(tmp_path: Path) -> None:
    one_face: dict[str, Any] = {"face_offset": np.array([0, 1, 5]), "face_color": np.full((5, 3), 90, np.uint8)}
    read(tmp_path, faces=np.concatenate([FACES[:1], FACES]), **one_face)
    arguments = ["train", "prepare", "--data", str(tmp_path), "--out", str(tmp_path / "items"), "--procedural", "0"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert "note: 1 objects enclose no volume (they are open or flat) and are left out: mine-1" in done.output
