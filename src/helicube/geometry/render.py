"""Pictures of a mesh: ray cast, softly lit, on the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.errors import GeometryError, InputError
from helicube.geometry.attributes import with_creases
from helicube.geometry.camera import Camera
from helicube.geometry.color import linear_to_srgb, srgb_to_linear
from helicube.geometry.measure import dot, face_vectors, unit_rows
from helicube.geometry.mesh import Mesh
from helicube.geometry.occlusion import blurred, box_mean, cosine_directions, spread
from helicube.geometry.raycast import RayCaster

__all__ = ["RenderOptions", "parse_background", "render", "turntable"]

Image = NDArray[np.uint8]
Floats = NDArray[np.float32]

# Light in the camera's right, up, back directions: over the viewer's left shoulder.
KEY = np.array([-0.45, 0.75, 0.6]) / np.linalg.norm([-0.45, 0.75, 0.6])
KEY_LIGHT, SKY_LIGHT, GROUND_LIGHT = 0.85, 0.55, 0.28
UNPAINTED = (200, 200, 204)
# Sub-pixel positions of the four samples at edges: a rotated grid.
ROTATED_GRID = ((0.375, 0.125), (0.875, 0.375), (0.625, 0.875), (0.125, 0.625))


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """View and quality."""

    # Width and height in pixels.
    size: int = 512
    # Degrees around +Y from the front (+Z) towards +X, and above the ground.
    azimuth_deg: float = 35.0
    elevation_deg: float = 22.0
    # Degrees of view.
    view_deg: float = 28.0
    # sRGB, or None for a transparent picture.
    background: tuple[int, int, int] | None = (244, 244, 246)
    # Rays for ambient light of each pixel; neighbours share theirs, so that 4 count as about 64.
    occlusion_rays: int = 4
    # Meshes without normals are smooth but across edges sharper than this; 0 leaves every face flat.
    crease_deg: float = 25.0
    # A soft shadow below the mesh.
    ground: bool = True

    def __post_init__(self) -> None:
        if not 16 <= self.size <= 8192:
            raise InputError(f"size is {self.size} pixels; choose from 16 to 8192")
        if not math.isfinite(self.azimuth_deg):
            raise InputError(f"azimuth_deg is {self.azimuth_deg}; choose a number of degrees, such as 35")
        if not 1 <= self.view_deg <= 120:
            raise InputError(f"view_deg is {self.view_deg}; choose from 1 to 120")
        if not -89 <= self.elevation_deg <= 89:
            raise InputError(f"elevation_deg is {self.elevation_deg}; choose from -89 to 89")


def parse_background(text: str) -> tuple[int, int, int] | None:
    """A colour from "#rrggbb", or None from "transparent"."""
    if text == "transparent":
        return None
    digits = text.removeprefix("#")
    if len(digits) != 6 or any(c not in "0123456789abcdefABCDEF" for c in digits):
        raise InputError(f"background is {text!r}; give transparent, or a colour as #rrggbb")
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def render(mesh: Mesh, options: RenderOptions | None = None) -> Image:
    """(size, size, 4) uint8 sRGB picture with straight alpha.

    Normals are interpolated where the mesh has them; otherwise they are made, with creases (see the options).

    Raises:
        GeometryError: the mesh is empty.
        MissingExtraError: Embree is not installed.
    """
    options = options or RenderOptions()
    (image,) = views(mesh, options, [options.azimuth_deg])
    return image


def turntable(mesh: Mesh, options: RenderOptions | None = None, *, frames: int = 36) -> Iterator[Image]:
    """Pictures of one full turn, starting at the azimuth of the options."""
    options = options or RenderOptions()
    if not 1 <= frames <= 720:
        raise InputError(f"frames is {frames}; choose from 1 to 720")
    return views(mesh, options, [options.azimuth_deg + 360 * i / frames for i in range(frames)])


def views(mesh: Mesh, options: RenderOptions, azimuths_deg: list[float]) -> Iterator[Image]:
    if not mesh.num_faces:
        raise GeometryError("the mesh has no faces; there is nothing to render")
    if mesh.vertex_normals is None and options.crease_deg > 0:
        mesh = with_creases(mesh, options.crease_deg)
    scene = _Scene(mesh)
    cameras = Camera.around(
        mesh, azimuths_deg=azimuths_deg, elevation_deg=options.elevation_deg, view_deg=options.view_deg
    )
    for camera in cameras:
        yield _Frame(scene, camera, options).image()


class _Scene:
    """What all pictures of one mesh share."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.caster = RayCaster(mesh)
        # (F, 3)
        self.face_normals: Floats = unit_rows(face_vectors(mesh.vertices, mesh.faces))
        srgb = mesh.vertex_colors if mesh.vertex_colors is not None else np.array([UNPAINTED], dtype=np.uint8)
        # (V, 3), or (1, 3) for an unpainted mesh.
        self.albedo: Floats = srgb_to_linear(srgb / 255).astype(np.float32)
        self.reach = float(mesh.extents.max())
        self.low, self.high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        self.floor = float(self.low[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Samples:
    """Rays that reached the mesh; n of them."""

    # (n, 3) positions, unit normals of faces towards the eye, the same smoothed, and linear colours.
    position: Floats
    facing: Floats
    normal: Floats
    albedo: Floats


class _Frame:
    """One picture in the making. P = size * size pixels, in rows."""

    def __init__(self, scene: _Scene, camera: Camera, options: RenderOptions) -> None:
        self.scene, self.camera, self.options = scene, camera, options
        self.size = options.size
        self.key = (KEY @ np.stack([camera.right, camera.up, -camera.forward])).astype(np.float32)

    def image(self) -> Image:
        every = np.arange(self.size**2)
        hit, samples = self.cast(every, 0.5, 0.5)
        if not hit.any():
            return self.composed(np.zeros((len(every), 4), dtype=np.float32), self.ground_shadow())
        light, edges = self.light_of_pixels(hit, samples)
        # Premultiplied RGBA, linear.
        rgba = np.zeros((self.size**2, 4), dtype=np.float32)
        rgba[hit] = shade(samples, self.key, light[hit])
        edge = np.flatnonzero(edges)
        rgba[edge] = 0
        for x, y in ROTATED_GRID:
            part, at = self.cast(edge, x, y)
            rgba[edge[part]] += shade(at, self.key, light[edge[part]]) / len(ROTATED_GRID)
        return self.composed(rgba, self.ground_shadow())

    def cast(self, pixels: NDArray[np.intp], x: float, y: float) -> tuple[NDArray[np.bool_], _Samples]:
        """Rays through these pixels, at x, y within each: which hit, and the hits."""
        directions = self.camera.rays(pixels % self.size + x, pixels // self.size + y, self.size)
        origins = np.tile(self.camera.eye.astype(np.float32), (len(pixels), 1))
        found = self.scene.caster.first(origins, directions)
        hit = found.face >= 0
        face, weights = found.face[hit], found.weights[hit]
        corners = self.scene.mesh.faces[face]  # (n, 3)
        facing = normal = self.scene.face_normals[face]
        if self.scene.mesh.vertex_normals is not None:
            smooth = mixed(weights, self.scene.mesh.vertex_normals, corners)
            length = np.linalg.norm(smooth, axis=1, keepdims=True)
            normal = np.divide(smooth, length, out=normal.copy(), where=length > 1e-6)
        # By the face and not by the smooth normal, which turns away near outlines.
        away = (dot(facing, directions[hit]) > 0)[:, None]
        facing, normal = np.where(away, -facing, facing), np.where(away, -normal, normal)
        albedo = self.scene.albedo
        albedo = mixed(weights, albedo, corners) if len(albedo) > 1 else np.broadcast_to(albedo, normal.shape)
        position = origins[hit] + found.distance[hit, None] * directions[hit]
        return hit, _Samples(position=position, facing=facing, normal=normal, albedo=albedo)

    def light_of_pixels(self, hit: NDArray[np.bool_], samples: _Samples) -> tuple[Floats, NDArray[np.bool_]]:
        """(P, 2) open shares of the sky and of the key light, and (P,) which pixels lie on an edge."""
        pixels = np.flatnonzero(hit)
        caster, rays, reach = self.scene.caster, self.options.occlusion_rays, self.scene.reach
        tile = tile_of(pixels, self.size)
        start = samples.position + samples.facing * np.float32(2e-3 * reach)
        sky = np.zeros(len(pixels), dtype=np.float32)
        for ray in range(rays):
            sky += ~caster.blocked(start, cosine_directions(samples.normal, tile, ray, rays), 0.6 * reach)
        lamp = ~caster.blocked(start, spread(self.key, tile, 0.12), 4 * reach)
        depth = (samples.position - self.camera.eye.astype(np.float32)) @ self.camera.forward.astype(np.float32)
        planes = [sky / np.float32(rays), lamp, *samples.normal.T, depth]
        # Only the part of the picture that the mesh covers, and a ring around it.
        rows, columns = pixels // self.size, pixels % self.size
        top, left = max(0, int(rows.min()) - 2), max(0, int(columns.min()) - 2)
        box = (slice(top, int(rows.max()) + 3), slice(left, int(columns.max()) + 3))
        square = []
        for plane in planes:
            whole = np.zeros((self.size, self.size), dtype=np.float32)
            whole[rows, columns] = plane
            square.append(whole[box])
        soft, edge = blurred(square[:2], hit.reshape(self.size, self.size)[box], square[2:5], square[5], 0.03 * reach)
        light = np.zeros((self.size, self.size, 2), dtype=np.float32)
        light[box] = np.stack(soft, axis=-1)
        edges = np.zeros((self.size, self.size), dtype=np.bool_)
        edges[box] = edge
        return light.reshape(-1, 2), edges.reshape(-1)

    def ground_shadow(self) -> Floats:
        """(P,) share of the sky that the mesh takes from the ground, cast at half the resolution, for it is soft."""
        half = (self.size + 1) // 2
        pixels = np.arange(half**2)
        directions = self.camera.rays(pixels % half + 0.5, pixels // half + 0.5, half)
        shadow = np.zeros(half**2, dtype=np.float32)
        reach, eye = self.scene.reach, self.camera.eye.astype(np.float32)
        pixels = pixels[directions[:, 1] < -1e-3] if self.options.ground and eye[1] > self.scene.floor else pixels[:0]
        distance = (self.scene.floor - eye[1]) / directions[pixels, 1]
        point = eye + distance[:, None] * directions[pixels]
        apart = np.maximum(np.maximum(self.scene.low - point, point - self.scene.high), 0)
        near = np.hypot(apart[:, 0], apart[:, 2]) < 0.5 * reach
        pixels, start = pixels[near], point[near]
        start[:, 1] += np.float32(1e-3 * reach)
        tile, rays = tile_of(pixels, half), self.options.occlusion_rays
        upward = np.broadcast_to(np.array([0, 1, 0], dtype=np.float32), start.shape)
        for ray in range(rays):
            toward = cosine_directions(upward, tile, ray, rays)
            shadow[pixels] += self.scene.caster.blocked(start, toward, 0.5 * reach) / np.float32(rays)
        soft = box_mean(shadow.reshape(half, half), 4)
        wide = np.repeat(np.repeat(soft, 2, axis=0), 2, axis=1)[: self.size, : self.size]
        return box_mean(wide, 3).reshape(-1)

    def composed(self, rgba: Floats, shadow: Floats) -> Image:
        """Mesh over shadow over background, as sRGB bytes."""
        cover = rgba[:, 3:]
        dark = (0.55 * shadow)[:, None] * (1 - cover)
        if self.options.background is None:
            alpha = cover + dark
            color = np.divide(rgba[:, :3], alpha, out=np.zeros_like(rgba[:, :3]), where=alpha > 0)
        else:
            back = srgb_to_linear(np.array(self.options.background) / 255).astype(np.float32)
            alpha = np.ones_like(cover)
            color = rgba[:, :3] + back * (1 - cover - dark)
        out = np.concatenate([linear_to_srgb(color), alpha], axis=1)
        return np.asarray(np.round(255 * np.clip(out, 0, 1)), dtype=np.uint8).reshape(self.size, self.size, 4)


def shade(samples: _Samples, key: Floats, light: Floats) -> Floats:
    """(n, 4) linear colours with alpha 1: a key light and a sky that is darker towards the ground."""
    facing = np.maximum(samples.normal @ key, 0)
    sky = GROUND_LIGHT + (SKY_LIGHT - GROUND_LIGHT) * (0.5 + 0.5 * samples.normal[:, 1])
    amount = KEY_LIGHT * facing * light[:, 1] + sky * (0.15 + 0.85 * light[:, 0])
    out = np.ones((len(facing), 4), dtype=np.float32)
    out[:, :3] = samples.albedo * amount[:, None]
    return out


def mixed(weights: Floats, values: Floats, corners: NDArray[np.int32]) -> Floats:
    """(n, d) values (V, d) at corners (n, 3), mixed by weights (n, 3)."""
    out = weights[:, :1] * values[corners[:, 0]]
    out += weights[:, 1:2] * values[corners[:, 1]]
    out += weights[:, 2:] * values[corners[:, 2]]
    return out


def tile_of(pixels: NDArray[np.intp], width: int) -> NDArray[np.intp]:
    """Place of each pixel in its tile of 4 by 4."""
    return pixels // width % 4 * 4 + pixels % width % 4
