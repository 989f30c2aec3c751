"""Files come in with their transforms and colours; broken ones end in one line."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from geometry_fields import cube_mesh
from numpy.typing import NDArray

from helicube.errors import MeshFileError
from helicube.geometry.load import LoadedMesh, load_mesh
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import volume
from helicube.geometry.paint import split_by_color

# Most of its functions have no types.
trimesh: Any = importlib.import_module("trimesh")


def coloured_cube() -> Mesh:
    cube = cube_mesh(1 / 3, (0.1, 0.2, -0.7))
    colors = np.random.default_rng(5).integers(0, 256, (8, 3), dtype=np.uint8)
    return Mesh(vertices=cube.vertices, faces=cube.faces, vertex_colors=colors)


def faces_of(loaded: LoadedMesh) -> NDArray[np.uint8]:
    assert loaded.face_colors is not None
    return loaded.face_colors


def two_part_scene(folder: Path, kind: str) -> Path:
    """A red box and, mirrored and moved by its node, a half-grey one under a node that scales by 2."""
    material = trimesh.visual.material.PBRMaterial
    red = trimesh.creation.box((1, 1, 1))
    red.visual = trimesh.visual.TextureVisuals(material=material(baseColorFactor=[255, 0, 0, 255]))
    grey = trimesh.creation.box((1, 1, 1))
    grey.visual = trimesh.visual.TextureVisuals(material=material(baseColorFactor=[128, 128, 128, 255]))
    scene = trimesh.Scene()
    scene.add_geometry(red, node_name="a")
    mirror = np.diag([-1.0, 2.0, 2.0, 1.0])
    mirror[:3, 3] = (5, 0, 0)
    scene.add_geometry(grey, node_name="b", transform=mirror)
    path = folder / f"scene.{kind}"
    if kind == "gltf":
        for name, data in trimesh.exchange.gltf.export_gltf(scene).items():
            (folder / name).write_bytes(data)
        return folder / "model.gltf"
    scene.export(path)
    return path


@pytest.mark.parametrize("kind", ["glb", "gltf"])
def test_scenes_are_flattened_with_their_transforms_and_materials(kind: str, tmp_path: Path) -> None:
    loaded = load_mesh(two_part_scene(tmp_path, kind))
    assert loaded.faces.shape == (24, 3)
    np.testing.assert_allclose(loaded.vertices.min(axis=0), [-0.5, -1, -1], atol=1e-6)
    np.testing.assert_allclose(loaded.vertices.max(axis=0), [5.5, 1, 1], atol=1e-6)
    # A mirrored part is still the right side out.
    assert volume(loaded.to_mesh()) == pytest.approx(1 + 4, rel=1e-5)
    right = loaded.vertices[loaded.faces].mean(axis=1)[:, 0] > 2
    assert (faces_of(loaded)[~right] == (255, 0, 0)).all()
    # Half of the light is 188 in sRGB.
    assert (faces_of(loaded)[right] == 188).all()


def test_the_same_mesh_twice_in_a_scene_comes_twice(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    box = trimesh.creation.box((1, 1, 1))
    scene.add_geometry(box, node_name="a", geom_name="box")
    move = np.eye(4)
    move[0, 3] = 3
    scene.graph.update(frame_to="b", matrix=move, geometry="box")
    scene.export(tmp_path / "twice.glb")
    loaded = load_mesh(tmp_path / "twice.glb")
    assert volume(loaded.to_mesh()) == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("kind", ["glb", "obj", "ply", "stl"])
def test_our_own_files_come_back(kind: str, tmp_path: Path) -> None:
    mesh = coloured_cube()
    assert mesh.vertex_colors is not None
    loaded = load_mesh(mesh.export(tmp_path / f"cube.{kind}"))
    np.testing.assert_array_equal(loaded.vertices[loaded.faces], mesh.vertices[mesh.faces])
    if kind == "stl":
        assert loaded.face_colors is None
        assert loaded.to_mesh().vertex_colors is None
    else:
        np.testing.assert_array_equal(loaded.vertex_colors, mesh.vertex_colors)
        np.testing.assert_array_equal(loaded.to_mesh().vertex_colors, mesh.vertex_colors)
        assert faces_of(loaded).shape == (12, 3)


def test_textures_are_averaged_over_each_face(tmp_path: Path) -> None:
    # Left half blue, right half green, top row white at v near 1: v runs up, rows run down.
    pixels = np.zeros((64, 64, 3), dtype=np.uint8)
    pixels[:, :32], pixels[:, 32:] = (0, 0, 255), (0, 255, 0)
    pixels[:8] = 255
    quad = trimesh.Trimesh(
        vertices=[
            [0, 0, 0],
            [1, 0, 0],
            [1, 1, 0],
            [0, 1, 0],
            [2, 0, 0],
            [3, 0, 0],
            [2, 1, 0],
            [4, 0, 1],
            [5, 0, 1],
            [4, 1, 1],
        ],
        faces=[[0, 1, 2], [4, 5, 6], [7, 8, 9]],
        process=False,
    )
    uv = np.array(
        [
            [0.1, 0.1],
            [0.4, 0.1],
            [0.4, 0.4],
            [0, 0],
            [0.6, 0.2],
            [0.9, 0.2],
            [0.6, 0.5],
            [1.2, 0.95],
            [1.3, 0.95],
            [1.2, 0.97],
        ]
    )
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=PIL.Image.fromarray(pixels), baseColorFactor=[255, 128, 255, 255]
    )
    quad.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    quad.export(tmp_path / "quad.glb")
    colors = faces_of(load_mesh(tmp_path / "quad.glb"))
    # The factor halves the green light; coordinates above 1 repeat the picture.
    np.testing.assert_array_equal(colors, [[0, 0, 255], [0, 188, 0], [255, 188, 255]])


def test_obj_materials_by_face(tmp_path: Path) -> None:
    (tmp_path / "m.mtl").write_text("newmtl a\nKd 1 0 0\nnewmtl b\nKd 0 0.5 0\n")
    (tmp_path / "m.obj").write_text(
        "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nusemtl a\nf 1 2 3\nusemtl b\nf 2 4 3\n"
    )
    loaded = load_mesh(tmp_path / "m.obj")
    assert sorted(map(tuple, faces_of(loaded).tolist())) == [(0, 128, 0), (255, 0, 0)]
    mesh = loaded.to_mesh()
    assert mesh.num_vertices == 6


def test_obj_without_its_library_is_grey_or_unpainted(tmp_path: Path) -> None:
    (tmp_path / "m.obj").write_text("mtllib gone.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n")
    assert load_mesh(tmp_path / "m.obj").faces.shape == (1, 3)


def test_quads_and_negative_indices(tmp_path: Path) -> None:
    (tmp_path / "q.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf -4 -3 -2 -1\n")
    assert load_mesh(tmp_path / "q.obj").faces.shape == (2, 3)


def test_split_by_color_keeps_each_face_in_its_colour() -> None:
    cube = cube_mesh()
    colors = np.random.default_rng(0).integers(0, 3, (12, 3)).astype(np.uint8)
    mesh = split_by_color(cube.vertices, cube.faces, colors)
    assert mesh.vertex_colors is not None
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], cube.vertices[cube.faces])
    for corner in range(3):
        np.testing.assert_array_equal(mesh.vertex_colors[mesh.faces[:, corner]], colors)
    plain = split_by_color(cube.vertices, cube.faces, np.zeros((12, 3), np.uint8))
    assert plain.num_vertices == 8


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.glb", None, "no such file"),
        ("thing.fbx", b"x", "cannot read the format '.fbx'"),
        ("thing", b"x", "cannot read the format ''"),
        ("empty.glb", b"", "is empty"),
        ("text.glb", b"hello" * 100, "not a readable GLB"),
        ("text.gltf", b"{nope", "not a readable GLTF"),
        ("bare.gltf", b"{}", "not a readable GLTF|no triangles"),
        ("text.ply", b"hello", "not a readable PLY"),
        ("short.stl", b"\0" * 90, "not a readable STL|no triangles"),
        ("points.obj", b"v 0 0 0\nv 1 1 1\n", "no triangles|not a readable OBJ"),
        ("nan.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "NaN"),
        ("huge.obj", b"v 1e300 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "beyond float32"),
        ("point.obj", b"v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n", "no size"),
        ("index.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "not a readable OBJ|name vertex"),
        ("zero.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 0\n", "a face names vertex 0, and OBJ files count from 1"),
        ("first.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0/1 2/1 3/1", "a face names vertex 0"),
        ("binary.obj", bytes(range(256)) * 4, "OBJ|no triangles"),
    ],
)
def test_broken_files_end_in_one_line(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MeshFileError, match=words) as caught:
        load_mesh(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", ["glb", "obj", "ply", "stl"])
def test_truncated_and_garbled_files_never_end_in_a_traceback(kind: str, tmp_path: Path) -> None:
    whole = coloured_cube().export(tmp_path / f"cube.{kind}").read_bytes()
    rng = np.random.default_rng(11)
    path = tmp_path / f"broken.{kind}"
    outcomes = set()
    for trial in range(60):
        data = bytearray(whole[: int(rng.integers(1, len(whole)))] if trial % 2 else whole)
        for at in rng.integers(0, len(data), trial % 7):
            data[at] = int(rng.integers(256))
        path.write_bytes(bytes(data))
        try:
            loaded = load_mesh(path)
        except MeshFileError:
            outcomes.add("refused")
        else:
            assert np.isfinite(loaded.vertices).all()
            assert loaded.faces.min() >= 0
            assert loaded.faces.max() < len(loaded.vertices)
            outcomes.add("read")
    assert "refused" in outcomes


def test_glb_with_indices_out_of_range(tmp_path: Path) -> None:
    path = coloured_cube().export(tmp_path / "cube.glb")
    data = bytearray(path.read_bytes())
    # The last 72 bytes are the 36 indices.
    data[-2:] = b"\xff\xff"
    path.write_bytes(bytes(data))
    with pytest.raises(MeshFileError):
        load_mesh(path)


def test_too_many_triangles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = coloured_cube().export(tmp_path / "cube.glb")
    monkeypatch.setattr("helicube.geometry.load.MAX_FACES", 11)
    with pytest.raises(MeshFileError, match="12 triangles are above the limit of 11"):
        load_mesh(path)
    monkeypatch.setattr("helicube.geometry.load.MAX_BYTES", 100)
    with pytest.raises(MeshFileError, match="GB is above the limit"):
        load_mesh(path)


def test_gltf_with_a_missing_buffer(tmp_path: Path) -> None:
    document = {"asset": {"version": "2.0"}, "buffers": [{"byteLength": 10, "uri": "gone.bin"}], "meshes": []}
    (tmp_path / "m.gltf").write_text(json.dumps(document))
    with pytest.raises(MeshFileError, match=r"cannot read .*gone\.bin \(No such file|not a readable GLTF"):
        load_mesh(tmp_path / "m.gltf")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MemoryError(), "not enough memory to read it; simplify"),
        (ModuleNotFoundError("No module named 'DracoPy'", name="DracoPy"), "needs the package DracoPy; install"),
        (PermissionError(13, "Permission denied", "cube.bin"), r"cannot read cube\.bin \(Permission denied\); check"),
        (KeyError("accessors"), "not a readable GLB file .*export it again"),
    ],
)
def test_each_fault_has_its_own_remedy(
    fault: Exception, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    path = coloured_cube().export(tmp_path / "cube.glb")
    monkeypatch.setattr(trimesh, "load_scene", fail)
    with pytest.raises(MeshFileError, match=words) as caught:
        load_mesh(path)
    assert "\n" not in str(caught.value)


def test_faults_of_our_own_are_not_laid_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AttributeError("ours")

    path = coloured_cube().export(tmp_path / "cube.glb")
    monkeypatch.setattr("helicube.geometry.load.face_colors_of", fail)
    with pytest.raises(AttributeError, match="ours"):
        load_mesh(path)


def test_a_broken_texture_is_named(tmp_path: Path) -> None:
    quad = trimesh.Trimesh(vertices=[[0, 0, 0], [1, 0, 0], [1, 1, 0]], faces=[[0, 1, 2]], process=False)
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=PIL.Image.fromarray(pixels))
    quad.visual = trimesh.visual.TextureVisuals(uv=np.array([[0, 0], [1, 0], [1, 1]]), material=material)
    data = bytearray(quad.export(file_type="glb"))
    at = bytes(data).index(b"IDAT") + 40
    data[at : at + 400] = bytes(400)
    path = tmp_path / "broken.glb"
    path.write_bytes(bytes(data))
    with pytest.raises(MeshFileError, match=r"a texture cannot be read .*export it again"):
        load_mesh(path)


def test_points_that_no_face_uses_do_not_count_for_the_size(tmp_path: Path) -> None:
    lines = ["ply", "format ascii 1.0", "element vertex 5", "property float x", "property float y", "property float z",
             "property uchar red", "property uchar green", "property uchar blue", "element face 4",
             "property list uchar int vertex_indices", "end_header"]  # fmt: skip
    lines += ["0 0 0 10 0 0", "100 0 0 0 0 99", "1 0 0 20 0 0", "0 1 0 30 0 0", "0 0 1 40 0 0"]
    lines += ["3 0 3 2", "3 0 2 4", "3 0 4 3", "3 2 3 4"]
    (tmp_path / "stray.ply").write_text("\n".join(lines) + "\n")
    loaded = load_mesh(tmp_path / "stray.ply")
    assert np.ptp(loaded.vertices, axis=0).tolist() == [1, 1, 1]
    assert loaded.faces.tolist() == [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    assert loaded.vertex_colors is not None
    assert loaded.vertex_colors[:, 0].tolist() == [10, 20, 30, 40]
