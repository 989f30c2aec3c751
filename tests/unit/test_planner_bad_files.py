"""Files that no model, GPU or run can have: one line that names the value, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helicube.errors import InputError
from helicube.planner.kernel_tables import read_table
from helicube.planner.output import write_text
from helicube.planner.question import Question
from helicube.planner.serving_table import read_serving
from helicube.specs.catalog import load_model
from helicube.specs.hardware import read_hardware

LLAMA = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 32000,
         "num_attention_heads": 32, "intermediate_size": 11008}  # fmt: skip
GPU = "hbm_bytes_per_s = 3e12\nhbm_bytes = 9e10\nbf16_flops = 9e14\nlink_bytes_per_s = 4e11\nlink_domain = 8\n"
HEADER = ("backend,model,system,precision,isl,osl,concurrency,tp_size,pp_size,attention_dp_size,moe_tp_size,"
          "moe_ep_size,speculative_decoding_unknown,tpot_ms,ttft_ms\n")  # fmt: skip
RUN = "vllm,llama-3.1-70b,h100_sxm,fp8,1024,1024,{concurrency},{tp},{pp},{dp},1,1,False,{tpot},100\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 10**30}, "hidden_size is above"),
        ({"num_hidden_layers": 10**8}, "num_hidden_layers is above"),
        ({"model_type": ["llama"]}, "is unknown"),
        ({"quantization_config": "fp8"}, "quantization_config is 'fp8'"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'"),
        ({"text_config": [1]}, "text_config is list"),
        ({"model_type": "qwen3_next", "full_attention_interval": 100}, "none of its 32 layers has full attention"),
        ({"model_type": "gpt_oss", "layer_types": 5}, "layer_types must be a list of 32 words"),
        ({"model_type": "gpt_oss", "layer_types": ["full_attention"] * 99}, "layer_types must be a list of 32 words"),
    ],
)
def test_model_files(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**LLAMA, **change}))
    with pytest.raises(InputError, match=message):
        load_model(str(path))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"hidden_size": ' + "1" * 5000 + "}"])
def test_model_files_that_break_the_parser(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not JSON"):
        load_model(str(path))


@pytest.mark.parametrize(("bits", "native"), [(4, "int4"), (8, "int8")])
def test_bits_of_a_quantised_checkpoint_count(tmp_path: Path, bits: int, native: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**LLAMA, "quantization_config": {"quant_method": "awq", "bits": bits}}))
    assert load_model(str(path)).native_precision == native


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fp8_flops = inf", "positive and finite"),
        ("network_bytes_per_s = 50", "is 50; give it in units of one, such as 80e9"),
        ('name = " "', "name is empty"),
        ("network_bytes_per_s = nan", "positive and finite"),
        ("fp8_flops = 1" + "0" * 400, "too large"),
        ("x = " + "[" * 100_000, "is not TOML"),
    ],
)
def test_gpu_files(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(GPU + line + "\n")
    with pytest.raises(InputError, match=message):
        read_hardware(path)


def test_impossible_runs_are_left_out_with_a_reason(tmp_path: Path) -> None:
    good: dict[str, object] = {"concurrency": 8, "tp": 8, "pp": 1, "dp": 1, "tpot": 10}
    bad: list[dict[str, object]] = [
        {"tp": 0},
        {"pp": 0},
        {"dp": 0},
        {"tp": -1},
        {"tp": "inf"},
        {"tpot": "inf"},
        {"concurrency": 1e300},
    ]
    path = tmp_path / "runs.csv"
    lines = [RUN.format(**good), *(RUN.format(**{**good, **change}) for change in bad), "vllm,llama-3.1-70b\n"]
    path.write_text(HEADER + "".join(lines))
    reasons: list[str] = []
    assert len(read_serving(path, left_out=reasons)) == 1
    assert [int(reason.split()[1].rstrip(":")) for reason in reasons] == list(range(3, 11))
    path.write_text(HEADER + "x" * 200_000 + "\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_serving(path)


def test_a_table_without_its_columns(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the plan extra brings it")
    parquet = pytest.importorskip("pyarrow.parquet", reason="the plan extra brings it")
    path = tmp_path / "gemm.parquet"
    parquet.write_table(pyarrow.table({"m": [1], "latency": [1.0]}), path)
    with pytest.raises(InputError, match="lacks the columns gemm_dtype, n, k"):
        read_table(path)


def test_a_name_that_the_file_system_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_text(tmp_path / ("a" * 300 + ".json"), "x")
    write_text(tmp_path / ("a" * 240 + ".json"), "x")
    assert [path.name for path in tmp_path.iterdir()] == ["a" * 240 + ".json"]


def test_questions_beyond_any_user() -> None:
    with pytest.raises(InputError, match="at most 1,000,000,000"):
        Question(context=10**24, max_gpus=8)
    with pytest.raises(InputError, match="ttl-ms is -5"):
        Question(context=8, max_gpus=8, ttl_s=-5e-3)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("\ufeff" + json.dumps(LLAMA), encoding="utf-8")
    assert load_model(str(tmp_path / "x.json")).num_layers == 32
    (tmp_path / "x.toml").write_text("\ufeff" + GPU, encoding="utf-8")
    assert read_hardware(tmp_path / "x.toml").link_domain == 8


def test_what_a_gpu_file_leaves_out_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(GPU)
    source = read_hardware(tmp_path / "x.toml").source
    assert source == "x.toml (not given, so assumed: network_bytes_per_s = 50000000000.0, link_kind = 'nvlink')"
    (tmp_path / "y.toml").write_text(GPU + 'network_bytes_per_s = 25e9\nlink_kind = "pcie"\n')
    assert read_hardware(tmp_path / "y.toml").source == "y.toml"
