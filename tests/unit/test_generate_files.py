"""Where meshes go is checked before anything is decoded."""

from __future__ import annotations

from pathlib import Path

import pytest

from helicube.engine.sampling import SamplingConfig
from helicube.errors import CheckpointError, MeshFileError
from helicube.pipelines.generate_files import GenerateOptions, generate_files, output_paths


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
