"""`helicube quantize`: folders that load again, whole or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from tiny import WIDTH, Words, tiny_weights

from helicube.cli.main import cli
from helicube.engine.options import EngineOptions
from helicube.engine.request import Request
from helicube.engine.sampling import SamplingConfig
from helicube.errors import CheckpointError, InputError
from helicube.models.cube.checkpoint import load_cube
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import MODEL_FILE, load_default, save_default
from helicube.models.cube.format_effects import FORMATS_FILE
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig
from helicube.nn.linear import QuantizedLinear, module_format
from helicube.pipelines.quantize import quantize_folder, summary
from helicube.pipelines.shape_model import CubeModel, DefaultModel, load_model
from helicube.pipelines.text_to_shape import TextToShape


@pytest.fixture
def default(tmp_path: Path) -> Path:
    save_default(tiny_weights(), tmp_path / "in", torch.float32)
    return tmp_path / "in"


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    """A folder as published, tiny."""
    torch.manual_seed(0)
    decoder = DecoderConfig(n_layer=2, n_single_layer=1, n_head=2, n_embd=32, shape_model_vocab_size=20,
                            shape_model_embed_dim=4, text_model_embed_dim=WIDTH)  # fmt: skip
    tokenizer = TokenizerConfig(num_encoder_latents=5, embed_dim=4, width=16, num_heads=2, num_freqs=8,
                                num_encoder_layers=2, num_decoder_layers=1, num_codes=20)  # fmt: skip
    folder = tmp_path / "cube"
    folder.mkdir()
    save_file(CubeDecoder(decoder).bfloat16().state_dict(), folder / "shape_gpt.safetensors")
    state = {name: t for name, t in CubeTokenizer(tokenizer).state_dict().items() if "embedder" not in name}
    state["embedder.weight"] = CubeTokenizer(tokenizer).state_dict()["encoder.embedder.weight"]
    save_file(state, folder / "shape_tokenizer.safetensors")
    (folder / "config.json").write_text(json.dumps({"gpt_model": asdict(decoder), "shape_model": asdict(tokenizer)}))
    return folder


@pytest.mark.parametrize("form", ["bfloat16", "int8", "int4", "int4-g32", "fp8"])
def test_default_folder(form: str, default: Path, tmp_path: Path) -> None:
    done = quantize_folder(default, form, tmp_path / "out" / "deeper")
    assert done.path == tmp_path / "out" / "deeper"
    assert done.num_matrices == 27
    assert done.bytes_after < done.bytes_before
    assert done.load_s > 0
    dense = load_default(default).decoder.state_dict()
    loaded = load_default(done.path)
    assert module_format(loaded.decoder.lm_head) == ("float32" if form == "bfloat16" else form)
    for name, layer in loaded.decoder.named_modules():
        if isinstance(layer, QuantizedLinear):
            want = dense[f"{name}.weight"]
            assert float((layer.dense() - want).norm() / want.norm()) < {"int8": 8e-3, "fp8": 0.04}.get(form, 0.12)
    # Nothing but the folder asked for is left.
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["deeper"]
    assert [p.name for p in done.path.iterdir()] == [MODEL_FILE]


@pytest.mark.parametrize("form", ["int8", "int4"])
def test_decoding_is_that_of_weights_converted_on_loading(form: str, default: Path, tmp_path: Path) -> None:
    quantize_folder(default, form, tmp_path / "out")
    stored = TextToShape(DefaultModel(load_default(tmp_path / "out"), Words()))
    converted = TextToShape(DefaultModel(load_default(default), Words()), EngineOptions(weights=form))
    prompts, configs = ["a red chair", "a lamp"], [SamplingConfig(), SamplingConfig(temperature=1, seed=3)]
    for a, b in zip(*(p.generate_many(prompts, configs) for p in (stored, converted)), strict=True):
        assert a.decoded.ids.tolist() == b.decoded.ids.tolist()


def test_published_folder(cube: Path, tmp_path: Path) -> None:
    done = quantize_folder(cube, "int8", tmp_path / "out")
    assert {p.name for p in done.path.iterdir()} == {p.name for p in cube.iterdir()}
    before, after = load_cube(cube), load_cube(done.path)
    assert module_format(after.decoder.lm_head) == "int8"
    assert torch.equal(after.decoder.transformer.wte.weight, before.decoder.transformer.wte.weight)
    converted = TextToShape(CubeModel(before, Words()), EngineOptions(weights="int8"))
    found = [
        p.engine(1, True).generate([r]).results[0].ids.tolist()
        for p in (TextToShape(CubeModel(after, Words())), converted)
        for r in [_request(p)]
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 5
    stored = load_file(done.path / "shape_gpt.safetensors")
    assert stored["lm_head.weight"].dtype == torch.int8


def _request(pipeline: TextToShape) -> Request:
    return Request(prompt=pipeline.model.condition(["a chair"], None).prompts[0], num_tokens=5)


def test_there_and_back_is_what_was_rounded(default: Path, tmp_path: Path) -> None:
    quantize_folder(default, "int8", tmp_path / "small")
    quantize_folder(tmp_path / "small", "float32", tmp_path / "large")
    small, large = load_default(tmp_path / "small").decoder, load_default(tmp_path / "large").decoder
    for name, layer in small.named_modules():
        if isinstance(layer, QuantizedLinear):
            assert torch.equal(layer.dense(), large.state_dict()[f"{name}.weight"])


@pytest.mark.parametrize("kind", ["default", "cube"])
def test_int4_of_a_width_that_is_no_whole_groups_to_another_format(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    quantize_folder(request.getfixturevalue(kind), "int4", tmp_path / "int4")
    quantize_folder(tmp_path / "int4", "int8", tmp_path / "int8")
    load = load_default if kind == "default" else load_cube
    four, eight = (load(tmp_path / form).decoder for form in ("int4", "int8"))
    layers = [(n, m) for n, m in four.named_modules() if isinstance(m, QuantizedLinear)]
    assert any(layer.in_features % 64 for _, layer in layers)
    for name, layer in layers:
        other = eight.get_submodule(name)
        assert isinstance(other, QuantizedLinear)
        assert float((layer.dense() - other.dense()).norm() / layer.dense().norm()) < 0.01


def test_what_does_not_load_is_not_left_behind(default: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> float:
        raise CheckpointError(f"{folder} does not load")

    monkeypatch.setattr("helicube.pipelines.quantize._load_seconds", refuse)
    with pytest.raises(CheckpointError, match="does not load"):
        quantize_folder(default, "int8", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_folders_that_cannot_be_made(default: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file" / "out", tmp_path / "file" / "deeper" / "out"):
        with pytest.raises(InputError, match=r"cannot be created .*; name a folder that can"):
            quantize_folder(default, "int8", output)


def test_a_file_says_its_format(default: Path, tmp_path: Path) -> None:
    assert load_default(default).form == "float32"
    quantize_folder(default, "int8", tmp_path / "out")
    save_default(load_default(tmp_path / "out"), tmp_path / "again")
    assert load_default(tmp_path / "again").form == "int8"


@pytest.mark.parametrize("config", [None, "{", "[]", "{}", '{"shape": 3}', '{"shape": {"grid": 2}}'])
def test_a_file_without_its_configuration_is_one_line(config: str | None, default: Path) -> None:
    file = default / MODEL_FILE
    metadata = {"format": "helicube-default-1"} | ({} if config is None else {"config": config})
    save_file(load_file(file), file, metadata=metadata)
    with pytest.raises(CheckpointError, match=r"no whole configuration .*; get it again, or give another folder"):
        load_default(default)


def test_mistakes_are_one_line_and_leave_nothing(default: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="weight format 'int5' is unknown"):
        quantize_folder(default, "int5", tmp_path / "out")
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists; name a folder that does not"):
        quantize_folder(default, "int8", tmp_path / "there")
    with pytest.raises(CheckpointError, match="holds neither"):
        quantize_folder(tmp_path / "there", "int8", tmp_path / "out")
    file = default / MODEL_FILE
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="is damaged"):
        quantize_folder(default, "int8", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "there"]


def test_weights_that_are_not_finite_are_refused(default: Path, tmp_path: Path) -> None:
    weights = tiny_weights()
    with torch.no_grad():
        weights.decoder.lm_head.weight[0, 0] = torch.nan
    save_default(weights, tmp_path / "bad", torch.float32)
    with pytest.raises(CheckpointError, match="not finite"):
        quantize_folder(tmp_path / "bad", "int8", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_command(default: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["quantize", str(default), "--to", "int8", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "27 matrices in int8" in done.output
    assert "peak memory" in done.output


def test_a_format_that_harms_says_so(default: Path, tmp_path: Path) -> None:
    (default / FORMATS_FILE).write_text('{"right_class_share": {"bfloat16": 0.9, "int8": 0.895, "int4": 0.8}}')
    assert load_model(default).remarks == ()
    assert load_model(default, form="int8").remarks == ()
    (remark,) = load_model(default, form="int4").remarks
    assert "int4" in remark
    assert "90.0% to 80.0%" in remark
    done = quantize_folder(default, "int4", tmp_path / "out")
    assert summary(done).splitlines()[1:] == [f"note: {remark}"]
    assert load_model(tmp_path / "out").remarks == (remark,)
    assert load_model(default, form="int4-g32").remarks == (), "nobody measured it"


@pytest.mark.parametrize("text", ["{", "[]", '{"right_class_share": {"int4": 1}}', '{"right_class_share": 3}'])
def test_damaged_effects_are_one_clear_line(text: str, default: Path) -> None:
    (default / FORMATS_FILE).write_text(text)
    with pytest.raises(CheckpointError, match="is damaged"):
        load_model(default, form="int4")
