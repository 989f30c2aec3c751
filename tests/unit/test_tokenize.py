"""Meshes to ids and back, with a tiny model of random weights, and what is refused."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from click.testing import CliRunner
from tiny import Words, tiny_weights

from helicube.cli.main import cli, main
from helicube.errors import InputError, MeshFileError
from helicube.geometry.box_sample import BAND, POINTS, RESOLUTION, pool_mean, sample_in_box, unpack
from helicube.geometry.load import load_mesh
from helicube.geometry.metrics import volume_iou
from helicube.geometry.winding import occupancy_lattice
from helicube.models.cube.lattice_code import Shape, box_ids, sizes_of_ids
from helicube.pipelines.meshing import BOUND, MeshOptions, find_surface
from helicube.pipelines.shape_model import DefaultModel, load_model
from helicube.pipelines.tokenize import (
    CELLS,
    ShapeIds,
    detokenize,
    normalised,
    occupancies,
    read_ids,
    tokenize,
    write_ids,
)


@pytest.fixture(scope="module")
def model() -> DefaultModel:
    return DefaultModel(tiny_weights(), Words())


@pytest.fixture
def chair(tmp_path: Path) -> Path:
    path = tmp_path / "chair.ply"
    trimesh.creation.box((1.0, 2.0, 0.5)).export(path)
    return path


def test_ids_survive_the_file_and_say_whose_they_are(model: DefaultModel, chair: Path, tmp_path: Path) -> None:
    tokenized = tokenize(model, chair)
    write_ids(tokenized.ids, model, tmp_path / "chair.json")
    row = read_ids(tmp_path / "chair.json")
    assert np.array_equal(row.ids, tokenized.ids)
    assert (row.model, row.encoder) == ("default", model.encoder_digest())
    assert np.array_equal(tokenize(model, chair).ids, row.ids)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chair.json", "chair.ply"]
    with pytest.raises(InputError, match="cannot write"):
        write_ids(row.ids, model, tmp_path / "no" / "chair.json")


def test_ids_come_back_as_the_mesh_that_they_were_made_of(tmp_path: Path) -> None:
    trimesh.creation.cylinder(radius=0.5, height=1.6, sections=48).export(tmp_path / "drum.ply")
    # Beside the mesh that it is of, and not in its place.
    arguments = [["tokenize", "drum.ply"], ["detokenize", "drum.json"]]
    for line in arguments:
        result = CliRunner().invoke(cli, [str(tmp_path / a) if "." in a else a for a in line])
        assert result.exit_code == 0, result.exception
    back = trimesh.load_mesh(tmp_path / "drum-decoded.glb")
    assert back.is_watertight
    assert back.extents / back.extents.max() == pytest.approx([1 / 1.6, 1 / 1.6, 1], abs=0.04)
    assert back.volume / np.prod(back.extents) == pytest.approx(np.pi / 4, rel=0.03)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tokenize", "gone.glb", "-o", "nope/x.json"], "the folder .*nope does not exist; create it first"),
        (["detokenize", "gone.json", "-o", "nope/x.glb"], "the folder .*nope does not exist; create it first"),
        (["detokenize", "gone.json", "-o", "x.fbx"], "cannot write the format '.fbx'; choose one of glb"),
        (["render", "gone.glb", "-o", "nope/x.gif"], "the folder .*nope does not exist; create it first"),
        (["render", "gone.glb", "-o", "x.jpg"], "the ending must be .png, or .gif"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_where_a_result_cannot_go_is_told_in_one_line_before_anything_is_read(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["helicube", *arguments])
    monkeypatch.setattr("helicube.pipelines.shape_model.load_model", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert re.fullmatch(f"error: .*{words}.*\n", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{}", '{"ids": 3}', '{"ids": ["a"]}', '{"ids": [[1], [2]]}', "[1, 2]", "\x00"])
def test_files_that_hold_no_ids(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match="no file of ids"):
        read_ids(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_ids(tmp_path / "missing.json")


def test_ids_of_another_model_are_refused(model: DefaultModel) -> None:
    ids = np.array([low for low, _ in model.plan.ranges])
    other = DefaultModel(tiny_weights(), Words())
    assert other.encoder_digest() == model.encoder_digest()
    row = ShapeIds(ids=ids, model="default", encoder=model.encoder_digest())
    # Another decoder reads the same ids; another encoder, of shapes or of colours, would have given others.
    digests = []
    with torch.no_grad():
        for weights in (other.code.shape.decoder.parameters(), other.code.shape.encoder.parameters(),
                        other.code.paint.parameters()):  # fmt: skip
            next(weights).add_(1)
            digests.append(other.encoder_digest())
    assert digests[0] == model.encoder_digest()
    assert len(set(digests)) == 3
    with pytest.raises(InputError, match=r"another model \(default, encoder [0-9a-f]{16}\).*--weights"):
        detokenize(other, row, MeshOptions())


def test_the_digest_does_not_depend_on_how_weights_were_read(model: DefaultModel) -> None:
    rounded = tiny_weights()
    rounded.code.bfloat16()
    assert DefaultModel(rounded, Words()).encoder_digest() == model.encoder_digest()


def test_ids_that_no_model_could_have_given_are_refused(model: DefaultModel) -> None:
    with pytest.raises(InputError, match="takes 15"):
        detokenize(model, ShapeIds(ids=np.zeros(7, dtype=np.int64)), MeshOptions())
    ids = np.array([low for low, _ in model.plan.ranges])
    ids[4] = 10**9
    with pytest.raises(InputError, match="id 1000000000 at place 4 is out of range"):
        detokenize(model, ShapeIds(ids=ids), MeshOptions())


def test_a_sheet_has_no_inside(model: DefaultModel, tmp_path: Path) -> None:
    path = tmp_path / "sheet.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 1 3 4\n")
    with pytest.raises(MeshFileError, match="encloses no volume"):
        tokenize(model, path)


def test_the_iou_counts_what_box_ids_round_off() -> None:
    box = trimesh.creation.box((1.0, 0.967, 0.967))
    vertices, faces = box.vertices.astype(np.float32), box.faces
    sizes = sizes_of_ids(box_ids(box.extents))
    full = Shape(sizes=sizes, field=lambda points: np.float32(0.96) - np.abs(points).max(axis=1), colors=None)
    true, mine = (1, 0.967, 0.967), (float(s) for s in sizes)
    both = [(min(t, m), max(t, m)) for t, m in zip(true, mine, strict=True)]
    expected = np.prod([low for low, _ in both]) / np.prod([high for _, high in both])
    assert expected < 0.95, "a size on one of the levels shows nothing"
    assert volume_iou(*occupancies(full, vertices, faces)) == pytest.approx(expected, abs=0.02)
    exact = replace(full, sizes=np.array(true, dtype=np.float32))
    assert volume_iou(*occupancies(exact, vertices, faces)) == 1


def test_the_iou_is_that_of_the_mesh_that_the_ids_come_back_as(tmp_path: Path) -> None:
    bundled = load_model()
    path = tmp_path / "drum.ply"
    trimesh.creation.cylinder(radius=0.5, height=1.6, sections=48).export(path)
    tokenized = tokenize(bundled, path)
    assert tokenized.volume_iou > 0.8
    mesh = find_surface(bundled.decode(tokenized.ids), 128)
    low, high = np.full(3, -BOUND), np.full(3, BOUND)
    source = load_mesh(path)
    truth = occupancy_lattice(normalised(source.vertices), source.faces, resolution=CELLS, low=low, high=high)
    back = occupancy_lattice(mesh.vertices, mesh.faces, resolution=CELLS, low=low, high=high)
    assert volume_iou(truth, back) == pytest.approx(tokenized.volume_iou, abs=0.01)


def test_box_sample_of_a_box_fills_its_lattice_whatever_its_proportions() -> None:
    box = trimesh.creation.box((0.2, 3.0, 1.0))
    colors = np.full((len(box.faces), 3), 7, dtype=np.uint8)
    sample = sample_in_box(box.vertices.astype(np.float32), box.faces, colors, seed=0)
    assert sample is not None
    voxels = unpack(sample.bits)
    # ±0.96 of ±1: 92 of 96 voxel centres along each axis.
    assert voxels.sum() == 92**3
    assert np.allclose(sample.extents, [0.2, 3.0, 1.0])
    assert np.allclose(np.abs(sample.surface).max(axis=1), 0.96, atol=1e-4)
    assert len(sample.points) == POINTS
    assert len(sample.band) == BAND
    beside = np.stack(np.unravel_index(sample.band, (RESOLUTION,) * 3), axis=1)
    # Two from the border is the last voxel inside, one the first outside.
    assert set(np.minimum(beside, RESOLUTION - 1 - beside).min(axis=1)) == {1, 2}
    filled = pool_mean(voxels, 48)
    assert filled.sum() * 8 == 92**3


def test_hidden_surface_is_not_sampled() -> None:
    outer, inner = trimesh.creation.box((2, 2, 2)), trimesh.creation.box((1, 1, 1))
    both = trimesh.util.concatenate([outer, inner])
    assert isinstance(both, trimesh.Trimesh)
    colors = np.repeat(np.array([[10, 0, 0], [0, 10, 0]], dtype=np.uint8), 12, axis=0)
    sample = sample_in_box(both.vertices.astype(np.float32), both.faces, colors, seed=0)
    assert sample is not None
    assert (sample.colors == [10, 0, 0]).all()
