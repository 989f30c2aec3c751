"""The ablation: rows for every feature and batch, consistent numbers, unknown models named."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from cpu_libraries import library
from tiny import tiny_weights

from helicube.cli.main import cli
from helicube.engine.metrics import BandwidthProbe
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan
from helicube.errors import DeviceError, InputError, MissingExtraError
from helicube.kernels.choose import Facts
from helicube.models.cube.decoder import DecoderConfig
from helicube.models.cube.default import save_default
from helicube.nn.linear import module_format
from helicube.pipelines import ablation
from helicube.pipelines.ablation import Ablation, AblationRow, Variant, ablate, variants_of
from helicube.pipelines.ablation_report import chart, check_outputs, markdown, table, write_json
from helicube.pipelines.ablation_subject import Subject, load_subject, random_subject
from helicube.pipelines.random_weights import random_decoder

NAMES = [
    "no cache, float32",
    "+ cache",
    "+ kernels",
    "+ graph (one call)",
    "bfloat16 weights",
    "int8 weights",
    "int4 weights",
]
CONFIG = DecoderConfig(n_layer=2, n_head=2, n_embd=64, shape_model_vocab_size=61, text_model_embed_dim=12)


@pytest.fixture(scope="module")
def subject() -> Subject:
    library()
    plan = IdPlan(ranges=((0, 61),) * 40)
    return random_subject("tiny", CONFIG, plan, 8, base_format="float32")


@pytest.fixture(scope="module")
def found(subject: Subject) -> Ablation:
    return ablate(subject, batches=(2, 1), num_steps=5)


def test_rows_are_consistent(found: Ablation) -> None:
    assert [(r.batch, r.name) for r in found.rows] == [(b, n) for b in (1, 2) for n in NAMES]
    assert not found.left_out
    for row in found.rows:
        assert row.num_steps >= 5
        assert 0 < row.tpot_s <= row.tpot_p95_s
        assert row.object_s == pytest.approx(row.tpot_s * 40 / row.batch)
        assert row.bandwidth_share == pytest.approx(row.num_bytes / row.tpot_s / row.bandwidth_bytes_per_s)
    assert found.rows[0].speedup == found.rows[len(NAMES)].speedup == 1
    # Half the bytes in bfloat16, cache included, and fewer in each later format.
    assert found.rows[4].num_bytes == pytest.approx(found.rows[3].num_bytes / 2, rel=0.05)
    assert found.rows[4].num_bytes > found.rows[5].num_bytes > found.rows[6].num_bytes
    assert found.rows[len(NAMES)].num_bytes > found.rows[0].num_bytes


def test_reports(found: Ablation, tmp_path: Path) -> None:
    assert table(found).row_count == len(found.rows)
    assert all(f"| {row.name} |" in markdown(found) for row in found.rows)
    write_json(found, tmp_path / "rows.json")
    written = json.loads((tmp_path / "rows.json").read_text())
    assert len(written["rows"]) == len(found.rows)
    assert written["rows"][3]["floor_ratio"] == pytest.approx(found.rows[3].floor_ratio)
    assert written["machine"]["torch"] == torch.__version__
    pytest.importorskip("matplotlib")
    chart(found, tmp_path / "rows.png")
    assert (tmp_path / "rows.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.json", "rows.png"]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("form", ["float32", "bfloat16", "int8", "int4"])
def test_random_decoders_are_in_the_format_asked_for(form: str, native: bool) -> None:
    decoder = random_decoder(tiny_weights().config.decoder, "cpu", form, native=native)
    assert module_format(decoder.lm_head) == form
    assert decoder.dtype == (torch.float32 if native or form == "float32" else torch.bfloat16)
    with torch.inference_mode():
        cond = decoder.condition(torch.zeros(1, 3, 12, dtype=decoder.dtype))
        assert torch.isfinite(decoder(torch.tensor([[1, 2, 3]]), cond)).all()
    half = random_decoder(CONFIG, "cpu", form, native=native, condition=False)
    assert all(p.is_meta == (".pre_c" in n or ".post_2" in n) for n, p in half.named_parameters())


def test_unknown_models_and_devices_are_named(tmp_path: Path) -> None:
    for name in ("cube-v9", "v0.5", "nonsense"):
        with pytest.raises(InputError, match=r"choose from default, cube-v0\.1, cube-v0\.5"):
            load_subject(name)
    with pytest.raises(InputError, match=r"holds no .*; choose from default, cube-v0\.1, cube-v0\.5"):
        load_subject(str(tmp_path))
    for device in ("abacus", "cuda:99", "cpu:x"):
        with pytest.raises(DeviceError, match=r"cannot be used here .*; choose cpu"):
            load_subject("default", device)


def test_variants_of_every_device(subject: Subject) -> None:
    def names(facts: Facts) -> list[str]:
        return [variant.name for variant in variants_of(subject, facts)]

    assert names(Facts(device="cpu", has_native=True)) == NAMES
    assert names(Facts(device="cpu")) == [*NAMES[:2], *NAMES[4:]]
    gpu = [*NAMES[:2], "+ graph", "+ kernels", *NAMES[4:]]
    assert names(Facts(device="cuda", capability=(8, 6), has_triton=True)) == gpu
    assert names(Facts(device="cuda", capability=(8, 9), has_triton=True)) == [*gpu, "fp8 weights"]
    last = variants_of(subject, Facts(device="cuda", capability=(9, 0), has_triton=True))[-1].options
    assert last == EngineOptions(weights="fp8")


def test_rows_that_cannot_be_measured_are_named(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = ablation.measure_row

    def full(subject: Subject, variant: Variant, batch: int, num_steps: int, probe: BandwidthProbe) -> AblationRow:
        if variant.name == "+ cache":
            raise DeviceError("out of memory")
        slow = 60.0 if variant.name == "no cache, float32" else 0.0
        row = measure(subject, variant, batch, num_steps, probe)
        return dataclasses.replace(row, tpot_s=row.tpot_s + slow)

    monkeypatch.setattr(ablation, "measure_row", full)
    monkeypatch.setattr(ablation, "held_bytes", lambda _: 10**9)
    found = ablate(subject, batches=(1, 2), num_steps=3)
    told = ("no cache, float32, batch 2 (too slow)",
            "+ cache, batch 1 (out of memory)", "+ cache, batch 2 (out of memory)")  # fmt: skip
    assert found.left_out == told
    assert [row.name for row in found.rows] == [NAMES[0], *NAMES[2:], *NAMES[2:]]
    assert {row.resident_bytes for row in found.rows} == {10**9 - (512 << 20)}, "the probe is not the decoder's"
    assert found.rows[1].speedup is not None
    assert found.rows[-1].speedup is None
    assert all(line in markdown(found) for line in told)
    caption = table(found).caption
    assert isinstance(caption, str)
    assert all(line in caption for line in told)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_default(tiny_weights(), tmp_path / "tiny")
    return tmp_path / "tiny"


def test_command(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = ["-o", str(tmp_path / "rows.json"), "--chart", str(tmp_path / "rows.png")]
    options = ["--model", str(folder), "--steps", "3", "--batch", "2", *files]
    done = CliRunner().invoke(cli, ["bench", "ablation", *options])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "rows.json").read_text())
    assert (written["subject"], written["random"]) == ("tiny", False)
    assert [row["name"] for row in written["rows"]] == NAMES
    assert "int4 weights" in done.output
    assert (tmp_path / "rows.png").stat().st_size > 1000


@pytest.mark.parametrize("option", ["-o", "--chart"])
def test_files_that_cannot_be_written_are_told_before_the_measurement(
    option: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helicube.pipelines.ablation.ablate", None)
    for target, told in ((tmp_path / "no" / "x", "does not exist; create it first"), (tmp_path, "name a file in it")):
        done = CliRunner().invoke(cli, ["bench", "ablation", "--model", str(folder), option, str(target)])
        assert isinstance(done.exception, InputError)
        assert told in str(done.exception)


def test_a_chart_without_matplotlib_is_told_before_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        check_outputs(None, Path("rows.png"))


def test_published_sizes() -> None:
    subject = load_subject("cube-v0.5")
    assert (subject.start, subject.base_format) == (522, "bfloat16")
    assert subject.cache_spec.layers[0].num_prefix + subject.start == 600
    assert subject.plan.num_steps == 1024
