"""`helicube generate` with the bundled model, as users run it; coarse meshes, to be quick."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from helicube.cli.main import cli
from helicube.geometry.load import load_mesh
from helicube.geometry.topology import is_watertight

CHAIR, TABLE = "a red wooden chair", "a round table"
BUDGET = 1500


def generate(folder: Path, *arguments: str) -> dict[str, bytes]:
    """Names and bytes of the files that were written."""
    command = ["generate", *arguments, "-o", str(folder), "--cells", "40", "--max-triangles", str(BUDGET)]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    assert "tokens/s" in result.output
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def mesh_of(path: Path) -> trimesh.Trimesh:
    """The one mesh of a GLB, its vertices as they are."""
    (mesh,) = trimesh.load_scene(path, process=False).geometry.values()
    assert isinstance(mesh, trimesh.Trimesh)
    return mesh


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chairs and tables of one batch, seeds 1 and 2."""
    folder = tmp_path_factory.mktemp("both")
    names = ["a-red-wooden-chair-1.glb", "a-red-wooden-chair-2.glb", "a-round-table-1.glb", "a-round-table-2.glb"]
    assert sorted(generate(folder, CHAIR, TABLE, "--seed", "1", "--variants", "2")) == names
    return folder


def test_meshes_are_sound_coloured_and_within_budget(both: Path) -> None:
    palette: set[tuple[int, ...]] = set()
    for path in both.iterdir():
        mesh = mesh_of(path)
        faces = np.asarray(mesh.faces, dtype=np.int32)
        assert is_watertight(faces)
        assert 100 < len(faces) <= BUDGET
        assert mesh.volume > 0
        assert abs(mesh.bounds[0, 1]) < 1e-6, "it stands on the ground"
        colors = load_mesh(path).face_colors
        assert colors is not None
        palette |= {tuple(color) for color in colors.tolist()}
    assert len(palette) > 1


def test_the_same_seed_gives_the_same_bytes_in_a_batch_and_alone_and_another_seed_others(
    both: Path, tmp_path: Path
) -> None:
    want = {path.stem: path.read_bytes() for path in both.iterdir()}
    assert len(set(want.values())) == 4
    # The model is loaded anew each time.
    chair, table = (
        generate(tmp_path / "chair", CHAIR, "--seed", "1"),
        generate(tmp_path / "table", TABLE, "--seed", "2"),
    )
    assert chair == {"a-red-wooden-chair.glb": want["a-red-wooden-chair-1"]}
    assert table == {"a-round-table.glb": want["a-round-table-2"]}


def test_a_box_is_met_in_metres(tmp_path: Path) -> None:
    generate(tmp_path, TABLE, "--box", "3", "1", "2", "--size-m", "1.5")
    mesh = mesh_of(tmp_path / "a-round-table.glb")
    np.testing.assert_allclose(mesh.extents, [1.5, 0.5, 1.0], rtol=1e-5)
    assert is_watertight(np.asarray(mesh.faces, dtype=np.int32))


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="counts the processor time of a child")
def test_help_is_quick() -> None:
    def seconds() -> float:
        child = subprocess.Popen([sys.executable, "-m", "helicube", "--help"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        return usage.ru_utime + usage.ru_stime

    # Of the processor and not of the clock: other tests run beside this one.
    assert any(seconds() < 0.5 for _ in range(3))
