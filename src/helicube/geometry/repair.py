"""Clean up a surface: closed, manifold, outward, without floaters and inner shells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from helicube.errors import GeometryError
from helicube.geometry.measure import cross, dot, face_volumes
from helicube.geometry.mend import compact, mend
from helicube.geometry.mesh import Mesh
from helicube.geometry.topology import face_components, is_watertight

__all__ = ["Repair", "RepairOptions", "repair", "winding_numbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions:
    """What to keep."""

    # "all": every component above the thresholds; "largest": the one with the most volume.
    keep: Literal["all", "largest"] = "all"
    # Least volume of a component, as a share of the largest one's.
    min_volume: float = 5e-4
    # Least longest side of a component, as a share of the largest one's. A thin rod passes this one, a speck does not.
    min_extent: float = 0.05
    # Most components, largest first; a surface in more pieces is noise.
    max_components: int = 1000

    def __post_init__(self) -> None:
        if not (0 <= self.min_volume < 1 and 0 <= self.min_extent < 1):
            raise GeometryError(
                f"min_volume {self.min_volume} and min_extent {self.min_extent} are shares: 0 to below 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A clean mesh and what was done to get it."""

    mesh: Mesh
    # Components of the mesh after closing it, and how many of them went as floaters and as inner shells.
    num_components: int
    num_floaters: int
    num_inner: int
    # True if the mesh was not closed or not manifold and was mended.
    mended: bool


def repair(mesh: Mesh, options: RepairOptions | None = None) -> Repair:
    """Make a mesh watertight and manifold, wind it outwards, and drop what nobody wants.

    Raises:
        GeometryError: the mesh is empty, encloses no volume, or cannot be closed (see `mend`).
    """
    options = options or RepairOptions()
    if not mesh.num_faces:
        raise GeometryError("the mesh has no faces; nothing to repair")
    mended = not is_watertight(mesh.faces)
    if mended:
        mesh = mend(mesh)
    parts = _Parts.of(mesh)
    keep, num_inner = choose(mesh, parts, options)
    num_floaters = len(keep) - int(keep.sum()) - num_inner
    inward = keep & (parts.volumes < 0)
    if not keep.all() or inward.any():
        faces = mesh.faces
        if inward.any():
            faces = np.where(inward[parts.labels][:, None], faces[:, ::-1], faces)
        mesh = compact(replace(mesh, faces=faces[keep[parts.labels]], vertex_normals=None))
    return Repair(mesh=mesh, num_components=len(keep), num_floaters=num_floaters, num_inner=num_inner, mended=mended)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Components of a mesh; C of them."""

    # (F,) component of each face.
    labels: NDArray[np.int32]
    # (C,) signed volumes; (C,) longest sides; (C, 3) corners of the boxes.
    volumes: NDArray[np.float64]
    sides: NDArray[np.float64]
    low: NDArray[np.float32]
    high: NDArray[np.float32]

    @staticmethod
    def of(mesh: Mesh) -> _Parts:
        count, labels = face_components(mesh.faces)
        each = face_volumes(mesh.vertices, mesh.faces)
        volumes = np.bincount(labels, weights=each, minlength=count).astype(np.float64)
        if count == 1:
            low, high = mesh.vertices.min(axis=0)[None], mesh.vertices.max(axis=0)[None]
        else:
            low = np.full((count, 3), np.inf, dtype=np.float32)
            high = np.full((count, 3), -np.inf, dtype=np.float32)
            of_vertex = np.zeros(mesh.num_vertices, dtype=np.int32)
            of_vertex[mesh.faces] = labels[:, None]
            np.minimum.at(low, of_vertex, mesh.vertices)
            np.maximum.at(high, of_vertex, mesh.vertices)
        sides = (high - low).max(axis=1).astype(np.float64)
        return _Parts(labels=labels, volumes=volumes, sides=sides, low=low, high=high)


def choose(mesh: Mesh, parts: _Parts, options: RepairOptions) -> tuple[NDArray[np.bool_], int]:
    """(C,) which components stay, and how many went as inner shells.

    Inner shells (hollows, and bodies in them) are invisible and confuse slicers and physics.
    """
    size = np.abs(parts.volumes)
    largest = int(np.argmax(size))
    if size[largest] <= 1e-12 * float(parts.sides.max()) ** 3:
        raise GeometryError(f"the mesh encloses no volume ({size[largest]:.3g}); it is a flat sheet, not a body")
    keep = (size >= options.min_volume * size[largest]) & (parts.sides >= options.min_extent * parts.sides[largest])
    kept = np.flatnonzero(keep)
    if len(kept) > options.max_components:
        keep[kept[np.argsort(-size[kept], kind="stable")[options.max_components :]]] = False
    inner = find_inner(mesh, parts, np.flatnonzero(keep))
    num_inner = int((keep & inner).sum())
    keep &= ~inner
    if options.keep == "largest":
        only = np.zeros_like(keep)
        only[np.argmax(np.where(keep, size, -1))] = True
        keep = only
    return keep, num_inner


def find_inner(mesh: Mesh, parts: _Parts, kept: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(C,) which of the kept components lie inside another one of them."""
    inner = np.zeros(len(parts.volumes), dtype=np.bool_)
    low, high = parts.low[kept], parts.high[kept]
    nested = {}
    for part, box_low, box_high in zip(kept.tolist(), low, high, strict=True):
        outers = kept[np.all(low < box_low, axis=1) & np.all(high > box_high, axis=1)].tolist()
        if outers:
            nested[part] = outers
    if not nested:
        return inner
    by_part = np.argsort(parts.labels, kind="stable")
    ends = np.cumsum(np.bincount(parts.labels))
    needed = {*nested, *(outer for outers in nested.values() for outer in outers)}
    faces = {i: mesh.faces[by_part[ends[i - 1] if i else 0 : ends[i]]] for i in needed}
    for part, outers in nested.items():
        inner[part] = any(lies_inside(mesh.vertices, faces[part], faces[outer]) for outer in outers)
    return inner


def lies_inside(vertices: NDArray[np.float32], part: NDArray[np.int32], outer: NDArray[np.int32]) -> bool:
    """Whether a few face centres of one component all lie inside another."""
    some = part[np.linspace(0, len(part) - 1, 4).astype(np.intp)]
    return bool(np.all(np.abs(winding_numbers(vertices, outer, vertices[some].mean(axis=1))) > 0.5))


def winding_numbers(
    vertices: NDArray[np.float32], faces: NDArray[np.int32], points: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n,) how often a closed mesh winds around each point; cost n times F, so for few points only.

    Source: Van Oosterom and Strackee, The Solid Angle of a Plane Triangle (1983), summed over faces.
    """
    out = np.empty(len(points), dtype=np.float64)
    for i, point in enumerate(points):
        a, b, c = ((vertices[faces[:, k]] - point).astype(np.float64) for k in range(3))
        la, lb, lc = (np.sqrt(dot(v, v)) for v in (a, b, c))
        bottom = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
        out[i] = np.arctan2(dot(a, cross(b, c)), bottom).sum() / (2 * np.pi)
    return out
