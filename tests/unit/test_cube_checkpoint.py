"""Damaged, renamed and misshapen checkpoints end in one error that names the tensor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny import Words, tiny_weights
from torch import Tensor

from helicube.errors import CheckpointError
from helicube.models.cube.checkpoint import PUBLISHED, cube_configs, load_cube
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import default_config, load_default, save_default
from helicube.models.cube.text_clip import ClipTextEncoder
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig
from helicube.pipelines import shape_model
from helicube.pipelines.shape_model import CubeModel, load_model

DECODER = {"n_layer": 2, "n_single_layer": 1, "n_head": 2, "n_embd": 16, "shape_model_vocab_size": 20,
           "shape_model_embed_dim": 4, "text_model_embed_dim": 8}  # fmt: skip
TOKENIZER = {"num_encoder_latents": 5, "embed_dim": 4, "width": 16, "num_heads": 2, "num_freqs": 8,
             "num_encoder_layers": 2, "num_decoder_layers": 1, "num_codes": 20}  # fmt: skip
Tensors = dict[str, Tensor]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    decoder = CubeDecoder(DecoderConfig(**DECODER))  # type: ignore[arg-type]
    tokenizer = CubeTokenizer(TokenizerConfig(**TOKENIZER))  # type: ignore[arg-type]
    shape = dict(tokenizer.state_dict())
    embedder = shape["embedder.weight"]
    shape = {k: v for k, v in shape.items() if not k.endswith("embedder.weight")}
    save_file(dict(decoder.state_dict()), tmp_path / "shape_gpt.safetensors")
    save_file({**shape, "occupancy_decoder.embedder.weight": embedder}, tmp_path / "shape_tokenizer.safetensors")
    config = {"gpt_model": DECODER, "shape_model": {**TOKENIZER, "encoder_cross_attention_levels": [0]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def rewrite(path: Path, change: Callable[[Tensors], Tensors]) -> None:
    save_file(change(load_file(path)), path)


def test_embedder_is_found_under_any_of_its_names_and_stays_one(folder: Path) -> None:
    weights = load_cube(folder, dtype=torch.float32)
    assert weights.tokenizer.encoder.embedder.weight is weights.tokenizer.embedder.weight
    stored = load_file(folder / "shape_tokenizer.safetensors")["occupancy_decoder.embedder.weight"]
    assert torch.equal(weights.tokenizer.embedder.weight, stored)


def test_weights_are_cast(folder: Path) -> None:
    weights = load_cube(folder)
    assert {p.dtype for p in weights.decoder.parameters()} == {torch.bfloat16}


def test_each_part_is_read_in_the_type_it_will_be_used_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a CPU without instructions for bfloat16: the tokenizer must not have been rounded to it on the way.
    monkeypatch.setattr(shape_model, "fastest_dtype", lambda _: torch.float32)
    monkeypatch.setattr(ClipTextEncoder, "load", lambda *_: Words())
    model = load_model(folder)
    assert isinstance(model, CubeModel)
    assert {p.dtype for p in model.decoder.parameters()} == {torch.bfloat16}
    stored = load_file(folder / "shape_tokenizer.safetensors")
    for name, tensor in model.tokenizer.state_dict().items():
        if name in stored:
            assert torch.equal(tensor, stored[name]), name
    assert not torch.equal(stored["encoder.query"], stored["encoder.query"].bfloat16().float())
    rounded = CubeModel(load_cube(folder), Words())
    assert {p.dtype for p in rounded.tokenizer.parameters()} == {torch.bfloat16}
    assert rounded.encoder_digest() == model.encoder_digest(), "ids of one are ids of the other"


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda t: {k: v for k, v in t.items() if k != "lm_head.weight"}, ["lacks lm_head.weight"]),
        (lambda t: {("head.weight" if k == "lm_head.weight" else k): v for k, v in t.items()},
         ["lacks lm_head.weight", "unknown head.weight"]),
        (lambda t: {**t, "lm_head.weight": torch.zeros(3, 3)}, ["lm_head.weight (3, 3) instead of (23, 16)"]),
    ],
    ids=["missing", "renamed", "misshapen"],
)  # fmt: skip
def test_wrong_tensors_are_named(folder: Path, change: Callable[[Tensors], Tensors], names: list[str]) -> None:
    rewrite(folder / "shape_gpt.safetensors", change)
    with pytest.raises(CheckpointError) as caught:
        load_cube(folder)
    for name in names:
        assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 5, 200, -10])
def test_truncated_file(folder: Path, keep: int) -> None:
    path = folder / "shape_tokenizer.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged"):
        load_cube(folder)


def test_missing_file_configuration_and_version(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="unknown"):
        load_cube(folder, version="v9")
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_cube(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"name the version with v0\.1 or v0\.5"):
        load_cube(folder)
    with pytest.raises(CheckpointError, match="is missing"):
        load_cube(folder / "nowhere", version="v0.5")


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("gpt_model", 3, "gpt_model in .*is 3, not a table"),
        ("shape_model", [1], "not a table"),
        ("gpt_model", {"n_layer": "23"}, "n_layer = '23'; it must be a whole number above 0"),
        ("gpt_model", {"n_layer": True}, "n_layer = True"),
        ("gpt_model", {"n_head": 0}, "n_head = 0; it must be a whole number above 0"),
        ("gpt_model", {"n_head": 3}, "n_embd = 16, which n_head = 3 does not divide"),
        ("gpt_model", {"num_positions": -1}, "num_positions = -1; it must be a whole number, 0 or more"),
        ("gpt_model", {"rope_theta": float("nan")}, "rope_theta = nan; it must be a number above 0"),
        ("gpt_model", {"bias": 1}, "bias = 1; it must be true or false"),
        ("gpt_model", {"n_layers": 2}, "unknown settings n_layers; known are bias, "),
        ("shape_model", {"encoder_cross_attention_levels": ["0"]}, "it must be a list of whole numbers"),
        ("shape_model", {"encoder_with_cls_token": "no"}, "encoder_with_cls_token = 'no'; it must be true or false"),
    ],
)  # fmt: skip
def test_configurations_with_wrong_values_are_named(folder: Path, part: str, change: object, words: str) -> None:
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    raw[part] = {**raw[part], **change} if isinstance(change, dict) else change
    path.write_text(json.dumps(raw))
    with pytest.raises(CheckpointError, match=words) as caught:
        load_cube(folder)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_whether_the_encoder_has_one_more_query_is_read(folder: Path) -> None:
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    raw["shape_model"]["encoder_with_cls_token"] = False
    raw["gpt_model"]["use_pooled_text_embed"] = True
    path.write_text(json.dumps(raw))
    assert not cube_configs(folder, None)[1].encoder_with_cls_token
    with pytest.raises(CheckpointError, match=r"encoder\.query \(6, 16\) instead of \(5, 16\)"):
        load_cube(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": 3}, "the shape part of .*is 3, not a table"),
        ({"decoder": {"n_head": 0}}, "n_head = 0"),
        ({"color": {"merge": 2.5}}, r"merge = 2\.5"),
        ({"color": {"merge": 4}, "shape": {"grid": 6}}, "merge = 4 must divide grid = 6"),
        ({"color": {"levels": [5, 1]}}, r"levels = \[5, 1\]; each must be 2 or more"),
        ({"num_text": "40"}, "num_text = '40'"),
    ],
)
def test_the_default_models_configuration_is_read_as_strictly(
    change: dict[str, object], words: str, tmp_path: Path
) -> None:
    path = save_default(tiny_weights(), tmp_path)
    assert default_config(tmp_path) == tiny_weights().config
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    config = json.dumps({**json.loads(metadata["config"]), **change})
    save_file(load_file(path), path, metadata={**metadata, "config": config})
    with pytest.raises(CheckpointError, match=words) as caught:
        load_default(tmp_path)
    assert "\n" not in str(caught.value)


def test_published_sizes() -> None:
    with torch.device("meta"):
        decoder = CubeDecoder(PUBLISHED["v0.5"][0])
    count = sum(p.numel() for name, p in decoder.named_parameters() if "pre_c" not in name and "post_2" not in name)
    outside = sum(p.numel() for p in (*decoder.text_proj.parameters(), *decoder.shape_proj.parameters()))
    # The shape stream reads 0.93 G parameters a step: everything of it but the token table.
    read = count - outside - decoder.transformer.wte.weight.numel()
    assert read == pytest.approx(0.93e9, rel=0.01)
