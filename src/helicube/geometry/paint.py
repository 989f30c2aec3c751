"""Base colours of loaded meshes: materials, textures and vertex colours to sRGB."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.color import linear_to_srgb, srgb_to_linear
from helicube.geometry.mesh import Mesh

__all__ = ["face_colors_of", "material_of", "split_by_color", "vertex_colors_of"]

Colors = NDArray[np.uint8]
Light = NDArray[np.float64]

# Where a triangle's texture is looked up: the middle, the corners pulled in, and the edges' middles pulled in.
SAMPLES = np.array(
    [
        [1 / 3, 1 / 3, 1 / 3],
        [0.8, 0.1, 0.1],
        [0.1, 0.8, 0.1],
        [0.1, 0.1, 0.8],
        [0.45, 0.45, 0.1],
        [0.1, 0.45, 0.45],
        [0.45, 0.1, 0.45],
    ]
)


def face_colors_of(part: Any, *, linear: bool) -> Colors | None:
    """(F, 3) sRGB base colour of each face of a trimesh.Trimesh, or None if it is unpainted.

    As glTF has it, texture, material factor and vertex colour are multiplied as light. In OBJ vertex colours stand
    instead of the material.
    """
    by_vertex = vertex_light(part, linear=linear)
    light: Light | None = None if by_vertex is None else by_vertex[part.faces].mean(axis=1)
    visual = part.visual
    if visual.kind == "face":
        light = to_light(visual.face_colors[:, :3], linear=linear)
    elif visual.kind == "texture" and (linear or light is None):
        material = material_light(visual, part.faces, linear=linear)
        light = material if light is None else light if material is None else light * material
    return None if light is None else to_bytes(light)


def vertex_colors_of(part: Any, *, linear: bool) -> Colors | None:
    """(V, 3) sRGB colours of the vertices, if nothing but them paints the mesh."""
    light = vertex_light(part, linear=linear)
    if light is None or part.visual.kind == "face":
        return None
    if part.visual.kind == "texture" and linear:
        factor, image = material_of(part.visual)
        if image is not None:
            return None
        light = light * (1 if factor is None else to_light(factor[:3], linear=True))
    return to_bytes(light)


def vertex_light(part: Any, *, linear: bool) -> Light | None:
    """(V, 3) vertex colours as light."""
    visual = part.visual
    if visual.kind == "vertex":
        raw = visual.vertex_colors
    else:
        # Beside a material the loader keeps them as a plain attribute: of the visual for glTF, of the mesh for OBJ.
        raw = getattr(visual, "vertex_attributes", {}).get("color", part.vertex_attributes.get("color"))
    if raw is None or len(raw) != len(part.vertices):
        return None
    return to_light(np.asarray(raw)[:, :3], linear=linear)


def material_of(visual: Any) -> tuple[NDArray[Any] | None, Any]:
    """Colour factor (as stored) and texture image of a material, each or None."""
    material = visual.material
    if hasattr(material, "baseColorFactor"):
        return material.baseColorFactor, material.baseColorTexture
    return getattr(material, "diffuse", None), getattr(material, "image", None)


def material_light(visual: Any, faces: NDArray[np.integer], *, linear: bool) -> Light | None:
    """(F, 3) light that the material sends back at each face."""
    factor, image = material_of(visual)
    base = np.ones((len(faces), 3)) if factor is None else np.tile(to_light(factor[:3], linear=linear), (len(faces), 1))
    if image is not None and visual.uv is not None:
        # In OBJ files the diffuse colour beside a texture is often a left-over; common loaders use the texture alone.
        return texture_light(image, visual.uv[faces]) * (base if linear else 1)
    return None if factor is None else base


def texture_light(image: Any, uv: NDArray[np.floating]) -> Light:
    """(F, 3) mean of the texture over each face's (F, 3, 2) coordinates, repeated outside of 0 to 1."""
    pixels = np.asarray(image.convert("RGB"))
    height, width = pixels.shape[:2]
    at = np.einsum("sk,fkd->sfd", SAMPLES, np.nan_to_num(np.asarray(uv, dtype=np.float64)))
    # The loader's v runs upwards, an image's rows run down.
    column = np.floor((at[..., 0] % 1) * width).astype(np.intp) % width
    row = np.floor(((1 - at[..., 1]) % 1) * height).astype(np.intp) % height
    light: Light = srgb_to_linear(pixels[row, column] / 255).mean(axis=0)
    return light


def to_light(colors: NDArray[Any], *, linear: bool) -> Light:
    """Whole numbers of any width, or 0 to 1, as light intensities."""
    colors = np.asarray(colors)
    full = np.iinfo(colors.dtype).max if colors.dtype.kind in "iu" else 1
    share = np.clip(np.nan_to_num(colors.astype(np.float64)) / full, 0, 1)
    return share if linear else srgb_to_linear(share)


def to_bytes(light: Light) -> Colors:
    return np.asarray(np.round(255 * linear_to_srgb(light)), dtype=np.uint8)


def split_by_color(vertices: NDArray[np.float32], faces: NDArray[np.int32], face_colors: Colors) -> Mesh:
    """Faces' colours on vertices: one copy of a vertex for each colour around it."""
    packed = face_colors.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
    key = faces.astype(np.int64) * (1 << 24) + packed[:, None]  # (F, 3)
    unique, inverse = np.unique(key, return_inverse=True)
    color = unique % (1 << 24)
    return Mesh(
        vertices=vertices[unique >> 24],
        faces=inverse.reshape(-1, 3).astype(np.int32),
        vertex_colors=np.stack([color >> 16, color >> 8 & 255, color & 255], axis=1).astype(np.uint8),
    )
