"""GLB files pass the Khronos validator without errors, warnings or remarks.

Needs node and the package in tests/node (`npm ci --prefix tests/node`, which `make test` runs where npm exists).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_fields import FIELDS, cube_mesh, joined

from helicube.geometry.export import encode
from helicube.geometry.mesh import Mesh
from helicube.geometry.surface import SurfaceOptions, extract_surface

NODE = Path(__file__).resolve().parents[1] / "node"
SCRIPT = """
const validator = require('gltf-validator');
const data = require('fs').readFileSync(process.argv[1]);
validator.validateBytes(new Uint8Array(data)).then(r => console.log(JSON.stringify(r)));
"""


@pytest.fixture(scope="module")
def node() -> str:
    """Path of node; without it or the package, a skip at home and a failure in CI."""
    found = shutil.which("node")
    missing = (
        "node" if found is None else "gltf-validator" if not (NODE / "node_modules/gltf-validator").is_dir() else ""
    )
    if missing:
        message = f"{missing} is not installed; install Node.js and run: npm ci --prefix tests/node"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    assert found is not None
    return found


def report(node: str, data: bytes, folder: Path) -> dict[str, Any]:
    path = folder / "mesh.glb"
    path.write_bytes(data)
    done = subprocess.run(
        [node, "-e", SCRIPT, str(path)], cwd=NODE, capture_output=True, text=True, check=True, timeout=60
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def dressed(mesh: Mesh, *, colors: bool, normals: bool) -> Mesh:
    rng = np.random.default_rng(1)
    unit = rng.normal(size=(mesh.num_vertices, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return replace(
        mesh,
        vertex_colors=rng.integers(0, 256, (mesh.num_vertices, 3), dtype=np.uint8) if colors else None,
        vertex_normals=unit.astype(np.float32) if normals else None,
    )


@pytest.mark.parametrize("colors", [False, True])
@pytest.mark.parametrize("normals", [False, True])
@pytest.mark.parametrize("name", ["cube", "chair", "wide"])
def test_glb_is_valid(node: str, name: str, colors: bool, normals: bool, tmp_path: Path) -> None:
    if name == "cube":
        mesh = cube_mesh(1 / 3, (0.1, 0.2, 0.3))
    elif name == "chair":
        mesh = extract_surface(FIELDS["chair"], SurfaceOptions(cells=64)).mesh
    else:
        mesh = joined(*[cube_mesh(0.01, (i * 0.02, 0, 0)) for i in range(8193)])
    answer = report(
        node, encode(dressed(mesh, colors=colors, normals=normals), "glb", name="Stühle 椅子")[""], tmp_path
    )
    assert answer["issues"]["messages"] == []
    assert answer["info"]["totalTriangleCount"] == mesh.num_faces
    assert answer["info"]["totalVertexCount"] == mesh.num_vertices


def test_the_validator_finds_a_fault(node: str, tmp_path: Path) -> None:
    """It would be no test if everything passed: normals that are not unit vectors are an error."""
    mesh = replace(cube_mesh(), vertex_normals=np.full((8, 3), 0.3, dtype=np.float32))
    assert report(node, encode(mesh, "glb")[""], tmp_path)["issues"]["numErrors"] > 0
