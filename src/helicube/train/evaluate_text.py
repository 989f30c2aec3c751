"""How well prompts are followed: the class of the nearest training object, the box, and whether meshes are sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from helicube.engine.sampling import SamplingConfig
from helicube.errors import EmptyFieldError
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import num_components
from helicube.geometry.topology import is_watertight
from helicube.pipelines.meshing import MeshOptions, find_surface
from helicube.pipelines.text_to_shape import Generated, TextToShape
from helicube.train.gallery import NOTHING, Gallery, Match, cloud_of
from helicube.train.objects import TrainingObject
from helicube.train.words import with_article

__all__ = [
    "ClassTrial",
    "Galleries",
    "box_figures",
    "class_trials",
    "most_frequent_classes",
    "prompt_figures",
    "real_right_shares",
]

# Prompts decoded side by side.
BATCH = 16

# Boxes that no class has by nature, to see whether proportions that are asked for are met.
BOXES = ((1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (1.0, 2.0, 1.0), (1.0, 1.0, 2.0), (3.0, 1.0, 2.0))
BOX_CELLS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTrial:
    """One generated object and what it came closest to."""

    class_name: str
    seed: int
    # Of all training objects, and of those that people made.
    nearest: Match
    nearest_catalog: Match
    watertight: bool
    components: int
    # None where the field had no surface.
    mesh: Mesh | None

    @property
    def right(self) -> bool:
        return self.class_name == self.nearest.class_name

    @property
    def right_catalog(self) -> bool:
        return self.class_name == self.nearest_catalog.class_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Galleries:
    """Training objects that people made, and all of them."""

    catalog: Gallery
    procedural: Gallery

    def nearest(self, cloud: NDArray[np.float32]) -> tuple[Match, Match]:
        """Of all, and of the catalogue; cloud: (FINE, 3)."""
        found = self.catalog.nearest(cloud)
        return min(found, self.procedural.nearest(cloud), key=lambda match: match.distance), found


def most_frequent_classes(objects: Sequence[TrainingObject], count: int) -> list[str]:
    """Class names by number of objects."""
    names = [o.class_name for o in objects]
    return sorted(set(names), key=lambda name: (-names.count(name), name))[:count]


def class_trials(
    pipeline: TextToShape, galleries: Galleries, classes: Sequence[str], seeds: Sequence[int]
) -> list[ClassTrial]:
    """Generate "a CLASS" for every class and seed, and look up each result."""
    options = MeshOptions(cells=96, max_triangles=10_000)
    jobs = [(name, seed) for name in classes for seed in seeds]
    trials = []
    for start in track(range(0, len(jobs), BATCH), description="prompts"):
        part = jobs[start : start + BATCH]
        configs = [replace(pipeline.model.sampling, seed=seed) for _, seed in part]
        made = made_of(pipeline, [with_article(name) for name, _ in part], configs, options)
        trials += [
            _trial(galleries, *job, None if one is None else one.mesh) for job, one in zip(part, made, strict=True)
        ]
    return trials


def made_of(
    pipeline: TextToShape,
    prompts: list[str],
    configs: list[SamplingConfig],
    options: MeshOptions,
    box: Sequence[float] | None = None,
) -> list[Generated | None]:
    """Objects of a batch; None where the field has no surface, which is no fault of the format or of the meshing.

    Raises:
        GeometryError: a field is not finite, or a surface cannot be made a mesh.
    """
    made: list[Generated | None] = []
    for decoded in pipeline.decode_many(prompts, configs, box=box):
        try:
            made.append(pipeline.build(decoded, options))
        except EmptyFieldError:
            made.append(None)
    return made


def _trial(galleries: Galleries, name: str, seed: int, mesh: Mesh | None) -> ClassTrial:
    nearest, catalog = (NOTHING, NOTHING) if mesh is None else galleries.nearest(cloud_of(mesh))
    return ClassTrial(
        class_name=name,
        seed=seed,
        nearest=nearest,
        nearest_catalog=catalog,
        watertight=mesh is not None and is_watertight(mesh.faces),
        components=0 if mesh is None else num_components(mesh),
        mesh=mesh,
    )


def real_right_shares(galleries: Galleries, objects: Sequence[TrainingObject]) -> dict[str, float]:
    """How often people's own unseen objects come nearest to a training object of their class: what a share is worth."""
    pairs = []
    for source in track(objects, description="unseen objects"):
        cloud = cloud_of(Mesh(vertices=source.vertices, faces=source.faces.astype(np.int32)))
        pairs.append([match.class_name == source.class_name for match in galleries.nearest(cloud)])
    share, catalog = np.mean(pairs, axis=0)
    return {"real_right_class_share": float(share), "real_right_class_share_catalog": float(catalog)}


def prompt_figures(trials: Sequence[ClassTrial], worst: int = 10) -> dict[str, object]:
    """Shares over all trials, and the classes that fare worst."""
    classes = sorted({t.class_name for t in trials})
    by_class = {c: float(np.mean([t.right for t in trials if t.class_name == c])) for c in classes}
    made = [t for t in trials if t.mesh is not None]
    return {
        "prompts": len(trials),
        "empty_share": 1 - len(made) / len(trials),
        "right_class_share": float(np.mean([t.right for t in trials])),
        "right_class_share_catalog": float(np.mean([t.right_catalog for t in trials])),
        # Of what was made at all.
        "watertight_share": float(np.mean([t.watertight for t in made])) if made else 0.0,
        "single_component_share": float(np.mean([t.components == 1 for t in made])) if made else 0.0,
        "worst_prompts": dict(sorted(by_class.items(), key=lambda item: item[1])[:worst]),
    }


def box_figures(pipeline: TextToShape, classes: Sequence[str]) -> dict[str, object]:
    """Mean relative error of the two aspect ratios asked for: of the meshes, and of the surfaces before they are fitted
    to the box, which says what the model does on its own."""
    errors: list[float] = []
    unfitted: list[float] = []
    for box in track(BOXES, description="boxes"):
        prompts = [with_article(name) for name in classes]
        configs = [pipeline.model.sampling] * len(prompts)
        for one in made_of(pipeline, prompts, configs, MeshOptions(cells=BOX_CELLS), box):
            if one is None:
                continue
            errors += aspect_errors(one.mesh.extents, box)
            unfitted += aspect_errors(find_surface(pipeline.shape(one.decoded), BOX_CELLS).extents, box)
    asked = len(BOXES) * len(classes)
    return {
        "box_prompts": asked,
        "box_empty_share": 1 - len(errors) / (2 * asked),
        "box_error_mean": float(np.mean(errors)) if errors else None,
        "box_error_unfitted_mean": float(np.mean(unfitted)) if unfitted else None,
    }


def aspect_errors(extents: NDArray[np.float32], box: Sequence[float]) -> list[float]:
    """Relative errors of y : x and z : x."""
    return [abs(float(extents[axis] / extents[0]) / (box[axis] / box[0]) - 1) for axis in (1, 2)]
