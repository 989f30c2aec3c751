"""Point clouds of training objects, to find out what a mesh looks most like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track

from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import best_yaw, sample_points, turn_yaw
from helicube.pipelines.tokenize import normalised
from helicube.train.objects import TrainingObject

__all__ = ["FINE", "NOTHING", "Gallery", "Match", "cloud_of"]

# Points of a cloud for the first look at all objects, for the second at those that it leaves, and for the distance to
# the last few.
COARSE, MEDIUM, FINE = 64, 256, 1024
LEFT_BY_FIRST, LEFT_BY_SECOND = 48, 8
# Objects compared at once: 64 MiB of distances in the first look.
CHUNK = 4096

Points = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The object that came nearest."""

    id: str
    class_name: str
    # Chamfer distance, mean of both directions, where the longest side is 1.92.
    distance: float


# Of a mesh that is not there.
NOTHING = Match(id="", class_name="", distance=float("inf"))


class Gallery:
    """Point clouds of objects, to find the nearest by Chamfer distance, best of four quarter turns about +Y."""

    def __init__(self, objects: Sequence[TrainingObject]) -> None:
        self.names = [(o.id, o.class_name) for o in objects]
        meshes = (Mesh(vertices=o.vertices, faces=o.faces.astype(np.int32)) for o in objects)
        # (n, FINE, 3)
        self.fine = np.stack([cloud_of(mesh) for mesh in track(meshes, "gallery", total=len(objects))])
        self.clouds = torch.from_numpy(self.fine)

    def nearest(self, points: Points) -> Match:
        """The object nearest to a cloud (FINE, 3)."""
        everything = torch.arange(len(self.names))
        few = self._nearest_few(points, COARSE, everything, LEFT_BY_FIRST)
        fewer = self._nearest_few(points, MEDIUM, few, LEFT_BY_SECOND).tolist()
        distance, index = min((best_yaw(points, self.fine[i]).distance, i) for i in fewer)
        name, class_name = self.names[index]
        return Match(id=name, class_name=class_name, distance=distance)

    def _nearest_few(self, points: Points, num_points: int, among: torch.Tensor, count: int) -> torch.Tensor:
        """Which `count` of some objects (n,) are nearest, as far as so many points of each tell."""
        found = []
        for part in torch.split(among, CHUNK):
            clouds = self.clouds[part, :num_points]
            found.append(torch.stack([chamfer(turn_yaw(points[:num_points], turn), clouds) for turn in range(4)]))
        nearest = torch.cat(found, dim=1).amin(dim=0).topk(min(count, len(among)), largest=False)
        return among[nearest.indices]


def chamfer(points: Points, clouds: torch.Tensor) -> torch.Tensor:
    """Chamfer distances of (P, 3) points to each cloud of (n, P, 3); (n,)."""
    pairs = torch.cdist(torch.from_numpy(np.ascontiguousarray(points)), clouds)  # (n, P, P)
    return (pairs.amin(dim=1).mean(dim=1) + pairs.amin(dim=2).mean(dim=1)) / 2


def cloud_of(mesh: Mesh) -> Points:
    """(FINE, 3) points of the surface; centred, longest side ±0.96, as the training objects are."""
    placed = replace(mesh, vertices=normalised(mesh.vertices))
    return np.asarray(sample_points(placed, FINE)[0], dtype=np.float32)
