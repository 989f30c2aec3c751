"""Launch lines: every flag of every engine, and layouts that an engine refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helicube.planner.request import PlanOptions, PlanReport, run_plan
from helicube.specs.catalog import get_model
from helicube.specs.layout import HelixLayout


def emitted(engine: str, layout: str, **options: object) -> tuple[str, str, PlanReport]:
    """(command and files, remarks, report) of one layout."""
    base: dict[str, object] = {"model": "deepseek-r1", "gpu": "h200", "context": 65536, "max_gpus": 16}
    report = run_plan(PlanOptions(**{**base, "emit": engine, "why_not": layout, **options}))  # type: ignore[arg-type]
    remarks = "\n".join(note for note in report.notes if note.startswith(f"{engine}:"))
    return "\n".join(report.commands), remarks, report


def test_vllm_spells_decode_context_parallelism() -> None:
    command, remarks, _ = emitted("vllm", "dcp kvp=8,tpa=1", users=4)
    assert command == (
        "vllm serve deepseek-ai/DeepSeek-R1 --tensor-parallel-size 8 --decode-context-parallel-size 8 "
        "--max-model-len 65536 --max-num-seqs 4 --kv-cache-dtype fp8"
    )
    assert remarks == ""


def test_vllm_with_data_parallel_attention_over_two_nodes() -> None:
    command, remarks, report = emitted("vllm", "dp=16,tpa=1,ep=16,tpf=1", users=64)
    assert command == (
        "vllm serve deepseek-ai/DeepSeek-R1 --tensor-parallel-size 1 --data-parallel-size 16 --enable-expert-parallel "
        "--max-model-len 65536 --max-num-seqs 4 --kv-cache-dtype fp8 --distributed-executor-backend ray"
    )
    assert remarks == "vllm: start a Ray cluster of 2 nodes of 8 GPUs first"
    assert report.commands


def test_sglang_counts_copies_inside_its_tensor_parallelism() -> None:
    command, remarks, _ = emitted("sglang", "dp=16,tpa=1,ep=16,tpf=1", users=64)
    assert command == (
        "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --dp 16 --enable-dp-attention "
        "--ep 16 --context-length 65536 --max-running-requests 64 --kv-cache-dtype fp8_e4m3 --nnodes 2 --node-rank 0 "
        "--dist-init-addr HOST:5000"
    )
    assert "run it on each of 2 nodes of 8 GPUs" in remarks
    assert "--dcp-size 8" in emitted("sglang", "dcp kvp=8,tpa=1")[0]


def test_trtllm_runs_helix_from_a_file() -> None:
    command, remarks, _ = emitted("trtllm", "kvp=8,tpa=1,tpf=2,ep=4", users=4)
    assert command == (
        "# helicube.yaml\ncuda_graph_config: {}\ncontext_parallel_size: 8\ncp_config:\n  cp_type: HELIX\n"
        "kv_cache_config:\n  dtype: fp8\n\n"
        "trtllm-serve deepseek-ai/DeepSeek-R1 --max_seq_len 65536 --max_batch_size 4 --tp_size 1 "
        "--config helicube.yaml --ep_size 4"
    )
    assert remarks == ""


def test_helicube_takes_the_same_record() -> None:
    command, remarks, _ = emitted("helicube", "kvp=8,tpa=1,ep=4")
    words = command.split()
    layout = HelixLayout.parse(words[words.index("--layout") + 1])
    assert layout == HelixLayout(kvp=8, tpa=1, tpf=2, ep=4)
    layout.validate(get_model("deepseek-r1"), num_ranks=int(words[words.index("--nproc") + 1]))
    assert command.endswith("'Once upon a time'")
    assert "holds weights and cache in 16 bits" in remarks


def test_the_layout_of_why_not_is_emitted_and_else_the_best() -> None:
    assert "--tensor-parallel-size 8 --decode" in emitted("vllm", "dcp kvp=8,tpa=1")[0]
    base = PlanOptions(model="llama-3.1-70b", gpu="h100", context=8192, max_gpus=4, families="tp", emit="vllm")
    report = run_plan(base)
    assert "--tensor-parallel-size 4" in report.commands[-1]
    assert report.commands[-1].startswith("vllm serve meta-llama/Llama-3.1-70B-Instruct ")


@pytest.mark.parametrize(
    ("engine", "layout", "options", "reason"),
    [
        ("vllm", "kvp=12,tpa=1", {}, "12 ranks do not divide the 128 query heads; add --no-padding"),
        ("trtllm", "kvp=12,tpa=1", {}, "12 ranks do not divide the 128 query heads"),
        ("vllm", "medha kvp=8,tpa=1,ep=8", {}, "no KV shards beyond its tensor parallelism"),
        ("trtllm", "dcp kvp=8,tpa=1", {}, "no dcp layout"),
        ("helicube", "dcp kvp=8,tpa=1", {}, "helicube runs tp and helix layouts, not dcp"),
        ("sglang", "dcp kvp=8,tpa=1", {"model": "llama-3.1-70b"}, "shards only the cache of MLA models"),
        (
            "vllm",
            "dcp kvp=8,tpa=1",
            {"model": "llama-3.1-70b"},
            "only beyond the 8 KV heads.*--why-not kvp=1,tpa=8",
        ),
    ],
)
def test_what_an_engine_cannot_run_is_refused_with_the_reason(
    engine: str, layout: str, options: dict[str, object], reason: str
) -> None:
    import re

    command, remarks, _ = emitted(engine, layout, **options)
    assert command == ""
    assert re.search(reason, remarks)


def test_precision_of_the_plan_reaches_the_line() -> None:
    llama = {"model": "llama-3.1-70b", "max_gpus": 8}
    assert "--quantization fp8" in emitted("vllm", "tpa=4", **llama, precision="fp8")[0]
    assert "--quantization" not in emitted("vllm", "tpa=4", **llama, precision="bf16")[0]
    assert "--quantization" not in emitted("vllm", "tpa=8", max_gpus=8)[0]
    assert "give one in fp8 instead of" in emitted("trtllm", "tpa=4", **llama, precision="fp8")[1]
    fp4 = emitted("sglang", "tpa=8", gpu="b200", precision="fp4")
    assert "give one in fp4 instead of deepseek-ai/DeepSeek-R1, which is in fp8" in fp4[1]
    assert "no fp4 cache" in fp4[1]


def test_a_model_of_ones_own_is_served_from_its_folder(tmp_path: Path) -> None:
    config = {"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192,
              "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    command = emitted("vllm", "tpa=2", model=str(tmp_path / "config.json"), max_gpus=4)[0]
    assert command.startswith(f"vllm serve {tmp_path} --tensor-parallel-size 2 ")
