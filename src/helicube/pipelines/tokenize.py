"""Meshes to shape ids and back."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from helicube.errors import InputError, MeshFileError
from helicube.geometry.box_sample import EXTENT, POINTS, pool_mean, sample_in_box, unpack
from helicube.geometry.files import whole_file
from helicube.geometry.load import LoadedMesh, load_mesh
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import sample_points, volume_iou
from helicube.geometry.winding import box_lattice, occupancy_lattice
from helicube.models.cube.lattice_code import Shape
from helicube.pipelines.meshing import BOUND, MeshOptions, build_mesh
from helicube.pipelines.shape_model import CubeModel, DefaultModel

__all__ = ["ShapeIds", "Tokenized", "detokenize", "occupancies", "read_ids", "tokenize", "write_ids"]

# Voxels along each side of the cube in which a round trip is compared, and points in one call of the field.
CELLS = 128
BATCH = 1 << 17
GREY = np.array([200, 200, 200], dtype=np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeIds:
    """A row of ids, and whose they are."""

    # (n,) int64.
    ids: NDArray[np.int64]
    # Name of the model, and digest of the encoder that gave them; None where the file does not say.
    model: str | None = None
    encoder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenized:
    """Ids of a mesh, and how well they keep it."""

    # (n,) int64.
    ids: NDArray[np.int64]
    # Volume IoU of the mesh with what these ids decode to, their box included (see `occupancies`).
    volume_iou: float


def tokenize(model: DefaultModel | CubeModel, path: Path) -> Tokenized:
    """Encode a mesh file.

    Raises:
        MeshFileError: it cannot be read, or encloses no volume.
    """
    loaded = load_mesh(path)
    vertices = normalised(loaded.vertices)
    if isinstance(model, CubeModel):
        ids = _cube_ids(model, vertices, loaded)
    else:
        ids = _lattice_ids(model, vertices, loaded, path)
    truth, mine = occupancies(model.decode(ids), vertices, loaded.faces)
    return Tokenized(ids=ids, volume_iou=volume_iou(truth, mine))


def normalised(vertices: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centred, longest side ±0.96."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    scale = 2 * EXTENT / max(float((high - low).max()), 1e-12)
    return np.asarray((vertices - (low + high) / 2) * scale, dtype=np.float32)


def _lattice_ids(
    model: DefaultModel, vertices: NDArray[np.float32], loaded: LoadedMesh, path: Path
) -> NDArray[np.int64]:
    colors = loaded.face_colors if loaded.face_colors is not None else np.tile(GREY, (len(loaded.faces), 1))
    sample = sample_in_box(vertices, loaded.faces, colors, seed=0)
    if sample is None:
        raise MeshFileError(f"{path} encloses no volume; tokens describe solids: close the mesh or give it thickness")
    filled = pool_mean(unpack(sample.bits), model.code.shape.config.input_cells)
    return model.code.encode(filled, sample.extents, sample.surface, sample.colors)


def _cube_ids(model: CubeModel, vertices: NDArray[np.float32], loaded: LoadedMesh) -> NDArray[np.int64]:
    points, face = sample_points(Mesh(vertices=vertices, faces=loaded.faces.astype(np.int32)), 2 * POINTS)
    corners = vertices[loaded.faces[face]]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True).clip(1e-12)
    cloud = torch.from_numpy(np.concatenate([points, normals], axis=1).astype(np.float32))[None]
    with torch.inference_mode():
        ids = model.tokenizer.encode(cloud.to(model.tokenizer.decoder.positional_encodings))
    return np.asarray(ids[0].cpu().numpy())


def occupancies(
    shape: Shape, vertices: NDArray[np.float32], faces: NDArray[np.integer]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """A mesh and a decoded shape, each longest side at ±0.96, at the same voxel centres; (R, R, R) bool each.

    The lattice is the cube that holds whatever meshing can find of the shape, ±BOUND.
    """
    low, high = np.full(3, -BOUND), np.full(3, BOUND)
    truth = occupancy_lattice(normalised(vertices), faces, resolution=CELLS, low=low, high=high)
    boxed = box_lattice(CELLS, low, high) / shape.sizes  # (R, R, R, 3)
    within = (np.abs(boxed) < BOUND).all(axis=-1)
    points = boxed[within].astype(np.float32)  # (n, 3)
    logits = [shape.field(points[start : start + BATCH]) for start in range(0, len(points), BATCH)]
    mine = np.zeros(within.shape, dtype=np.bool_)
    mine[within] = np.concatenate(logits) > 0
    return truth, mine


def detokenize(model: DefaultModel | CubeModel, row: ShapeIds, options: MeshOptions) -> Mesh:
    """The mesh of a row of ids.

    Raises:
        InputError: the row is of another model, has the wrong length, or an id that may not stand where it does.
    """
    if row.encoder is not None and row.encoder != model.encoder_digest():
        raise InputError(
            f"these ids are of another model ({row.model}, encoder {row.encoder}) than {model.name!r}; "
            "name the one that made them with --weights, or make them again with `helicube tokenize`"
        )
    ranges, ids = model.plan.ranges, row.ids
    if ids.shape != (len(ranges),):
        raise InputError(f"{ids.size} ids were given; model {model.name!r} takes {len(ranges)}")
    low, high = np.array(ranges).T
    wrong = np.flatnonzero((ids < low) | (ids >= high))
    if len(wrong):
        at = int(wrong[0])
        raise InputError(f"id {ids[at]} at place {at} is out of range; it must be {low[at]} to {high[at] - 1}")
    return build_mesh(model.decode(ids), options)[0]


def write_ids(ids: NDArray[np.int64], model: DefaultModel | CubeModel, path: Path) -> None:
    """Ids, and whose they are, as a small JSON file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    content = {"model": model.name, "encoder": model.encoder_digest(), "ids": ids.tolist()}
    with whole_file(path) as passing:
        passing.write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_ids(path: Path) -> ShapeIds:
    """Ids from a file of `write_ids`.

    Raises:
        InputError: the file is missing or something else.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        ids = np.array([operator.index(value) for value in raw["ids"]], dtype=np.int64)
        model, encoder = raw.get("model"), raw.get("encoder")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); make one with `helicube tokenize`") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise InputError(
            f"{path} is no file of ids; make one with `helicube tokenize MESH -o {path.with_suffix('.json')}`"
        ) from None
    return ShapeIds(ids=ids, model=model, encoder=encoder)
