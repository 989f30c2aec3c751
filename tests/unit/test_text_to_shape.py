"""The whole road of a prompt, with a tiny model of random weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny import Words, tiny_weights

from helicube.engine.request import Request
from helicube.engine.sampling import SamplingConfig
from helicube.errors import CheckpointError, GeometryError, InputError, PromptError
from helicube.geometry.budget import simplify
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import num_components
from helicube.geometry.topology import is_watertight
from helicube.models.cube.default import DefaultWeights, load_default, save_default
from helicube.models.cube.lattice_code import Shape, box_ids, sizes_of_ids
from helicube.models.cube.palette import UNUSED
from helicube.pipelines import meshing
from helicube.pipelines.box import parse_box
from helicube.pipelines.meshing import MeshOptions, build_mesh
from helicube.pipelines.shape_model import DefaultModel
from helicube.pipelines.text_to_shape import TextToShape


@pytest.fixture(scope="module")
def weights() -> DefaultWeights:
    return tiny_weights()


@pytest.fixture(scope="module")
def pipeline(weights: DefaultWeights) -> TextToShape:
    return TextToShape(DefaultModel(weights, Words()))


def decode(
    pipeline: TextToShape, prompts: list[str], configs: list[SamplingConfig], box: NDArray[np.float32] | None = None
) -> list[torch.Tensor]:
    model = pipeline.model
    conditioned = model.condition(prompts, None if box is None else np.tile(box, (len(prompts), 1)))
    forced = torch.from_numpy(model.forced(box))
    requests = [
        Request(prompt=p, num_tokens=model.plan.num_steps, sampling=c, forced=forced)
        for p, c in zip(conditioned.prompts, configs, strict=True)
    ]
    return [r.ids for r in pipeline.engine(4, guided=True).generate(requests).results]


def test_one_engine_is_kept_the_largest() -> None:
    pipeline = TextToShape(DefaultModel(tiny_weights(), Words()))
    two = pipeline.engine(2, guided=True)
    assert pipeline.engine(1, guided=True) is two
    read = two.step_bytes(1, 7)
    five = pipeline.engine(5, guided=True)
    assert (five.runner.num_slots, pipeline.engines) == (5, {True: five})
    # What a step reads depends on the objects in it, not on the room.
    assert five.step_bytes(1, 7) == read
    assert five.step_bytes(2, 7) == (read[0], 2 * read[1])


def test_the_empty_prompt_is_taken_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tiny_weights()
    pipeline = TextToShape(DefaultModel(weights, Words()))
    taken: list[int] = []
    prefill = weights.decoder.prefill

    def counted(cond: torch.Tensor) -> object:
        taken.append(len(cond))
        return prefill(cond)

    monkeypatch.setattr(weights.decoder, "prefill", counted)
    want = [decode(pipeline, [prompt], [SamplingConfig()])[0].tolist() for prompt in ("a chair", "a lamp", "a chair")]
    assert len(taken) == 4, "three prompts, and the empty one"
    fresh = TextToShape(DefaultModel(weights, Words()))
    assert decode(fresh, ["a lamp"], [SamplingConfig()])[0].tolist() == want[1]


def ball(colors: bool = True) -> Shape:
    def field(points: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(0.8 - np.linalg.norm(points, axis=1), dtype=np.float32)

    def paint(points: NDArray[np.float32]) -> NDArray[np.uint8]:
        return np.where(points[:, :1] > 0, [[255, 0, 0]], [[0, 0, 255]]).astype(np.uint8)

    return Shape(sizes=np.array([1, 0.5, 0.25], dtype=np.float32), field=field, colors=paint if colors else None)


def test_save_and_load_keep_every_tensor(weights: DefaultWeights, tmp_path: Path) -> None:
    save_default(weights, tmp_path, torch.float32)
    loaded = load_default(tmp_path)
    assert loaded.config == weights.config
    for mine, theirs in ((weights.code, loaded.code), (weights.decoder, loaded.decoder)):
        for (name, a), (_, b) in zip(mine.state_dict().items(), theirs.state_dict().items(), strict=True):
            assert torch.equal(a, b), name


@pytest.mark.parametrize("keep", [0, 100, -1])
def test_damaged_default_model_is_one_clear_line(weights: DefaultWeights, tmp_path: Path, keep: int) -> None:
    path = save_default(weights, tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError) as caught:
        load_default(tmp_path)
    assert "\n" not in str(caught.value)


def test_ids_stand_where_they_may_and_a_box_is_forced(pipeline: TextToShape) -> None:
    sizes = np.array([1, 0.25, 0.5], dtype=np.float32)
    for temperature in (0.0, 1.0):
        config = SamplingConfig(temperature=temperature, seed=5)
        ids = decode(pipeline, ["a chair"], [config], box=sizes)[0]
        for value, (low, high) in zip(ids.tolist(), pipeline.model.plan.ranges, strict=True):
            assert low <= value < high
        first = pipeline.model.plan.ranges[0][0]
        assert np.allclose(sizes_of_ids(ids[:3].numpy() - first), sizes, rtol=0.034)


def test_mesh_has_its_proportions_colors_and_place() -> None:
    mesh, _ = build_mesh(ball(), MeshOptions(cells=64, max_triangles=500, size_m=2.0))
    assert is_watertight(mesh.faces)
    assert mesh.num_faces <= 500
    assert np.allclose(mesh.extents, [2, 1, 0.5], rtol=0.02)
    assert abs(float(mesh.vertices[:, 1].min())) < 1e-6
    assert mesh.vertex_colors is not None
    right = mesh.vertices[:, 0] > 0.05
    assert (mesh.vertex_colors[right] == [255, 0, 0]).all()


def test_what_simplifying_pinches_off_is_no_piece_of_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def pinching(mesh: Mesh, max_triangles: int) -> Mesh:
        fewer = simplify(mesh, max_triangles)
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32) * 1e-3
        sides = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], dtype=np.int32)
        vertices = np.concatenate([fewer.vertices, fewer.vertices.max(axis=0) + corners])
        return Mesh(vertices=vertices, faces=np.concatenate([fewer.faces, fewer.num_vertices + sides]))

    monkeypatch.setattr(meshing, "simplify", pinching)
    mesh, _ = build_mesh(ball(), MeshOptions(cells=64, max_triangles=500))
    assert num_components(mesh) == 1


def test_box_is_met_exactly() -> None:
    fit = parse_box([3, 1, 2])
    assert fit is not None
    mesh, _ = build_mesh(dataclasses.replace(ball(colors=False), sizes=fit), MeshOptions(cells=32), fit=fit)
    assert np.allclose(mesh.extents / mesh.extents.max(), [1, 1 / 3, 2 / 3], rtol=1e-5)
    assert mesh.vertex_colors is None


@pytest.mark.parametrize("box", [[1, 2], [1, 1, 0], [1, 1, -2], [1, float("nan"), 1], [1000, 1, 1]])
def test_bad_boxes_are_refused(box: list[float]) -> None:
    with pytest.raises(InputError, match="box"):
        parse_box(box)


def test_bad_prompts_budgets_and_fields_are_refused(pipeline: TextToShape) -> None:
    for prompt in ("", "   ", "a\x00b"):
        with pytest.raises(PromptError):
            pipeline.generate(prompt)
    with pytest.raises(PromptError, match="shorten"):
        pipeline.generate("one two three four five six seven eight nine")
    with pytest.raises(InputError, match="max_triangles"):
        MeshOptions(max_triangles=3)
    empty = dataclasses.replace(ball(), field=lambda points: np.full(len(points), -1, dtype=np.float32))
    with pytest.raises(GeometryError):
        build_mesh(empty, MeshOptions(cells=32))


def test_box_ids_round_trip() -> None:
    ids = np.array([[63, 10, 40], [63, 63, 0]])
    assert np.array_equal(box_ids(sizes_of_ids(ids[0])), ids[0])
    assert np.array_equal(box_ids(sizes_of_ids(ids[1]) * 17), ids[1])


def test_code_round_trip_of_an_object(weights: DefaultWeights) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (500, 3)).astype(np.float32)
    colors = np.where(points[:, :1] > 0, [[250, 10, 10]], [[30, 30, 200]]).astype(np.uint8)
    sizes = np.array([0.5, 1.0, 0.2])
    ids = weights.code.encode(rng.random((16, 16, 16), dtype=np.float32), sizes, points, colors)
    assert len(ids) == len(weights.code.ranges) == 3 + 8 + 3 + 1
    shape = weights.code.decode(ids)
    assert np.allclose(shape.sizes, sizes, rtol=0.034)
    assert shape.field(points).shape == (500,)
    assert shape.colors is not None
    seen = {tuple(c) for c in shape.colors(points)}
    # Two palette colours are used; the third entry is not, whatever the random weights prefer.
    assert ids[3 + 8 + 2] - weights.code.first_color == UNUSED
    assert seen <= {(255, 0, 0), (28, 28, 198)}
