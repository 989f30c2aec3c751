"""Rays against a mesh, through Embree: no window, no GPU, no system library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.errors import MissingExtraError
from helicube.geometry.mesh import Mesh

__all__ = ["Hits", "RayCaster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """The first crossing of each ray; n rays."""

    # (n,) index of the face, -1 for none.
    face: NDArray[np.int32]
    # (n,) distance; meaningless where there is no hit.
    distance: NDArray[np.float32]
    # (n, 3) weights of the face's corners.
    weights: NDArray[np.float32]


class RayCaster:
    """A mesh in an Embree scene."""

    def __init__(self, mesh: Mesh) -> None:
        try:
            from embreex.mesh_construction import TriangleMesh
            from embreex.rtcore_scene import EmbreeScene
        except ImportError as error:
            raise MissingExtraError("embreex", "render") from error
        self._scene: Any = EmbreeScene()
        # The scene does not keep its geometry alive by itself.
        self._mesh: Any = TriangleMesh(
            self._scene,
            np.ascontiguousarray(mesh.vertices, dtype=np.float32),
            np.ascontiguousarray(mesh.faces, dtype=np.int32),
        )

    def first(self, origins: NDArray[np.float32], directions: NDArray[np.float32]) -> Hits:
        """First hits of (n, 3) rays."""
        found = self._scene.run(origins, directions, output=True)
        u, v = found["u"], found["v"]
        return Hits(
            face=found["primID"].astype(np.int32),
            distance=found["tfar"],
            weights=np.stack([1 - u - v, u, v], axis=1),
        )

    def blocked(self, origins: NDArray[np.float32], directions: NDArray[np.float32], reach: float) -> NDArray[np.bool_]:
        """(n,) whether anything lies within `reach` along each ray."""
        reaches = np.full(len(origins), reach, dtype=np.float32)
        return np.asarray(self._scene.run(origins, directions, reaches, query="OCCLUDED") >= 0, dtype=np.bool_)
