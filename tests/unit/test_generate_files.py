"""Where meshes go is checked before anything is decoded, and what is made is kept."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from helicube.engine.sampling import SamplingConfig
from helicube.errors import CheckpointError, GeometryError, MeshFileError
from helicube.geometry.mesh import Mesh
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


class Hollow:
    """A pipeline in which some prompts have no surface."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(remarks=(), sampling=SamplingConfig())

    def decode_many(self, prompts: list[str], sampling: list[SamplingConfig], **_: object) -> list[Decoded]:
        common = {"ids": np.zeros(1, np.int64), "sizes": None, "notes": (), "text_s": 0.1, "tokens_s": 0.1,
                  "tpot_s": 0.1, "batch": 1, "read_bytes_per_s": 1.0}  # fmt: skip
        return [
            Decoded(prompt=prompt, seed=config.seed, **common)  # type: ignore[arg-type]
            for prompt, config in zip(prompts, sampling, strict=True)
        ]

    def build(self, decoded: Decoded, _: MeshOptions) -> Generated:
        if "nothing" in decoded.prompt:
            raise GeometryError("the field is empty")
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
        faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]], np.int32)
        times = StageTimes(text_s=0.1, tokens_s=0.1, surface_s=0.1, clean_up_s=0.1)
        return Generated(mesh=Mesh(vertices=corners, faces=faces), decoded=decoded, times=times)


def test_an_object_without_a_surface_does_not_take_the_others_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helicube.pipelines.generate_files.load", lambda *_, **__: Hollow())
    said = Console(file=io.StringIO(), width=200)
    with pytest.raises(GeometryError, match=r"^1 of 3 objects came out empty \(.*nothing\.ply\); the others are wr"):
        generate_files(options(tmp_path, "a chair", "nothing", "a table", file_format="ply"), said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-chair.ply", "a-table.ply"]
    assert said.file.getvalue().count("not made: the field is empty") == 1  # type: ignore[attr-defined]
    # Of a single object there is nothing more to say.
    with pytest.raises(GeometryError, match=r"^the field is empty$"):
        generate_files(options(tmp_path, "nothing"), said)
    assert said.file.getvalue().count("not made") == 1  # type: ignore[attr-defined]
