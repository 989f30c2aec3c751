"""How well the tokenizer keeps unseen objects: volume and surface IoU of the round trip at 128³, by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from helicube.geometry.box_sample import pool_mean, sample_in_box, unpack
from helicube.geometry.metrics import surface_iou, volume_iou
from helicube.models.cube.lattice_code import LatticeCode
from helicube.pipelines.tokenize import occupancies
from helicube.train.objects import TrainingObject

__all__ = ["RoundTrip", "round_trips", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """What became of one object."""

    id: str
    class_name: str
    volume_iou: float
    surface_iou: float
    # Mean absolute error of the surface's sRGB colour, 0 to 255.
    color_error: float
    ids: NDArray[np.int64]


def round_trips(code: LatticeCode, objects: Sequence[TrainingObject]) -> list[RoundTrip]:
    """Encode and decode each object and compare; objects that enclose no volume are left out."""
    trips = []
    for source in track(objects, description="round trips"):
        trip = round_trip(code, source)
        if trip is not None:
            trips.append(trip)
    return trips


def round_trip(code: LatticeCode, source: TrainingObject) -> RoundTrip | None:
    sample = sample_in_box(source.vertices, source.faces, source.face_colors, seed=1)
    if sample is None:
        return None
    points = sample.surface
    filled = pool_mean(unpack(sample.bits), code.shape.config.input_cells)
    ids = code.encode(filled, sample.extents, points, sample.colors)
    shape = code.decode(ids)
    truth, mine = occupancies(shape, source.vertices, source.faces)
    seen = shape.colors(points) if shape.colors is not None else np.zeros_like(sample.colors)
    return RoundTrip(
        id=source.id,
        class_name=source.class_name,
        volume_iou=volume_iou(truth, mine),
        surface_iou=surface_iou(truth, mine),
        color_error=float(np.abs(seen.astype(np.int64) - sample.colors).mean()),
        ids=ids,
    )


def summarise(trips: Sequence[RoundTrip], worst: int = 5) -> dict[str, object]:
    """Means, medians, and the classes that fare worst."""
    volume = np.array([t.volume_iou for t in trips])
    surface = np.array([t.surface_iou for t in trips])
    classes = sorted({t.class_name for t in trips})
    means = {c: float(np.mean([t.volume_iou for t in trips if t.class_name == c])) for c in classes}
    return {
        "objects": len(trips),
        "volume_iou_mean": float(volume.mean()),
        "volume_iou_median": float(np.median(volume)),
        "surface_iou_mean": float(surface.mean()),
        "surface_iou_median": float(np.median(surface)),
        "color_error_mean": float(np.mean([t.color_error for t in trips])),
        "worst_classes": dict(sorted(means.items(), key=lambda item: item[1])[:worst]),
    }
