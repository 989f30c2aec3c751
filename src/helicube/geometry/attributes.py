"""Normals and colours on the vertices of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from helicube.errors import GeometryError
from helicube.geometry.measure import cross, dot, face_vectors, unit_rows
from helicube.geometry.mend import split_fans
from helicube.geometry.mesh import Mesh
from helicube.geometry.topology import twins_of

__all__ = ["ColorField", "with_colors", "with_creases", "with_normals"]

# (n, 3) float32 coordinates -> (n, 3) sRGB: uint8, or floats from 0 to 1.
ColorField = Callable[[NDArray[np.float32]], NDArray[np.generic]]


def with_normals(mesh: Mesh, *, weight: Literal["area", "angle"] = "area") -> Mesh:
    """The mesh with unit vertex normals.

    `angle` weighs each face by its angle at the vertex, so that the triangulation of a flat side does not matter
    (Baerentzen and Aanaes, 2005). `area` weighs it by its area as well: along the narrow bevels that marching cubes
    leaves on edges the large sides win, and look flat. Where the sum vanishes, as at the tip of a needle, the normal of
    one of the faces stands in, and straight up where all of them have no area.
    """
    corners = [mesh.vertices[mesh.faces[:, k]] for k in range(3)]
    edges = [corners[(k + 1) % 3] - corners[k] for k in range(3)]
    vector = cross(edges[0], edges[1])  # (F, 3), twice the area long
    length = np.sqrt(dot(vector, vector))
    unit = unit_rows(vector)
    scale = max(float(length.max(initial=0)), float(np.finfo(np.float32).tiny))
    total = np.zeros((mesh.num_vertices, 3))
    for k in range(3):
        # atan2 of the sine and the cosine, both times the two edges' lengths: no division, no clipping.
        share = np.arctan2(length, -dot(edges[k], edges[k - 1]))
        if weight == "area":
            share *= length / scale
        for axis in range(3):
            weights = share * unit[:, axis]
            total[:, axis] += np.bincount(mesh.faces[:, k], weights=weights, minlength=mesh.num_vertices)
    normals = unit_rows(np.where(np.sqrt(dot(total, total))[:, None] > 1e-9, total, 0))
    weak = np.flatnonzero(~normals.any(axis=1))
    if len(weak):
        normals[weak] = (0, 1, 0)
        solid = length > 0
        stand_in = np.zeros_like(normals)
        stand_in[mesh.faces[solid].reshape(-1)] = np.repeat(unit[solid], 3, axis=0)
        found = weak[stand_in[weak].any(axis=1)]
        normals[found] = stand_in[found]
    return replace(mesh, vertex_normals=normals.astype(np.float32))


def with_creases(mesh: Mesh, crease_deg: float = 25.0) -> Mesh:
    """The mesh with normals that are smooth but across edges sharper than this; vertices there are doubled.

    For pictures: what comes out is no longer closed by its indices.
    """
    twins = twins_of(mesh.faces)
    unit = unit_rows(face_vectors(mesh.vertices, mesh.faces))
    paired = np.flatnonzero(twins >= 0)
    sharp = dot(unit[paired // 3], unit[twins[paired] // 3]) < np.cos(np.radians(crease_deg))
    twins[paired[sharp]] = -1
    return with_normals(split_fans(mesh, twins))


def with_colors(mesh: Mesh, query: ColorField, *, batch_points: int = 1 << 17) -> Mesh:
    """The mesh with the colours that a callback gives at its vertices.

    Args:
        mesh: vertices in the coordinates of the callback.
        query: (n, 3) coordinates to (n, 3) sRGB, as uint8 or as floats, which are cut off at 0 and 1.
        batch_points: most points in one call.

    Raises:
        GeometryError: the callback returns another shape, or values that are not finite.
    """
    colors = np.empty((mesh.num_vertices, 3), dtype=np.uint8)
    for start in range(0, mesh.num_vertices, batch_points):
        part = slice(start, start + batch_points)
        answer = np.asarray(query(mesh.vertices[part]))
        if answer.shape != colors[part].shape:
            raise GeometryError(f"colours have the shape {answer.shape}; {colors[part].shape} is needed")
        if answer.dtype != np.uint8:
            if not np.isfinite(answer).all():
                raise GeometryError("the colour field returned NaN or infinity; check the weights")
            answer = np.round(255 * np.clip(answer.astype(np.float32), 0, 1))
        colors[part] = answer
    return replace(mesh, vertex_colors=colors)
