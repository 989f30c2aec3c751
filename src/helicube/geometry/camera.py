"""A pinhole camera that looks at the middle of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.geometry.mesh import Mesh

__all__ = ["Camera"]

# Space around the mesh, as a share of the distance.
MARGIN = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """Where the eye is, and the three directions of the picture; all (3,) float64."""

    eye: NDArray[np.float64]
    right: NDArray[np.float64]
    up: NDArray[np.float64]
    forward: NDArray[np.float64]
    # Half the picture's height at distance 1.
    tangent: float

    @staticmethod
    def around(mesh: Mesh, *, azimuths_deg: Sequence[float], elevation_deg: float, view_deg: float) -> list[Camera]:
        """One camera for each azimuth, all at the least distance from which the whole mesh fits in every picture.

        Azimuth 0 looks at the front (from +Z) and grows towards +X; elevation is above the ground.
        """
        low, high = mesh.vertices.min(axis=0).astype(np.float64), mesh.vertices.max(axis=0).astype(np.float64)
        middle = (low + high) / 2
        tangent = float(np.tan(np.radians(view_deg / 2)))
        views = [axes(azimuth, elevation_deg) for azimuth in azimuths_deg]  # rows: right, up, back
        # A point at (a, b, c) of a view is at height b / (distance - c), and likewise across.
        seen = [(mesh.vertices - middle) @ view.T for view in views]
        distance = max(float((np.abs(q[:, :2]).max(axis=1) / tangent + q[:, 2]).max()) for q in seen)
        distance = max(distance, 1e-9) * (1 + MARGIN)
        return [
            Camera(eye=middle + back * distance, right=right, up=up, forward=-back, tangent=tangent)
            for right, up, back in views
        ]

    def rays(self, x: NDArray[np.floating], y: NDArray[np.floating], size: int) -> NDArray[np.float32]:
        """(n, 3) unit directions through pixel positions of a square picture, y down, whole numbers between pixels."""
        u = ((2 * x / size - 1) * self.tangent).astype(np.float32)
        v = ((1 - 2 * y / size) * self.tangent).astype(np.float32)
        inverse = 1 / np.sqrt(1 + u * u + v * v)
        forward, right, up = (a.astype(np.float32) for a in (self.forward, self.right, self.up))
        return np.stack([(forward[i] + u * right[i] + v * up[i]) * inverse for i in range(3)], axis=1)


def axes(azimuth_deg: float, elevation_deg: float) -> NDArray[np.float64]:
    """(3, 3) right, up and backward directions of a view."""
    azimuth, elevation = np.radians([azimuth_deg, elevation_deg])
    back = np.array([np.sin(azimuth) * np.cos(elevation), np.sin(elevation), np.cos(azimuth) * np.cos(elevation)])
    right = np.array([np.cos(azimuth), 0.0, -np.sin(azimuth)])
    return np.stack([right, np.cross(back, right), back])
