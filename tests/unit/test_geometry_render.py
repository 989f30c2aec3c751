"""Pictures show what is there, where it is, in its colours."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from click.testing import CliRunner
from geometry_fields import FIELDS, cube_mesh, joined

from helicube.cli.render import command
from helicube.errors import GeometryError, InputError, MeshFileError, MissingExtraError
from helicube.geometry.mesh import Mesh
from helicube.geometry.occlusion import box_mean, cosine_directions, spread
from helicube.geometry.pictures import contact_sheet, encode_gif, encode_png, picture
from helicube.geometry.raycast import RayCaster
from helicube.geometry.render import RenderOptions, parse_background, render, turntable
from helicube.geometry.surface import SurfaceOptions, extract_surface


def painted(mesh: Mesh, color: tuple[int, int, int]) -> Mesh:
    colors = np.tile(np.array(color, dtype=np.uint8), (mesh.num_vertices, 1))
    return Mesh(vertices=mesh.vertices, faces=mesh.faces, vertex_colors=colors)


def test_rays_hit_where_geometry_says() -> None:
    rng = np.random.default_rng(0)
    caster = RayCaster(cube_mesh())
    origins = rng.normal(size=(2000, 3))
    origins = (origins / np.linalg.norm(origins, axis=1, keepdims=True) * 3).astype(np.float32)
    directions = (rng.uniform(-0.6, 0.6, (2000, 3)) - origins).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # Slab test of the unit cube.
    with np.errstate(divide="ignore"):
        t1, t2 = (-0.5 - origins) / directions, (0.5 - origins) / directions
    enter, leave = np.minimum(t1, t2).max(axis=1), np.maximum(t1, t2).min(axis=1)
    hits = caster.first(origins, directions)
    clear = np.abs(leave - enter) > 1e-4
    np.testing.assert_array_equal((hits.face >= 0)[clear], (leave > enter)[clear])
    there = clear & (leave > enter)
    np.testing.assert_allclose(hits.distance[there], enter[there], atol=1e-5)
    mesh = cube_mesh()
    position = np.einsum("nk,nkd->nd", hits.weights[there], mesh.vertices[mesh.faces[hits.face[there]]])
    np.testing.assert_allclose(position, (origins + directions * enter[:, None])[there], atol=1e-5)
    assert (caster.blocked(origins, directions, 10.0) == (hits.face >= 0)).all()
    assert not caster.blocked(origins, directions, 1.0).any()


def test_light_comes_from_all_over_the_hemisphere_as_cosine_has_it() -> None:
    rng = np.random.default_rng(1)
    normal = rng.normal(size=(50, 3)).astype(np.float32)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    sums = np.zeros((50, 3))
    for tile in range(16):
        for ray in range(4):
            directions = cosine_directions(normal, np.full(50, tile), ray, 4)
            np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, atol=1e-5)
            assert (np.einsum("nd,nd->n", directions, normal) > 0).all()
            sums += directions
    # The mean of a cosine-weighted hemisphere is two thirds of its normal.
    np.testing.assert_allclose(sums / 64, normal * 2 / 3, atol=0.03)
    lamp = spread(np.array([0, 0, 1], dtype=np.float32), np.arange(16), 0.1)
    np.testing.assert_allclose(lamp.mean(axis=0), [0, 0, 1], atol=0.02)


def test_box_mean_is_the_mean() -> None:
    plane = np.random.default_rng(2).random((9, 7)).astype(np.float32)
    np.testing.assert_allclose(box_mean(plane, 3)[4, 3], plane[3:6, 2:5].mean(), rtol=1e-6)
    np.testing.assert_allclose(box_mean(np.ones((5, 5), np.float32), 4), 1)


@pytest.mark.parametrize("name", ["sphere", "chair", "thin_rod"])
def test_the_mesh_fills_the_picture_and_no_border_cuts_it(name: str) -> None:
    mesh = extract_surface(FIELDS[name], SurfaceOptions(cells=64)).mesh
    image = render(mesh, RenderOptions(size=128, background=None, ground=False))
    rows, columns = np.nonzero(image[..., 3])
    assert rows.min() >= 1
    assert columns.min() >= 1
    assert rows.max() <= 126
    assert columns.max() <= 126
    assert max(np.ptp(rows), np.ptp(columns)) > 100


def test_front_is_plus_z_and_azimuth_turns_towards_plus_x() -> None:
    red, green = painted(cube_mesh(1, (0, 0, 0.5)), (255, 0, 0)), painted(cube_mesh(1, (0.6, 0, -0.5)), (0, 255, 0))
    both = joined(red, green)
    colors = np.concatenate([red.vertex_colors, green.vertex_colors])
    scene = Mesh(vertices=both.vertices, faces=both.faces, vertex_colors=colors)

    def greens(azimuth: float) -> np.ndarray:
        image = render(scene, RenderOptions(size=96, azimuth_deg=azimuth, elevation_deg=0, background=None)).astype(int)
        return np.nonzero((image[..., 1] > 2 * image[..., 0] + 20) & (image[..., 3] == 255))[1]

    front, back = greens(0), greens(180)
    # From the front the green cube peeps out on the right; from the back it is in front of the red one.
    assert front.min() > 48
    assert len(back) > 3 * len(front)
    assert len(greens(90)) > len(front)


def test_colours_are_kept_and_background_is_exact() -> None:
    image = render(painted(cube_mesh(), (40, 90, 200)), RenderOptions(size=64, background=(10, 20, 30), ground=False))
    assert tuple(image[0, 0]) == (10, 20, 30, 255)
    r, g, b = image[30:34, 30:34, :3].reshape(-1, 3).mean(axis=0)
    assert b > 1.5 * g > 1.5 * r


def test_transparent_edges_are_antialiased() -> None:
    mesh = extract_surface(FIELDS["sphere"], SurfaceOptions(cells=64)).mesh
    alpha = render(mesh, RenderOptions(size=96, background=None, ground=False))[..., 3]
    assert set(np.unique(alpha)) == {0, 64, 128, 191, 255}
    # Pixel count against the disc's area: antialiasing is unbiased.
    rows, columns = np.nonzero(alpha)
    radius = (np.ptp(rows) + np.ptp(columns)) / 4
    assert alpha.sum() / 255 == pytest.approx(np.pi * radius**2, rel=0.03)


def test_ground_shadow_is_below() -> None:
    with_ground = render(cube_mesh(), RenderOptions(size=96)).astype(int)
    without = render(cube_mesh(), RenderOptions(size=96, ground=False)).astype(int)
    darker = (without - with_ground)[..., 0]
    assert darker.min() >= 0
    assert darker[:32].max() == 0
    assert darker[64:].max() > 20


def test_the_same_mesh_gives_the_same_picture() -> None:
    mesh = extract_surface(FIELDS["chair"], SurfaceOptions(cells=64)).mesh
    np.testing.assert_array_equal(render(mesh, RenderOptions(size=64)), render(mesh, RenderOptions(size=64)))


def test_smooth_normals_smooth() -> None:
    mesh = extract_surface(FIELDS["sphere"], SurfaceOptions(cells=32)).mesh
    unit = mesh.vertices / np.linalg.norm(mesh.vertices, axis=1, keepdims=True)
    smooth = Mesh(vertices=mesh.vertices, faces=mesh.faces, vertex_normals=unit.astype(np.float32))
    options = RenderOptions(size=96, background=None, ground=False, crease_deg=0)

    def roughness(m: Mesh) -> float:
        gray = render(m, options)[30:60, 30:60, 0].astype(float)
        return float(np.abs(np.diff(gray, 2, axis=1)).mean())

    assert roughness(smooth) < 0.6 * roughness(mesh)


def test_files(tmp_path: Path) -> None:
    mesh = cube_mesh()
    image = render(mesh, RenderOptions(size=48))
    png = picture(mesh, tmp_path / "a.png", RenderOptions(size=48))
    np.testing.assert_array_equal(np.asarray(PIL.Image.open(png)), image[..., :3])
    clear = render(mesh, RenderOptions(size=48, background=None))
    (tmp_path / "b.png").write_bytes(encode_png(clear))
    np.testing.assert_array_equal(np.asarray(PIL.Image.open(tmp_path / "b.png")), clear)
    gif = PIL.Image.open(picture(mesh, tmp_path / "a.gif", RenderOptions(size=48), frames=8, seconds=0.8))
    assert (gif.n_frames, gif.size, gif.info["duration"], gif.info["loop"]) == (8, (48, 48), 100, 0)  # type: ignore[attr-defined]
    first = np.asarray(gif.convert("RGB")).astype(int)
    assert np.abs(first - image[..., :3]).mean() < 2


def test_a_turn_ends_where_it_began() -> None:
    frames = list(turntable(cube_mesh(), RenderOptions(size=48), frames=4))
    assert len(frames) == 4
    # A cube looks the same after a quarter.
    assert np.abs(frames[0].astype(int) - frames[1]).mean() < 1
    one = encode_gif(turntable(cube_mesh(), RenderOptions(size=32), frames=3), frame_ms=100)
    assert one == encode_gif(turntable(cube_mesh(), RenderOptions(size=32), frames=3), frame_ms=100)


def test_contact_sheet(tmp_path: Path) -> None:
    meshes = [painted(cube_mesh(), c) for c in ((200, 0, 0), (0, 200, 0), (0, 0, 200))]
    labels = ["a red cube", "", "a blue cube with a very long label " * 5]
    sheet = PIL.Image.open(contact_sheet(meshes, labels, tmp_path / "s.png", 2, options=RenderOptions(size=64)))
    pixels = np.asarray(sheet.convert("RGB")).astype(int)
    assert pixels.shape[1] == 128
    for i, channel in enumerate((0, 1, 2)):
        top, left = (i // 2) * (pixels.shape[0] // 2), (i % 2) * 64
        r = pixels[top + 32, left + 32]
        assert r[channel] == r.max() > 1.5 * np.delete(r, channel).max()
    ink = np.asarray((pixels < 120).all(axis=2))
    assert ink[64 : pixels.shape[0] // 2, :64].any()
    assert not ink[64 : pixels.shape[0] // 2, 64:].any()


def test_without_the_renderer_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "embreex.mesh_construction", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'helicube\[render\]'"):
        render(cube_mesh())


def test_mistakes_are_clear_errors(tmp_path: Path) -> None:
    empty = Mesh(vertices=np.zeros((0, 3), np.float32), faces=np.zeros((0, 3), np.int32))
    with pytest.raises(GeometryError, match="no faces"):
        render(empty)
    with pytest.raises(InputError, match=r"\.png.*\.gif"):
        picture(cube_mesh(), tmp_path / "a.bmp")
    with pytest.raises(InputError, match="transparent"):
        picture(cube_mesh(), tmp_path / "a.gif", RenderOptions(background=None))
    with pytest.raises(InputError, match="size is 5"):
        RenderOptions(size=5)
    with pytest.raises(InputError, match="frames"):
        picture(cube_mesh(), tmp_path / "a.gif", frames=0)
    with pytest.raises(InputError, match="labels"):
        contact_sheet([cube_mesh()], [], tmp_path / "a.png")
    with pytest.raises(InputError, match="#rrggbb"):
        parse_background("pink")
    assert not list(tmp_path.iterdir())


def test_command(tmp_path: Path) -> None:
    mesh = painted(cube_mesh(), (200, 30, 30)).export(tmp_path / "cube.glb")
    output = tmp_path / "cube.png"
    done = CliRunner().invoke(
        command, [str(mesh), "-o", str(output), "--size", "64", "--background", "transparent"], catch_exceptions=False
    )
    assert done.exit_code == 0
    pixels = np.asarray(PIL.Image.open(output))
    assert pixels.shape == (64, 64, 4)
    assert pixels[32, 32, 0] > 2 * pixels[32, 32, 1]
    with pytest.raises(MeshFileError, match="no such file"):
        CliRunner().invoke(command, [str(tmp_path / "no.glb"), "-o", str(output)], catch_exceptions=False)


@pytest.mark.parametrize(
    "options",
    [{"azimuth_deg": float("nan")}, {"azimuth_deg": float("inf")}, {"view_deg": 0.0}, {"view_deg": float("nan")}],
)
def test_views_that_show_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))} is .*; choose"):
        RenderOptions(**options)  # type: ignore[arg-type]
