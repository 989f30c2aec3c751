"""Where meshes go is checked before anything is decoded, and what is made is kept."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from helicube.engine.sampling import SamplingConfig
from helicube.errors import (
    CheckpointError,
    EmptyFieldError,
    GeometryError,
    HelicubeError,
    InputError,
    MeshFileError,
    MissingExtraError,
)
from helicube.geometry.mesh import Mesh
from helicube.geometry.placement import place
from helicube.pipelines.generate_files import GenerateOptions, generate_files, output_paths
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.text_to_shape import Decoded, Generated, StageTimes


def options(output: Path, *prompts: str, **changes: object) -> GenerateOptions:
    """With weights that are missing: what is said of the output comes first."""
    return GenerateOptions(prompts=prompts or ("a chair",), output=output, weights="no/such/folder", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/chair.glb", ["folder", "missing", "does not exist", "create it"]),
        ("chair.fbx", ["'.fbx'", "glb, obj, stl, ply"]),
        ("folder.glb", ["is a folder"]),
        ("file.txt/chair.glb", ["file.txt does not exist"]),
    ],
)
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str, words: list[str]) -> None:
    (tmp_path / "folder.glb").mkdir()
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(MeshFileError) as caught:
        generate_files(options(tmp_path / name))
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


def test_a_format_other_than_the_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeshFileError, match=r"chair\.glb is named \.glb and would hold the format obj.*name it \.obj"):
        generate_files(options(tmp_path / "chair.glb", file_format="obj"))
    # The same in capitals, or an ending that says nothing, is no contradiction: what is missing comes next.
    for name in ("chair.OBJ", "chair.model"):
        with pytest.raises(CheckpointError):
            generate_files(options(tmp_path / name, file_format="obj"))


def test_a_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "meshes"
    with pytest.raises(CheckpointError, match="is not a folder"):
        generate_files(options(folder, "a chair", "a table"))
    assert folder.is_dir()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeshFileError, match="cannot make the folder"):
        generate_files(options(tmp_path / "file" / "meshes"))


def test_files_are_named_after_prompts_and_seeds() -> None:
    two = options(Path("out"), "A red chair!", "a red chair", variants=2, seed=5)
    names = ["a-red-chair-5.glb", "a-red-chair-6.glb", "a-red-chair-5-2.glb", "a-red-chair-6-2.glb"]
    assert output_paths(two, two.requests(SamplingConfig())) == [Path("out") / name for name in names]


def test_no_two_objects_share_a_file() -> None:
    prompts = ("chair", "chair", "chair 2", "chair!", "chair 2 2", "椅", "机")
    one = options(Path("out"), *prompts)
    names = ["chair", "chair-2", "chair-2-2", "chair-3", "chair-2-2-2", "object", "object-2"]
    assert output_paths(one, one.requests(SamplingConfig())) == [Path("out") / f"{name}.glb" for name in names]
    many = options(Path("out"), *prompts, "chair 2 3", variants=4, seed=1)
    paths = output_paths(many, many.requests(SamplingConfig()))
    assert len(set(paths)) == len(paths) == 32


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cells": 1000}, "cells is 1000; choose from 4 to 512"),
        ({"cells": 2}, "cells is 2"),
        ({"size_m": -1.0}, "size_m is -1"),
        ({"max_triangles": 3}, "max_triangles=3"),
    ],
)
def test_mesh_settings_are_checked_before_anything_is_loaded_or_made(
    tmp_path: Path, changes: dict[str, float], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        generate_files(options(tmp_path / "meshes", **changes))
    assert not list(tmp_path.iterdir())


def test_what_pictures_need_is_looked_for_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="over the mesh"):
        generate_files(options(tmp_path / "x.png", file_format="ply", preview=True))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "embreex" else name)
    with pytest.raises(MissingExtraError, match=r"helicube\[render\]"):
        generate_files(options(tmp_path / "meshes", preview=True))
    assert not list(tmp_path.iterdir())


class Hollow:
    """A pipeline in which some prompts have no surface."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(remarks=(), sampling=SamplingConfig())

    def decode_many(self, prompts: list[str], sampling: list[SamplingConfig], **_: object) -> list[Decoded]:
        common = {"ids": np.zeros(1, np.int64), "sizes": None, "notes": ("'zz' is unknown",), "text_s": 0.1,
                  "tokens_s": 0.1, "tpot_s": 0.1, "batch": 1, "num_requests": 1, "read_bytes_per_s": 1.0}  # fmt: skip
        return [
            Decoded(prompt=prompt, seed=config.seed, **common)  # type: ignore[arg-type]
            for prompt, config in zip(prompts, sampling, strict=True)
        ]

    def build(self, decoded: Decoded, options: MeshOptions) -> Generated:
        if "nothing" in decoded.prompt:
            raise EmptyFieldError("the field is empty")
        if "sheet" in decoded.prompt:
            raise GeometryError("the mesh encloses no volume")
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
        faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]], np.int32)
        times = StageTimes(text_s=0.1, tokens_s=0.1, choice_s=0.0, surface_s=0.1, clean_up_s=0.1)
        mesh = place(Mesh(vertices=corners, faces=faces), options.placement)
        return Generated(mesh=mesh, decoded=decoded, times=times)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Console:
    """What is said when such a pipeline generates."""
    monkeypatch.setattr("helicube.pipelines.generate_files.load", lambda *_, **__: Hollow())
    return Console(file=io.StringIO(), width=200)


def text_of(said: Console) -> str:
    return said.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_an_object_without_a_surface_does_not_take_the_others_along(tmp_path: Path, said: Console) -> None:
    with pytest.raises(EmptyFieldError, match=r"^1 of 3 objects came out empty \(.*nothing\.ply\); the others are wr"):
        generate_files(options(tmp_path, "a chair", "nothing", "a table", file_format="ply"), said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-chair.ply", "a-table.ply"]
    assert text_of(said).count("not made: the field is empty") == 1
    assert text_of(said).count("note: 'zz' is unknown") == 3, "of the empty object too"
    # Of a single object there is nothing more to say.
    with pytest.raises(EmptyFieldError, match=r"^the field is empty$"):
        generate_files(options(tmp_path, "nothing"), said)
    assert text_of(said).count("not made") == 1


def test_each_object_has_its_own_reason_and_only_empty_ones_are_called_empty(tmp_path: Path, said: Console) -> None:
    with pytest.raises(GeometryError, match=r"^2 files were not made \(.*sheet\.ply, .*nothing\.ply\)") as caught:
        generate_files(options(tmp_path, "a sheet", "nothing", "a table", file_format="ply"), said)
    assert not isinstance(caught.value, EmptyFieldError)
    assert "a-sheet.ply  not made: the mesh encloses no volume" in text_of(said)
    assert "nothing.ply  not made: the field is empty" in text_of(said)
    assert [p.name for p in tmp_path.iterdir()] == ["a-table.ply"]


def test_another_seed_is_proposed_only_where_it_changes_something(tmp_path: Path, said: Console) -> None:
    for temperature, remedy in ((0.0, "try another prompt, or --temperature 0.5"), (0.5, "try another --seed")):
        with pytest.raises(EmptyFieldError, match=remedy):
            generate_files(options(tmp_path, "a chair", "nothing", temperature=temperature), said)


def test_a_picture_that_fails_does_not_take_meshes_along(
    tmp_path: Path, said: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Mesh, path: Path, *__: object, **___: object) -> None:
        if "chair" in path.name:
            raise MeshFileError("the disk is full")
        path.write_bytes(b"a picture")

    monkeypatch.setattr("helicube.geometry.pictures.picture", full)
    with pytest.raises(HelicubeError, match=r"^1 files were not made \(.*a-chair\.png\); the others are written"):
        generate_files(options(tmp_path, "a chair", "a table", preview=True), said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-chair.glb", "a-table.glb", "a-table.png"]
    assert "a-chair.png  not made: the disk is full" in text_of(said)


def test_another_axis_is_for_formats_without_one_and_never_for_the_picture(
    tmp_path: Path, said: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Mesh] = []
    monkeypatch.setattr("helicube.geometry.pictures.picture", lambda mesh, *_, **__: shown.append(mesh))
    written: dict[tuple[str, str], bytes] = {}
    for file_format in ("glb", "ply"):
        for up in ("y", "z"):
            target = options(tmp_path / f"{up}.{file_format}", "a chair", up=up, preview=True)
            written[file_format, up] = generate_files(target, said)[0].read_bytes()
            assert text_of(said).count("note: a GLB is always +Y up") == int((file_format, up) >= ("glb", "z"))
    # A GLB says of itself that +Y is up.
    assert written["glb", "z"] == written["glb", "y"]
    assert written["ply", "z"] != written["ply", "y"]
    for mesh in shown[1:]:
        np.testing.assert_array_equal(mesh.vertices, shown[0].vertices)
