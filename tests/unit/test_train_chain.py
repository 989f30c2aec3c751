"""From objects to a bundled model: every training step of the product, on a handful of objects."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from helicube.errors import CheckpointError, InputError
from helicube.models.cube.decoder import DecoderConfig
from helicube.models.cube.default import load_default
from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.models.cube.lattice_colors import ColorConfig
from helicube.models.cube.text_static import StaticTextEncoder
from helicube.pipelines.quantize import quantize_folder
from helicube.pipelines.shape_model import DefaultModel, load_model
from helicube.train.bundles import bundle, rebundle
from helicube.train.decoder_task import DecoderTaskConfig
from helicube.train.distill import write_table
from helicube.train.factored_decoder import shared_rows
from helicube.train.items import load_items, split_unseen
from helicube.train.lattice_task import LatticeTask, LatticeTaskConfig
from helicube.train.loop import LoopConfig
from helicube.train.procedural import generate_many
from helicube.train.runs import train_colors, train_decoder, train_shape, tune_decoder
from helicube.train.shards import ItemInfo, prepare_shards
from helicube.train.text_table import table_digest
from helicube.train.token_rows import class_weights
from helicube.train.token_set import TokenSet, kept_tokens, tokenize_items
from helicube.train.trained_runs import (
    TokenizerRuns,
    how_far,
    load_code,
    load_colors,
    load_shape,
    load_state,
)

SHAPE = LatticeConfig(grid=2, voxels_per_cell=8, width=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
                      num_joints=1)  # fmt: skip
COLOR = ColorConfig(palette_size=3, width=16, num_heads=2, num_layers=1)
DECODER = DecoderConfig(n_layer=1, n_single_layer=1, n_head=2, n_embd=32)


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 procedural objects: one of them is kept back as unseen."""
    folder = tmp_path_factory.mktemp("items")
    prepare_shards(list(islice(generate_many(131, 0), 40)), folder, name="procedural", workers=1)
    train, unseen = split_unseen(load_items(folder))
    assert (len(train), len(unseen)) == (39, 1)
    return folder


@pytest.fixture(scope="module")
def runs(items: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All three runs, a few steps each."""
    out = tmp_path_factory.mktemp("runs")
    task = LatticeTaskConfig(batch=4, band_points=256, uniform_points=64, free_steps=4, eval_items=2)
    train_shape(items, loop(out / "shape"), SHAPE, task)
    train_colors(items, out / "shape", loop(out / "colors"), COLOR)
    tokenizer = TokenizerRuns(shape=out / "shape", colors=out / "colors")
    rows = DecoderTaskConfig(batch=4, num_text=16)
    train_decoder(items, tokenizer, loop(out / "decoder", optimizer="muon"), DECODER, rows)
    return out


def loop(out: Path, **changes: object) -> LoopConfig:
    return LoopConfig(**{"out": out, "steps": 12, "warmup": 2, "eval_every": 6, **changes})  # type: ignore[arg-type]


def test_every_run_logs_and_says_what_it_is(runs: Path) -> None:
    kinds = {"shape": "tokenizer", "colors": "colors", "decoder": "decoder"}
    for name, key in (("shape", "band_bce"), ("colors", "entry_accuracy"), ("decoder", "unseen_shape_nll")):
        rows = [json.loads(line) for line in (runs / name / "metrics.jsonl").read_text().splitlines()]
        assert [row["step"] for row in rows] == [6, 12], name
        assert all(key in row for row in rows), name
        state = load_state(runs / name, kinds[name])
        assert (state["step"], state["steps"]) == (12, 12)
        assert how_far(runs / name) == f"{runs / name}: step 12 of 12"


def test_a_run_of_another_kind_is_refused(runs: Path, tmp_path: Path) -> None:
    shape = load_shape(runs / "shape").config
    with pytest.raises(CheckpointError, match="not a run of `helicube train tokenizer`"):
        load_shape(runs / "colors")
    with pytest.raises(CheckpointError, match="not a run of `helicube train decoder`"):
        bundle(TokenizerRuns(shape=runs / "shape", colors=runs / "colors"), runs / "shape", tmp_path)
    for name in ("shape", "colors"):
        # As states were before they said it.
        state = load_state(runs / name)
        del state["description"]["kind"]
        (tmp_path / name).mkdir()
        torch.save(state, tmp_path / name / "state.pt")
    load_shape(tmp_path / "shape")
    load_colors(tmp_path / "colors", shape)
    with pytest.raises(CheckpointError, match="not a run of `helicube train tokenizer`"):
        load_shape(tmp_path / "colors")
    with pytest.raises(CheckpointError, match="not a run of `helicube train colors`"):
        load_colors(tmp_path / "shape", shape)


def test_the_bundle_takes_the_text_table_of_its_decoder_along(runs: Path, items: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_table(table, ["red", "chair", "a"], np.eye(3, 8, dtype=np.float32), np.ones(3, np.float16))
    tokenizer = TokenizerRuns(shape=runs / "shape", colors=runs / "colors")
    rows = DecoderTaskConfig(batch=2, num_text=16)
    own = tmp_path / "decoder"
    # A captioner that only uses these words is not to be had: what the table does not know is left out.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("helicube.train.runs.augmented_caption", lambda *_: ("a red chair", np.zeros((1, 3), np.uint8)))
        train_decoder(items, tokenizer, loop(own, steps=1), DECODER, rows, text=table)
    assert load_state(own)["description"]["text"] == table_digest(table)
    bundle(tokenizer, own, tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.text.width == 8
    assert np.array_equal(
        model.text.encode(["red chair"]).states, StaticTextEncoder.load(table).encode(["red chair"]).states
    )
    with pytest.raises(InputError, match="text is"):
        train_decoder(items, tokenizer, loop(runs / "decoder", steps=13, optimizer="muon"), DECODER, rows, text=table)
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds another text table"):
        bundle(tokenizer, runs / "decoder", tmp_path / "model")
    (own / "text" / "vocab.txt").write_text("red\nchair\nb\n")
    with pytest.raises(CheckpointError, match="not the text table"):
        bundle(tokenizer, own, tmp_path / "other")


def test_ids_do_not_depend_on_the_shape_decoder(runs: Path, items: Path) -> None:
    # The shape's decoder may be trained on after the decoder of ids has been: rows must stay what they are.
    code = load_code(TokenizerRuns(shape=runs / "shape", colors=runs / "colors"))
    _, unseen = split_unseen(load_items(items))
    before = tokenize_items(code, unseen)
    for p in code.shape.decoder.parameters():
        p.data.mul_(1.5)
    after = tokenize_items(code, unseen)
    assert (before.shape_ids == after.shape_ids).all()
    assert (before.paint_ids == after.paint_ids).all()


def test_joints_can_be_given_to_a_decoder_later(items: Path) -> None:
    train, unseen = split_unseen(load_items(items))
    old = LatticeTokenizer(replace(SHAPE, num_joints=0)).eval()
    new = LatticeTask(SHAPE, LatticeTaskConfig(), train, unseen, frozen=old).model.eval()
    ids = torch.randint(100, (2, SHAPE.num_tokens))
    assert torch.equal(new.decode(ids), old.decode(ids))
    assert not new.encoder.c_in.weight.requires_grad
    assert new.decoder.get_parameter("joints.0.conv_in.weight").requires_grad


def test_a_decoder_trained_on_keeps_all_ids(runs: Path, items: Path, tmp_path: Path) -> None:
    task = LatticeTaskConfig(batch=4, band_points=256, uniform_points=64, eval_items=2)
    train_shape(items, loop(tmp_path / "shape"), SHAPE, task, decoder_of=runs / "shape")
    train_colors(items, tmp_path / "shape", loop(tmp_path / "colors"), COLOR, decoder_of=runs / "colors")
    before = load_code(TokenizerRuns(shape=runs / "shape", colors=runs / "colors"))
    after = load_code(TokenizerRuns(shape=tmp_path / "shape", colors=tmp_path / "colors"))
    assert not torch.equal(after.shape.decoder.to_volume.weight, before.shape.decoder.to_volume.weight)
    assert after.shape.decoder.get_parameter("joints.0.conv_out.weight").any(), "joints start at zero, and are trained"
    assert not torch.equal(after.paint.to_volume.weight, before.paint.to_volume.weight)
    _, unseen = split_unseen(load_items(items))
    rows, new_rows = tokenize_items(before, unseen), tokenize_items(after, unseen)
    assert (rows.shape_ids == new_rows.shape_ids).all()
    assert (rows.paint_ids == new_rows.paint_ids).all()


def test_the_bundle_holds_the_averaged_weights_and_loads(runs: Path, tmp_path: Path) -> None:
    tokenizer = TokenizerRuns(shape=runs / "shape", colors=runs / "colors")
    path = bundle(tokenizer, runs / "decoder", tmp_path)
    assert path.is_file()
    model = load_model(tmp_path)
    assert isinstance(model, DefaultModel)
    assert model.num_text == 16
    average = load_state(runs / "decoder")["average"]
    # bfloat16 keeps eight bits.
    positions = average["decoder.transformer.wpe.weight"]
    assert positions.any(), "the vectors of positions start at zero, and are trained"
    assert model.decoder.transformer.wpe is not None
    torch.testing.assert_close(model.decoder.transformer.wpe.weight, positions, rtol=1 / 256, atol=0)
    table, own = model.decoder.transformer.wte.weight, average["decoder.transformer.wte.weight"]
    rows = own + shared_rows(model.code, len(table)) @ average["shared_in.weight"]
    torch.testing.assert_close(table, rows, rtol=1 / 256, atol=1e-6)


def test_a_model_can_be_trained_on(runs: Path, items: Path, tmp_path: Path) -> None:
    tokenizer = TokenizerRuns(shape=runs / "shape", colors=runs / "colors")
    bundle(tokenizer, runs / "decoder", tmp_path / "model")
    quantize_folder(tmp_path / "model", "int8", tmp_path / "int8")
    before = load_default(tmp_path / "model").decoder.state_dict()
    for name, close in (("model", 0.0), ("int8", 0.02)):
        out = tmp_path / f"tuned-{name}"
        # A step without a learning rate to speak of: what it began with is what it ends with.
        tune_decoder(items, tmp_path / name, loop(out, steps=1, lr=1e-9), DecoderTaskConfig(batch=2))
        written = rebundle(tmp_path / name, out, tmp_path / f"new-{name}")
        whole = written.read_bytes()
        with pytest.raises(InputError, match="exists; name another --out"):
            rebundle(tmp_path / name, out, tmp_path / f"new-{name}")
        assert written.read_bytes() == whole
        after = load_default(tmp_path / f"new-{name}")
        assert after.config.num_text == 16, "that of the model"
        for key, tensor in after.decoder.state_dict().items():
            torch.testing.assert_close(tensor, before[key], rtol=1 / 128, atol=close + 1e-6, msg=f"{name} {key}")
    with pytest.raises(InputError, match="start is"):
        tune_decoder(items, tmp_path / "int8", loop(tmp_path / "tuned-model", steps=2), DecoderTaskConfig(batch=2))


def test_training_a_model_on_makes_it_better_at_what_it_sees(runs: Path, items: Path, tmp_path: Path) -> None:
    bundle(TokenizerRuns(shape=runs / "shape", colors=runs / "colors"), runs / "decoder", tmp_path / "model")
    changes = {"steps": 30, "eval_every": 10, "optimizer": "muon"}
    tune_decoder(items, tmp_path / "model", loop(tmp_path / "run", **changes), DecoderTaskConfig(batch=8))
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    started = json.loads((runs / "decoder" / "metrics.jsonl").read_text().splitlines()[0])
    assert rows[-1]["shape_nll"] < rows[0]["shape_nll"] < started["shape_nll"]


def test_a_decoder_of_another_model_is_refused_and_nothing_is_written(runs: Path, items: Path, tmp_path: Path) -> None:
    bundle(TokenizerRuns(shape=runs / "shape", colors=runs / "colors"), runs / "decoder", tmp_path / "model")
    whole = (tmp_path / "model" / "model.safetensors").read_bytes()
    state = load_state(runs / "decoder")
    said = state["description"]
    for name, change, words in (
        ("code", {"code": "0123"}, "another tokenizer"),
        ("text", {"text": "0123"}, "another text table"),
        ("sizes", {"model": said["model"] | {"n_head": 0}}, "n_head = 0"),
        ("room", {"task": said["task"] | {"num_text": 0}}, "num_text = 0"),
        ("none", {"model": None}, "does not say what was trained"),
    ):
        (tmp_path / name).mkdir()
        torch.save(state | {"description": said | change}, tmp_path / name / "state.pt")
        with pytest.raises(CheckpointError, match=words):
            rebundle(tmp_path / "model", tmp_path / name, tmp_path / "model")
        assert (tmp_path / "model" / "model.safetensors").read_bytes() == whole
    # A model that reads prompts with the bundled table, into a folder with another.
    write_table(tmp_path / "out" / "text", ["red"], np.eye(1, 8, dtype=np.float32), np.ones(1, np.float16))
    with pytest.raises(InputError, match="holds another text table"):
        rebundle(tmp_path / "model", runs / "decoder", tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize("content", [b"", b"hello world\n" * 10, b"PK\x03\x04"])
def test_a_damaged_state_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state\.pt is damaged \(.+\); name another folder"):
        load_state(tmp_path)


def test_a_run_of_another_kind_is_not_gone_on_with(runs: Path, items: Path) -> None:
    before = sorted(path.name for path in (runs / "shape").iterdir())
    tokenizer = TokenizerRuns(shape=runs / "shape", colors=runs / "colors")
    with pytest.raises(CheckpointError, match="not a run of `helicube train decoder`"):
        train_decoder(items, tokenizer, loop(runs / "shape"), DECODER, DecoderTaskConfig(batch=4))
    with pytest.raises(InputError, match="is of `helicube train decoder`, not of `train colors`; give another --out"):
        train_colors(items, runs / "shape", loop(runs / "decoder"), COLOR)
    assert sorted(path.name for path in (runs / "shape").iterdir()) == before


def test_tokens_are_kept_and_new_shards_are_encoded(runs: Path, tmp_path: Path) -> None:
    code = load_code(TokenizerRuns(shape=runs / "shape", colors=runs / "colors"))
    folder = tmp_path / "items"
    prepare_shards(list(islice(generate_many(131, 0), 3)), folder, name="train", workers=1)
    kept_tokens(code, folder)
    [first] = folder.glob("tokens-*/train-0000.npz")
    written = first.stat().st_mtime_ns
    prepare_shards(list(islice(generate_many(131, 0), 39)), folder, name="procedural", workers=1)
    found = kept_tokens(code, folder)
    assert first.stat().st_mtime_ns == written, "its shard was not new"
    for tokens, items in zip(found, split_unseen(load_items(folder)), strict=True):
        want = tokenize_items(code, items)
        for field in fields(TokenSet):
            assert np.array_equal(getattr(tokens, field.name), getattr(want, field.name)), field.name
    code.paint.head_out.weight.mul_(-1)
    kept_tokens(code, folder)
    assert first.stat().st_mtime_ns == written, "ids do not depend on what reads them"
    code.shape.encoder.c_in.weight.mul_(-1)
    train, _ = kept_tokens(code, folder)
    assert first.stat().st_mtime_ns == written, "those of another encoder stand beside them"
    assert np.array_equal(train.shape_ids, tokenize_items(code, split_unseen(load_items(folder))[0]).shape_ids)


def test_made_objects_do_not_crowd_out_found_ones() -> None:
    def info(name: str, class_name: str) -> ItemInfo:
        return ItemInfo(
            id=name, class_name=class_name, subclass="", split="train", captions=(), captions_name_colors=False
        )

    infos = [info(f"proc-chair-{i}", "chair") for i in range(100)]
    infos += [info(f"kit/chair-{i}", "chair") for i in range(4)] + [info("kit/yak", "yak")]
    weights = class_weights(infos)
    made, found, yak = weights[:100].sum(), weights[100:104].sum(), weights[104]
    assert (made / yak, found / yak) == pytest.approx((10, 2))
    assert weights.sum() == pytest.approx(1)
