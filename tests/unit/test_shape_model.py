"""Which model `--weights` names, and the published architecture through the same pipeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny import WIDTH, Words

from helicube.engine.request import Request
from helicube.engine.sampling import SamplingConfig
from helicube.errors import CheckpointError
from helicube.models.cube.checkpoint import CubeWeights
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.object_steps import ObjectSteps
from helicube.pipelines.shape_model import CubeModel, load_model
from helicube.pipelines.text_to_shape import TextToShape


def cube_model(*, use_bbox: bool = True) -> CubeModel:
    torch.manual_seed(0)
    decoder = DecoderConfig(n_layer=2, n_single_layer=1, n_head=2, n_embd=16, shape_model_vocab_size=20,
                            shape_model_embed_dim=4, text_model_embed_dim=WIDTH, use_bbox=use_bbox)  # fmt: skip
    tokenizer = TokenizerConfig(num_encoder_latents=5, embed_dim=4, width=16, num_heads=2, num_freqs=8,
                                num_encoder_layers=2, num_decoder_layers=1, num_codes=20)  # fmt: skip
    weights = CubeWeights(decoder=CubeDecoder(decoder).eval(), tokenizer=CubeTokenizer(tokenizer).eval())
    return CubeModel(weights, Words())


@pytest.fixture
def model() -> CubeModel:
    return cube_model()


@pytest.mark.parametrize("use_bbox", [True, False], ids=["v0.5", "v0.1"])
def test_a_box_costs_published_weights_no_resolution_and_is_not_ignored_in_silence(
    use_bbox: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = cube_model(use_bbox=use_bbox)
    plain = model.decode

    def slim(points: NDArray[np.float32]) -> NDArray[np.float32]:
        # In true proportions, as published: an ellipsoid of nearly the proportions asked for.
        return np.asarray(1 - np.linalg.norm(points / np.array([0.25, 0.9, 0.2]), axis=1), dtype=np.float32)

    monkeypatch.setattr(model, "decode", lambda ids: replace(plain(ids), field=slim))
    pipeline, options = TextToShape(model), MeshOptions(cells=64, max_triangles=None)
    boxed, free = (
        pipeline.build(pipeline.decode_many(["a rod"], [SamplingConfig()], box=box)[0], options)
        for box in ((1, 4, 1), None)
    )
    # The same surface, as finely sampled, and only then stretched.
    np.testing.assert_array_equal(boxed.mesh.faces, free.mesh.faces)
    np.testing.assert_allclose(boxed.mesh.extents / boxed.mesh.extents[1], [0.25, 1, 0.25], rtol=1e-5)
    assert free.decoded.notes == ()
    notes = () if use_bbox else ("this model takes no box",)
    for told in (boxed.decoded.notes, ObjectSteps(pipeline).request("a rod", SamplingConfig(), (1, 4, 1))[1]):
        assert tuple(note.split(";")[0] for note in told) == notes
    assert not ObjectSteps(pipeline).request("a rod", SamplingConfig(), None)[1]


def test_published_architecture_runs_through_the_pipeline(model: CubeModel) -> None:
    pipeline = TextToShape(model)
    prompts = model.condition(["a chair", "a lamp"], np.array([[1, 0.5, 1], [0, 0, 0]], dtype=np.float32)).prompts
    requests = [Request(prompt=prompt, num_tokens=5, sampling=SamplingConfig()) for prompt in prompts]
    results = pipeline.engine(2, guided=True).generate(requests).results
    ids = torch.stack([r.ids for r in results])
    assert ids.shape == (2, 5)
    assert int(ids.max()) < 20
    shape = model.decode(ids[0].numpy())
    points = np.random.default_rng(0).uniform(-1, 1, (7, 3)).astype(np.float32)
    with torch.no_grad():
        latents = model.tokenizer.decode(ids[:1])
        expected = model.tokenizer.field(latents, torch.from_numpy(points)[None])[0]
    assert np.allclose(shape.field(points), expected.numpy(), atol=1e-6)
    assert shape.colors is None
    assert MeshOptions().cells == 128


def test_weights_that_are_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="is not a folder"):
        load_model(tmp_path / "missing" / "deeper")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CheckpointError, match="could not be had from the hub"):
        load_model("no-such-owner/no-such-model")
    with pytest.raises(CheckpointError, match="shape_tokenizer"):
        load_model(tmp_path, version="v0.5")
