"""Serving prediction, its table, its fit and its error tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from helicube.errors import InputError
from helicube.planner.errors_table import rank_accuracy, summarise
from helicube.planner.fit_serving import fit_engines
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow
from helicube.planner.published import published_table
from helicube.planner.serving import predict_serving
from helicube.planner.serving_table import ServingRow, read_serving, row_formats
from helicube.planner.setting import checkpoint_formats, make_setting
from helicube.planner.shipped import shipped_constants
from helicube.planner.validate import predict
from helicube.planner.validate_file import validate_file
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware

HEADER = (
    "backend,model,system,precision,isl,osl,concurrency,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,"
    "speculative_decoding_unknown,ttft_ms,tpot_ms\n"
)


def table(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "runs.csv"
    file.write_text(HEADER + "\n".join(lines) + "\n")
    return file


def serving_rows(shared_dir: Path) -> list[ServingRow]:
    return read_serving(shared_dir / "data" / "silicon" / "serving_measurements.csv")


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        # tp, pp, attention_dp, moe_tp, moe_ep → GPUs, copies of attention, TPA, EP, requests (serving_table.py).
        ("4.0,1.0,1.0,4.0,1.0", (4, 1, 4, 1, 64)),
        ("4.0,1.0,1.0,1.0,4.0", (4, 1, 4, 4, 64)),
        ("16.0,1.0,1.0,4.0,4.0", (4, 1, 4, 4, 64)),
        ("1.0,1.0,16.0,4.0,4.0", (4, 4, 1, 4, 1024)),
        ("1.0,1.0,4.0,1.0,4.0", (4, 4, 1, 4, 256)),
        ("1.0,1.0,4.0,4.0,1.0", (4, 4, 1, 1, 256)),
        ("4.0,1.0,4.0,1.0,16.0", (4, 1, 4, 4, 256)),
    ],
)
def test_layout_conventions(tmp_path: Path, columns: str, wanted: tuple[int, ...]) -> None:
    file = table(tmp_path, f"vllm,openai/gpt-oss-120b,b200_sxm,fp4,1024,1024,64.0,{columns},False,1,2.5")
    row = read_serving(file)[0]
    assert [row.num_gpus, row.dp, row.tpa, row.ep, row.concurrency] == list(wanted)
    assert row.tpf * row.ep == row.num_gpus
    assert (row.prompt, row.tpot_s) == (0.9 * 1024, 2.5e-3)


def test_equal_runs_under_two_conventions_become_equal_rows(shared_dir: Path) -> None:
    """Runs that the table holds twice, under two conventions, must end as the same layout and load."""
    seen: dict[tuple[float, float], ServingRow] = {}
    pairs = 0
    for row in serving_rows(shared_dir):
        key = (round(row.tpot_s, 9), round(row.ttft_s, 7))
        if key in seen and row.model.ffn.is_moe:
            twin = seen[key]
            same = (row.num_gpus, row.dp, row.ep, row.concurrency) == (
                twin.num_gpus,
                twin.dp,
                twin.ep,
                twin.concurrency,
            )
            pairs += 1
            assert same, f"{row} and {twin} are one run"
        seen[key] = row
    assert pairs >= 40


def test_formats_of_runs(shared_dir: Path) -> None:
    rows = serving_rows(shared_dir)
    found = {(r.engine, r.model.name, r.hardware.name, r.precision): row_formats(r) for r in rows}
    oss = found["vllm", "gpt-oss-120b", "h200", "fp4"]
    assert (oss.attention, oss.experts, oss.cache) == ("bf16", "fp4", "bf16")
    llama = found["trtllm", "llama-3.1-70b", "b200", "fp8"]
    assert (llama.attention, llama.cache) == ("fp8", "fp8")


def test_shipped_constants_keep_their_accuracy(shared_dir: Path) -> None:
    """The figures of docs/validation.md, with room for a refit; the peer's are 19.7 % and 51 %."""
    rows = [row for row in serving_rows(shared_dir) if not row.speculative]
    v = predict(rows)
    summary = summarise(v.errors)
    assert summary.count == 1006
    assert summary.median_absolute < 0.07
    assert summary.within_20 > 0.9
    assert rank_accuracy(v.rows, v.predicted_s, v.measured_s)[0] > 0.9


def test_serving_reduces_to_a_decode_step_for_one_user() -> None:
    spec = get_model("llama-3.1-8b")
    s = make_setting(spec, load_hardware("h100"), engine="vllm", formats=checkpoint_formats(spec, "bf16", "bf16"))
    x = LayoutArrays.stack([LayoutRow(FAMILIES.index("tp"), 1, 1, 1, 1, 1, 1, False)])
    one = predict_serving(s, x, concurrency=np.array([1.0]), prompt=np.array([1000.0]), output=np.array([1000.0]))
    assert float(one.tpot_s[0]) == pytest.approx(float(one.step_s[0]))
    many = predict_serving(s, x, concurrency=np.array([64.0]), prompt=np.array([1000.0]), output=np.array([1000.0]))
    assert float(many.tpot_s[0]) > float(many.step_s[0]) > float(one.step_s[0])
    assert float(many.batch[0]) < 64
    crowded = predict_serving(s, x, concurrency=np.array([1e5]), prompt=np.array([1000.0]), output=np.array([1000.0]))
    assert float(crowded.batch[0]) <= float(crowded.capacity[0])


def test_fractions_of_users_round_up_on_every_layout() -> None:
    """Little's law gives fractions of requests; a step runs whole ones, whether or not a width divides them."""
    from helicube.planner.arrays import ceil_div

    users = np.array([[0.2, 1.0, 7.3]])
    assert ceil_div(users, np.ones((2, 1))).tolist() == [[1, 1, 8]]
    assert ceil_div(users, np.array([[1.0], [2.0]])).tolist() == [[1, 1, 8], [1, 1, 4]]
    assert ceil_div(7.3, 1.0) == 8


def test_fit_recovers_constants_from_its_own_predictions(shared_dir: Path) -> None:
    from dataclasses import replace

    rows = [row for row in serving_rows(shared_dir) if not row.speculative and row.engine == "vllm"][::4]
    gpus, engines = shipped_constants()
    slow = {**engines, "vllm": replace(engines["vllm"], request_s=3 * engines["vllm"].request_s)}
    made = [replace(row, tpot_s=float(t)) for row, t in zip(rows, predict(rows, gpus, slow).predicted_s, strict=True)]
    fit = fit_engines(made, gpus, rounds=15)
    errors = fit.predict(made) / np.array([row.tpot_s for row in made]) - 1
    assert float(np.median(np.abs(errors))) < 0.03
    # Each running request costs a time of its own; the prior pulls, and batches without it cannot tell.
    assert 2 < fit.engines["vllm"].request_s / engines["vllm"].request_s < 4


def test_rank_accuracy_counts_pairs_of_layouts_at_one_load(tmp_path: Path) -> None:
    lines = [
        f"vllm,meta-llama/Llama-3.1-70B,h100_sxm,fp8,1024,1024,{c},{tp}.0,1.0,1.0,{tp}.0,1.0,False,1,{t}"
        for c, tp, t in ((8, 2, 20), (8, 4, 12), (8, 8, 9), (16, 2, 25))
    ]
    rows = read_serving(table(tmp_path, *lines))
    measured = np.array([row.tpot_s for row in rows])
    assert rank_accuracy(rows, measured, measured) == (1.0, 3)
    assert rank_accuracy(rows, 1 / measured, measured) == (0.0, 3)
    # By throughput of one GPU: 20·2 < 12·4 < 9·8, the reverse order.
    assert rank_accuracy(rows, measured * np.array([4.0, 2.0, 1.0, 1.0]), measured, per_gpu=True) == (0.0, 3)
    assert rank_accuracy(rows, measured * np.array([1.0, 1.0, 1.0, 9.0]), measured, per_gpu=True) == (1.0, 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("vllm,unknown/Model,h100_sxm,fp8,1,1,1,1,1,1,1,1,False,1,1", "model 'unknown/Model' is unknown"),
        ("vllm,openai/gpt-oss-120b,h300,fp8,1,1,1,1,1,1,1,1,False,1,1", "GPU 'h300' is unknown"),
        ("vllm,openai/gpt-oss-120b,h100_sxm,fp8,x,1,1,1,1,1,1,1,False,1,1", "line 2: isl is 'x'"),
        ("vllm,openai/gpt-oss-120b,h100_sxm,fp8,0,1,1,1,1,1,1,1,False,1,1", "line 2: isl, osl and concurrency must be"),
        ("foo,openai/gpt-oss-120b,h100_sxm,fp8,1024,1024,4,1,1,1,1,1,False,1,1", "engine 'foo' has no constants"),
        ("vllm,openai/gpt-oss-120b,mi300x,fp8,1024,1024,4,1,1,1,1,1,False,1,1", "mi300x has no calibration"),
    ],
)
def test_wrong_rows_are_one_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        validate_file(table(tmp_path, line))
    assert "\n" not in str(caught.value)


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        validate_file(tmp_path / "absent.csv")
    (tmp_path / "empty.csv").write_text(HEADER)
    with pytest.raises(InputError, match="holds no rows that can be read"):
        validate_file(tmp_path / "empty.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"columns backend, model.*missing"):
        validate_file(tmp_path / "other.csv")
    with pytest.raises(InputError, match=r"choose .md or .csv"):
        validate_file(tmp_path / "empty.csv", output=tmp_path / "x.txt")


GOOD = "vllm,meta-llama/Llama-3.1-70B,h100_sxm,fp8,1024,1024,8,4,1,1,4,1,False,1,12"


def test_rows_that_cannot_be_predicted_are_counted_not_fatal(tmp_path: Path) -> None:
    bad = (
        "vllm,unknown/Model,h100_sxm,fp8,1,1,1,1,1,1,1,1,False,1,1",
        "vllm,openai/gpt-oss-120b,h100_sxm,fp8,x,1,1,1,1,1,1,1,False,1,1",
        "foo,openai/gpt-oss-120b,h100_sxm,fp8,1024,1024,4,1,1,1,1,1,False,1,1",
        "foo,openai/gpt-oss-120b,h100_sxm,fp8,1024,1024,8,1,1,1,1,1,False,1,1",
    )
    tables, _ = validate_file(table(tmp_path, GOOD, *bad))
    last = tables[-1]
    assert last.title == "Rows left out: 4"
    assert last.rows[0][0] == "2"
    assert "engine 'foo' has no constants" in last.rows[0][1]
    assert tables[0].rows[0][1] == "1"


def test_predictions_as_csv_include_rows_without_a_measurement(tmp_path: Path) -> None:
    unmeasured = GOOD.removesuffix("1,12") + ","
    _, written = validate_file(table(tmp_path, GOOD, unmeasured), output=tmp_path / "out.csv")
    assert written is not None
    with written.open() as file:
        first, second = csv.DictReader(file)
    assert float(first["error"]) == pytest.approx(float(first["fitted_tpot_ms"]) / 12 - 1)
    assert (second["measured_tpot_ms"], second["error"]) == ("", "")
    assert second["fitted_tpot_ms"] == first["fitted_tpot_ms"]


def test_published_kv_parallel_measurements() -> None:
    """No sign is wrong where the publication decides it, and the sizes are those of docs/validation.md."""
    rows = {row[0]: row for row in published_table().rows}
    assert len(rows) >= 16
    verdicts = [row[5] for row in rows.values()]
    assert "wrong" not in verdicts
    assert verdicts.count("right") >= 11
    factor = {
        case: [float(v) for v in row[4].split(" (")[0].rstrip(" ×").split(" … ")]
        for case, row in rows.items()
        if row[4]
    }
    assert max(abs(v - 1) for v in factor["8 × B200, vLLM: KV capacity at DCP 2 / 4 / 8"]) < 0.05
    assert max(abs(v - 1) for v in factor["GB200, MLA decode kernel, batch 1, 128 k: 128 / 16 heads"]) < 0.1
    gains = [v for case, values in factor.items() if "throughput at concurrency 64" in case for v in values]
    assert len(gains) == 4
    assert 0.65 < min(gains) <= max(gains) < 1.1
    # Without a published concurrency the sign for AMD hangs on the one assumed, and the table says how often.
    swept = [row[5] for case, row in rows.items() if "AMD" in case]
    assert len(swept) == 3
    assert all(int(text.split(" of ")[0]) >= 2 and text.endswith("of 4") for text in swept)
