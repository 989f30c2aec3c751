"""Which of several decoded shapes hangs together best."""

from __future__ import annotations

import numpy as np

from helicube.errors import GeometryError, InputError
from helicube.geometry.measure import face_volumes
from helicube.geometry.repair import repair
from helicube.geometry.topology import face_components
from helicube.models.cube.lattice_code import Shape
from helicube.pipelines.meshing import find_surface

__all__ = ["USUAL_CANDIDATES", "candidate_seed", "check_candidates", "solid_share"]

# Cells of the coarse look; a piece that shows at twice as many only is no great loss.
CELLS = 64
# 2^64 over the golden ratio: seeds of neighbouring requests share no candidates.
STRIDE = 0x9E3779B97F4A7C15
# Of one object: where nothing is said of it (docs/log.md: 76 % of objects are sound with one, 87 % with four), and at
# most.
USUAL_CANDIDATES, MAX_CANDIDATES = 4, 16


def check_candidates(best_of: int) -> None:
    """Raise InputError unless so many candidates may be drawn for one object."""
    if not 1 <= best_of <= MAX_CANDIDATES:
        raise InputError(f"best_of={best_of} is out of range; choose 1 to {MAX_CANDIDATES}")


def candidate_seed(seed: int, candidate: int) -> int:
    """Seed of a request's k-th candidate; the first has the request's own."""
    return (seed + candidate * STRIDE) % 2**63


def solid_share(shape: Shape) -> float:
    """Share of the volume that the largest connected piece has, 0 to 1; 0 of a field of which no mesh can be made."""
    try:
        mesh = repair(find_surface(shape, CELLS)).mesh
    except GeometryError:
        return 0.0
    count, labels = face_components(mesh.faces)
    volumes = np.abs(np.bincount(labels, weights=face_volumes(mesh.vertices, mesh.faces), minlength=count))
    return float(volumes.max() / volumes.sum())
