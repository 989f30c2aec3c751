"""Directions for soft light, and the blur that lets neighbouring pixels share their rays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["blurred", "box_mean", "cosine_directions", "spread"]

Floats = NDArray[np.float32]

# Pixels repeat their sets of directions in tiles of 4 by 4, and the blur averages over one tile.
TILE = 16


def radical_inverse(i: NDArray[np.integer]) -> NDArray[np.float64]:
    """Van der Corput sequence in base 2: the bits of i mirrored at the point."""
    i, out, step = np.asarray(i, dtype=np.int64).copy(), np.zeros(np.shape(i)), 0.5
    while i.any():
        out += step * (i & 1)
        i >>= 1
        step /= 2
    return out


def local_frame(normal: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors at right angles to each normal and to each other.

    Source: Duff et al., Building an Orthonormal Basis, Revisited (JCGT 2017).
    """
    x, y, z = normal[:, 0], normal[:, 1], normal[:, 2]
    sign = np.where(z >= 0, np.float32(1), np.float32(-1))
    a = -1 / (sign + z)
    b = x * y * a
    return (
        np.stack([1 + sign * x * x * a, sign * b, -sign * x], axis=1),
        np.stack([b, sign + y * y * a, -y], axis=1),
    )


def cosine_directions(normal: Floats, tile: NDArray[np.integer], ray: int, rays: int) -> Floats:
    """(n, 3) directions over each normal, as dense as its light counts: a Hammersley set shared out over a tile."""
    total = TILE * rays
    index = np.arange(TILE) * rays + ray
    first, second = (index + 0.5) / total, radical_inverse(index)
    radius, angle = np.sqrt(first), 2 * np.pi * second
    table = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.sqrt(1 - first)], axis=1).astype(np.float32)
    u, v = local_frame(normal)
    local = table[tile]
    return np.asarray(local[:, :1] * u + local[:, 1:2] * v + local[:, 2:] * normal, dtype=np.float32)


def spread(direction: Floats, tile: NDArray[np.integer], radius: float) -> Floats:
    """(n, 3) unit vectors to points of a disc of this radius, one unit along `direction`: a lamp with a size."""
    index = np.arange(TILE)
    r, angle = radius * np.sqrt((index + 0.5) / TILE), 2 * np.pi * radical_inverse(index)
    u, v = local_frame(direction[None])
    table = direction + (r * np.cos(angle))[:, None] * u + (r * np.sin(angle))[:, None] * v
    table = (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32)
    return np.ascontiguousarray(table[tile])


def blurred(
    light: list[Floats], valid: NDArray[np.bool_], guide: list[Floats], depth: Floats, step: float
) -> tuple[list[Floats], NDArray[np.bool_]]:
    """Means over the 4 by 4 neighbours that lie on the same surface, and the pixels at the edges of surfaces.

    Args:
        light: (h, w) planes to blur.
        valid: (h, w) where they are meant; other pixels get the mean of what is valid around them, or 0.
        guide: three (h, w) planes of normals, and
        depth: (h, w), to tell surfaces apart.
        step: largest difference of depth between neighbours on one surface.

    Returns:
        The planes, and (h, w) edge flags.
    """
    h, w = valid.shape
    total = [np.zeros((h, w), dtype=np.float32) for _ in light]
    count = np.zeros((h, w), dtype=np.float32)
    edge = np.zeros((h, w), dtype=np.bool_)
    for dy in (-2, -1, 0, 1):
        for dx in (-2, -1, 0, 1):
            here = (slice(max(0, -dy), h - max(0, dy)), slice(max(0, -dx), w - max(0, dx)))
            there = (slice(max(0, dy), h + min(0, dy)), slice(max(0, dx), w + min(0, dx)))
            # Not einsum: with an inner axis of three it is several times slower.
            like = guide[0][here] * guide[0][there]
            like += guide[1][here] * guide[1][there]
            like += guide[2][here] * guide[2][there]
            same = (like > 0.8) & (np.abs(depth[here] - depth[there]) < step)
            # Pixels off the mesh have no normal: nothing is like them.
            if (dy, dx) in {(0, -1), (-1, 0)}:
                crossing = ~same & (valid[here] | valid[there])
                edge[here] |= crossing
                edge[there] |= crossing
            same |= ~valid[here] & valid[there]
            count[here] += same
            for plane, sums in zip(light, total, strict=True):
                sums[here] += same * plane[there]
    np.maximum(count, 1, out=count)
    return [sums / count for sums in total], edge


def box_mean(plane: Floats, width: int) -> Floats:
    """(h, w) mean over width by width pixels, the border repeated."""
    for axis in (0, 1):
        before = width // 2
        padding = [(0, 0), (0, 0)]
        padding[axis] = (before, width - 1 - before)
        padded = np.moveaxis(np.pad(plane, padding, mode="edge"), axis, 0)
        size = plane.shape[axis]
        total = padded[:size].copy()
        for i in range(1, width):
            total += padded[i : i + size]
        plane = np.moveaxis(total / np.float32(width), 0, axis)
    return plane
