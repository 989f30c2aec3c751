"""Files come back as what was written, whole or not at all, and the same bytes every time."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from geometry_fields import cube_mesh, joined

from helicube.errors import GeometryError, MeshFileError
from helicube.geometry.color import srgb_to_linear
from helicube.geometry.export import FORMATS, encode, export_mesh
from helicube.geometry.mesh import Mesh


def coloured() -> Mesh:
    """A cube at a place that decimals cannot hold, with colours and unit normals."""
    cube = cube_mesh(1 / 3, (0.1, 0.2, -0.7))
    rng = np.random.default_rng(5)
    out = cube.vertices - cube.vertices.mean(axis=0)
    return Mesh(
        vertices=cube.vertices,
        faces=cube.faces,
        vertex_colors=rng.integers(0, 256, (8, 3), dtype=np.uint8),
        vertex_normals=(out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32),
    )


def reload(path: Path) -> Any:
    return trimesh.load(path, process=False, force="mesh")


def read_glb(data: bytes) -> tuple[dict[str, Any], bytes]:
    magic, version, size = struct.unpack_from("<4sII", data)
    assert (magic, version, size) == (b"glTF", 2, len(data))
    length, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    document = json.loads(data[20 : 20 + length])
    length_bin, kind = struct.unpack_from("<I4s", data, 20 + length)
    assert kind == b"BIN\0"
    assert 28 + length + length_bin == len(data)
    return document, data[28 + length :]


@pytest.mark.parametrize("file_format", FORMATS)
def test_positions_and_faces_survive(file_format: str, tmp_path: Path) -> None:
    mesh = coloured()
    path = mesh.export(tmp_path / f"thing.{file_format}")
    back = reload(path)
    corners = np.asarray(back.vertices, dtype=np.float32)[back.faces]
    np.testing.assert_array_equal(corners, mesh.vertices[mesh.faces])
    assert back.volume == pytest.approx(1 / 27, rel=1e-5)


@pytest.mark.parametrize("file_format", FORMATS)
def test_another_axis_turns_every_format_but_the_one_that_names_its_own(file_format: str, tmp_path: Path) -> None:
    mesh = coloured()
    back = reload(mesh.export(tmp_path / f"thing.{file_format}", up="z"))
    # What was up, y, is z; the front, +z, is -y. A GLB's readers turn it themselves.
    turned = mesh.vertices[:, [0, 2, 1]] * np.array([1, -1, 1], dtype=np.float32)
    corners = np.asarray(back.vertices, dtype=np.float32)[back.faces]
    np.testing.assert_array_equal(corners, (mesh.vertices if file_format == "glb" else turned)[mesh.faces])
    assert back.volume == pytest.approx(1 / 27, rel=1e-5)
    assert (encode(mesh, file_format) == encode(mesh, file_format, up="z")) == (file_format == "glb")


def test_ply_holds_srgb_colours(tmp_path: Path) -> None:
    mesh = coloured()
    back = reload(mesh.export(tmp_path / "thing.ply"))
    np.testing.assert_array_equal(back.visual.vertex_colors[:, :3], mesh.vertex_colors)


def test_obj_holds_srgb_colours_behind_the_positions() -> None:
    mesh = coloured()
    lines = encode(mesh, "obj")[""].decode().splitlines()
    rows = np.array([[float(x) for x in line.split()[1:]] for line in lines if line.startswith("v ")])
    np.testing.assert_array_equal(rows[:, :3].astype(np.float32), mesh.vertices)
    np.testing.assert_array_equal(np.round(255 * rows[:, 3:]), mesh.vertex_colors)


@pytest.mark.parametrize("file_format", ["obj", "ply"])
def test_normals_survive(file_format: str, tmp_path: Path) -> None:
    mesh = coloured()
    assert mesh.vertex_normals is not None
    text = encode(mesh, file_format)[""]
    assert (b"vn " in text) if file_format == "obj" else (b"property float nx" in text)
    back = reload(mesh.export(tmp_path / f"thing.{file_format}"))
    np.testing.assert_allclose(back.vertex_normals, mesh.vertex_normals, atol=1e-6)


def test_glb_holds_linear_colours_exact_bounds_and_normals() -> None:
    mesh = coloured()
    assert mesh.vertex_colors is not None
    document, binary = read_glb(encode(mesh, "glb")[""])
    primitive = document["meshes"][0]["primitives"][0]

    def array(accessor: int, dtype: str, width: int) -> Any:
        a = document["accessors"][accessor]
        view = document["bufferViews"][a["bufferView"]]
        count = a["count"] * width
        return np.frombuffer(binary, dtype=dtype, count=count, offset=view["byteOffset"]).reshape(-1, width)

    attributes = primitive["attributes"]
    np.testing.assert_array_equal(array(attributes["POSITION"], "<f4", 3), mesh.vertices)
    np.testing.assert_array_equal(array(attributes["NORMAL"], "<f4", 3), mesh.vertex_normals)
    linear = array(attributes["COLOR_0"], "<u2", 4) / 65535
    # 0.0031308 * 12.92 = 0.04045; above it the power law. Written anew here, from the inverse direction.
    back = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    np.testing.assert_array_equal(np.round(255 * back[:, :3]), mesh.vertex_colors)
    np.testing.assert_array_equal(linear[:, 3], 1)
    np.testing.assert_array_equal(array(primitive["indices"], "<u2", 1).reshape(-1, 3), mesh.faces)
    position = document["accessors"][attributes["POSITION"]]
    np.testing.assert_array_equal(np.float32(position["min"]), mesh.vertices.min(axis=0))
    np.testing.assert_array_equal(np.float32(position["max"]), mesh.vertices.max(axis=0))


def test_all_256_levels_of_srgb_stay_apart() -> None:
    table = np.round(65535 * srgb_to_linear(np.arange(256) / 255))
    assert len(np.unique(table)) == 256
    assert (table[0], table[255]) == (0, 65535)


def test_wide_meshes_get_wide_indices() -> None:
    many = joined(*[cube_mesh(0.01, (i * 0.02, 0, 0)) for i in range(8193)])
    document, binary = read_glb(encode(many, "glb")[""])
    accessor = document["accessors"][document["meshes"][0]["primitives"][0]["indices"]]
    assert accessor["componentType"] == 5125
    view = document["bufferViews"][accessor["bufferView"]]
    indices = np.frombuffer(binary, dtype="<u4", count=accessor["count"], offset=view["byteOffset"])
    np.testing.assert_array_equal(indices.reshape(-1, 3), many.faces)


@pytest.mark.parametrize("file_format", FORMATS)
def test_same_mesh_same_bytes(file_format: str) -> None:
    assert encode(coloured(), file_format) == encode(coloured(), file_format)


def test_obj_brings_its_library_under_the_files_own_name(tmp_path: Path) -> None:
    export_mesh(coloured(), tmp_path / "my chair.obj", name="a chair\nwith two lines")
    text = (tmp_path / "my chair.obj").read_text().splitlines()
    assert "mtllib my chair.mtl" in text
    assert "o a chair_with two lines" in text
    library = (tmp_path / "my chair.mtl").read_text()
    color = coloured().vertex_colors
    assert color is not None
    kd = [float(x) for x in library.split("Kd ")[1].split("\n")[0].split()]
    np.testing.assert_allclose(kd, color.mean(axis=0) / 255, atol=1e-4)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my chair.mtl", "my chair.obj"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "thing.obj"
    (tmp_path / "thing.mtl").mkdir()
    (tmp_path / "thing.mtl" / "occupied").touch()
    target.write_text("old")
    with pytest.raises(MeshFileError, match=r"cannot write .*thing\.obj"):
        export_mesh(coloured(), target)
    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thing.mtl", "thing.obj"]


def test_what_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MeshFileError, match=r"'.fbx'.*glb, obj, stl, ply"):
        export_mesh(coloured(), tmp_path / "thing.fbx")
    with pytest.raises(MeshFileError, match="''"):
        export_mesh(coloured(), tmp_path / "thing")
    with pytest.raises(MeshFileError, match="No such file"):
        export_mesh(coloured(), tmp_path / "missing" / "thing.glb")
    empty = Mesh(vertices=np.zeros((0, 3), np.float32), faces=np.zeros((0, 3), np.int32))
    with pytest.raises(GeometryError, match="no faces"):
        export_mesh(empty, tmp_path / "thing.glb")
    broken = Mesh(vertices=np.full((3, 3), np.nan, np.float32), faces=np.array([[0, 1, 2]], np.int32))
    with pytest.raises(GeometryError, match="NaN"):
        export_mesh(broken, tmp_path / "thing.glb")
    assert not list(tmp_path.iterdir())


def test_format_can_differ_from_the_ending(tmp_path: Path) -> None:
    path = export_mesh(coloured(), tmp_path / "thing.bin", file_format="GLB")
    assert path.read_bytes().startswith(b"glTF")
