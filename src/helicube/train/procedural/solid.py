"""A closed triangle solid and its rigid and affine motions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Ints", "Solid", "oriented"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Solid:
    """One closed, outward-wound piece; every method returns a new one."""

    # (V, 3) positions.
    vertices: Floats
    # (F, 3) counter-clockwise seen from outside.
    faces: Ints

    def at(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Solid:
        """Move by (x, y, z)."""
        return Solid(self.vertices + np.array([x, y, z]), self.faces)

    def scaled(self, x: float, y: float, z: float) -> Solid:
        """Stretch by positive factors about the origin."""
        return Solid(self.vertices * np.array([x, y, z]), self.faces)

    def turned(self, axis: str, degrees: float) -> Solid:
        """Rotate about the axis "x", "y" or "z" through the origin, right-handed."""
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
        vertices = self.vertices.copy()
        vertices[:, i] = c * self.vertices[:, i] - s * self.vertices[:, j]
        vertices[:, j] = s * self.vertices[:, i] + c * self.vertices[:, j]
        return Solid(vertices, self.faces)

    def mirrored(self, axis: str = "x") -> Solid:
        """Reflect through the plane at zero of "x", "y" or "z"."""
        sign = np.where(np.arange(3) == "xyz".index(axis), -1.0, 1.0)
        return Solid(self.vertices * sign, self.faces[:, ::-1])

    def tapered(self, x: float, z: float) -> Solid:
        """Scale x and z linearly with height: by 1 at the lowest vertex, by (x, z) at the highest."""
        y = self.vertices[:, 1]
        t = (y - y.min()) / max(float(np.ptp(y)), 1e-12)
        factor = np.stack([1 + t * (x - 1), np.ones_like(t), 1 + t * (z - 1)], axis=1)
        return Solid(self.vertices * factor, self.faces)

    def bent(self, degrees: float) -> Solid:
        """Bend along y in the x-y plane by a total angle, so that the top leans towards +x (or -x if negative)."""
        if abs(degrees) < 1e-6:
            return self
        x, y, z = self.vertices.T
        y0, length = float(y.min()), max(float(np.ptp(y)), 1e-12)
        radius = length / np.radians(degrees)
        angle = (y - y0) / radius
        return Solid(
            np.stack([radius - (radius - x) * np.cos(angle), y0 + (radius - x) * np.sin(angle), z], 1), self.faces
        )

    @property
    def volume(self) -> float:
        """Signed volume; positive where the winding is outward."""
        a, b, c = (self.vertices[self.faces[:, i]] for i in range(3))
        return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def oriented(vertices: Floats, faces: Ints) -> Solid:
    """A solid whose consistent winding is reversed where it points inward."""
    solid = Solid(vertices - vertices[0], faces)
    return Solid(vertices, faces if solid.volume > 0 else faces[:, ::-1])
