"""How well prompts are followed: the class of the nearest training object, the box, and whether meshes are sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track

from helicube.engine.sampling import SamplingConfig
from helicube.errors import GeometryError
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import best_yaw, num_components, sample_points, turn_yaw
from helicube.geometry.topology import is_watertight
from helicube.pipelines.text_to_shape import MeshOptions, TextToShape
from helicube.train.objects import TrainingObject
from helicube.train.words import with_article

__all__ = ["ClassTrial", "Gallery", "class_trials", "most_frequent_classes"]

# Points of a cloud for the first look at all training objects, and for the final distance to the few nearest.
COARSE, FINE, SHORTLIST = 128, 1024, 24
# Prompts decoded side by side.
BATCH = 16

Points = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTrial:
    """One generated object and what it came closest to."""

    class_name: str
    seed: int
    nearest_id: str
    nearest_class: str
    distance: float
    watertight: bool
    components: int
    mesh: Mesh | None

    @property
    def right(self) -> bool:
        return self.class_name == self.nearest_class


class Gallery:
    """Point clouds of all training objects, longest side ±0.96, to find the nearest by Chamfer distance."""

    def __init__(self, objects: Sequence[TrainingObject]) -> None:
        self.objects = objects
        meshes = [Mesh(vertices=o.vertices, faces=o.faces.astype(np.int32)) for o in objects]
        self.fine = [sample_points(mesh, FINE)[0] for mesh in meshes]
        self.coarse = torch.from_numpy(np.stack([points[:COARSE] for points in self.fine]))  # (n, P, 3)

    def nearest(self, points: Points) -> tuple[TrainingObject, float]:
        """The object nearest to (FINE, 3) points, best of four quarter turns about +Y, and its distance."""
        distances = torch.stack([self._coarse_distances(turn_yaw(points[:COARSE], turn)) for turn in range(4)])
        shortlist = distances.amin(dim=0).topk(min(SHORTLIST, len(self.objects)), largest=False).indices.tolist()
        matches = [(best_yaw(points, self.fine[i]).distance, i) for i in shortlist]
        distance, index = min(matches)
        return self.objects[index], distance

    def _coarse_distances(self, points: Points) -> torch.Tensor:
        """Chamfer distances to all objects, (n,)."""
        pairs = torch.cdist(torch.from_numpy(np.ascontiguousarray(points)), self.coarse)  # (n, P, P)
        return (pairs.amin(dim=1).mean(dim=1) + pairs.amin(dim=2).mean(dim=1)) / 2


def most_frequent_classes(objects: Sequence[TrainingObject], count: int) -> list[str]:
    """Class names by number of objects."""
    names = [o.class_name for o in objects]
    return sorted(set(names), key=lambda name: (-names.count(name), name))[:count]


def class_trials(
    pipeline: TextToShape, gallery: Gallery, classes: Sequence[str], seeds: Sequence[int]
) -> list[ClassTrial]:
    """Generate "a CLASS" for every class and seed, and look up each result."""
    options = MeshOptions(cells=96, max_triangles=10_000)
    jobs = [(name, seed) for name in classes for seed in seeds]
    trials = []
    for start in track(range(0, len(jobs), BATCH), description="prompts"):
        part = jobs[start : start + BATCH]
        configs = [replace(pipeline.model.sampling, seed=seed) for _, seed in part]
        made = _generate(pipeline, [with_article(name) for name, _ in part], configs, options)
        trials += [_trial(gallery, name, seed, mesh) for (name, seed), mesh in zip(part, made, strict=True)]
    return trials


def _generate(
    pipeline: TextToShape, prompts: list[str], configs: list[SamplingConfig], options: MeshOptions
) -> list[Mesh | None]:
    """Meshes of a batch; None where the field has no surface."""
    try:
        return [made.mesh for made in pipeline.generate_many(prompts, configs, options=options)]
    except GeometryError:
        if len(prompts) == 1:
            return [None]
        return [_generate(pipeline, [p], [c], options)[0] for p, c in zip(prompts, configs, strict=True)]


def _trial(gallery: Gallery, name: str, seed: int, mesh: Mesh | None) -> ClassTrial:
    if mesh is None:
        return ClassTrial(
            class_name=name, seed=seed, nearest_id="", nearest_class="", distance=float("inf"), watertight=False,
            components=0, mesh=None,
        )  # fmt: skip
    found, distance = gallery.nearest(sample_points(normalised(mesh), FINE)[0])
    return ClassTrial(
        class_name=name,
        seed=seed,
        nearest_id=found.id,
        nearest_class=found.class_name,
        distance=distance,
        watertight=is_watertight(mesh.faces),
        components=num_components(mesh),
        mesh=mesh,
    )


def normalised(mesh: Mesh) -> Mesh:
    """Centred, longest side ±0.96, as the training objects are."""
    middle = (mesh.vertices.max(axis=0) + mesh.vertices.min(axis=0)) / 2
    scale = 1.92 / float(mesh.extents.max())
    return replace(mesh, vertices=((mesh.vertices - middle) * scale).astype(np.float32))
