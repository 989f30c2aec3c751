"""`helicube plan` as a user meets it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from helicube.cli.main import cli
from helicube.errors import HelicubeError, InputError, LayoutError
from helicube.planner.request import PlanOptions, PlanReport, run_plan

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
GPU = """
hbm_bytes_per_s = 1e12
hbm_bytes = 48e9
bf16_flops = 200e12
link_bytes_per_s = 32e9
link_domain = 8
link_kind = "pcie"
"""


def plan(**options: object) -> PlanReport:
    base: dict[str, object] = {
        "model": "deepseek-r1",
        "gpu": "gb200",
        "context": 10**6,
        "max_gpus": 32,
        "precision": "fp4",
    }
    return run_plan(PlanOptions(**{**base, **options}))  # type: ignore[arg-type]


def test_command_prints_the_answer() -> None:
    result = CliRunner().invoke(cli, ["plan", "--model", "deepseek-r1", "--gpu", "gb200", "--max-gpus", "16",
                                      "--context", "1000000", "--precision", "fp4"])  # fmt: skip
    assert result.exit_code == 0, result.output
    for text in (
        "Helix",
        "tok/s/user",
        "fitted",
        "why it loses",
        "outside the calibrated range",
        "exceeds the 163,840",
    ):
        assert text in result.output


def test_own_model_and_own_gpu(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "mine.toml").write_text(GPU)
    files = tuple(tmp_path / f"plan.{ending}" for ending in ("html", "json", "csv"))
    own = {"model": str(tmp_path / "config.json"), "gpu": str(tmp_path / "mine.toml")}
    report = plan(**own, context=65536, max_gpus=8, precision=None, ttl_ms=20.0, output=files)
    assert any("lower bounds" in note for note in report.notes)
    assert "bound times" in report.tables[0].title
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["kind_of_times"] == "bound"
    assert document["best"]["ttl_ms"] <= 20
    rows = list(csv.DictReader((tmp_path / "plan.csv").open()))
    assert {row["kind"] for row in rows} == {"bound"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "config.json",
        "mine.toml",
        "plan.csv",
        "plan.html",
        "plan.json",
    ]


def test_page_is_self_contained_and_well_formed(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    plan(output=(page,))
    text = page.read_text()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "%DATA%" not in text
    opened: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
            if tag not in {"meta", "br"}:
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            while opened and opened[-1] in {"li", "td", "th"} and opened[-1] != tag:
                opened.pop()
            assert opened.pop() == tag

    Checker().feed(text)
    assert opened == []
    data = json.loads(text.split("const data = ")[1].split(";\nconst colors")[0])
    assert {point["family"] for point in data["points"]} >= {"helix", "tp", "dp"}


def test_why_not() -> None:
    def lines(layout: str, **options: object) -> str:
        return "\n".join(plan(why_not=layout, **options).notes)

    assert "one latent head; choose tpa=1" in lines("kvp=8,tpa=2")
    assert "attention" in lines("kvp=8,tpa=1")
    assert "does not fit one user" in lines("tpa=1")
    assert "outside the 1 … 32 asked for" in lines("kvp=64,tpa=1")
    assert "misses the target of 12 ms" in lines("dp=8,tpa=1,ep=8", ttl_ms=12.0)
    with pytest.raises(LayoutError, match="'kpv' is unknown"):
        plan(why_not="kpv=8")


def test_crossover() -> None:
    table = plan(crossover=True, gpus=8, max_gpus=None, precision="fp8").tables[-1]
    assert table.header[1] == "1k"
    cells = {row[0]: row[1:] for row in table.rows}
    # Short contexts: it hurts; one user at a million tokens: it pays; at four millions nothing else fits.
    assert float(cells["64"][0]) < 1
    assert float(cells["1"][-3]) > 1
    assert cells["1"][-1] == "only KVP"


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "helicube"])
def test_emit(engine: str) -> None:
    report = plan(emit=engine, families="helix")
    assert report.commands
    text = report.commands[-1]
    starts = {"vllm": "vllm serve", "sglang": "python -m sglang", "trtllm": "trtllm-serve", "helicube": "helicube run"}
    assert text.startswith(starts[engine])
    if engine in {"vllm", "sglang"}:
        assert any("ties TPA" in note for note in report.notes)


def test_emitted_layout_is_what_the_engine_of_this_package_takes() -> None:
    from helicube.specs.catalog import get_model
    from helicube.specs.layout import HelixLayout

    words = plan(emit="helicube", families="helix").commands[-1].split()
    layout = HelixLayout.parse(words[words.index("--layout") + 1])
    layout.validate(get_model("deepseek-r1"), num_ranks=int(words[words.index("--nproc") + 1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "deepsek-r1"}, "did you mean deepseek-r1"),
        ({"gpu": "gb2000"}, "did you mean gb200"),
        ({"context": 0}, "context is 0"),
        ({"context": -5}, "context is -5"),
        ({"max_gpus": 0}, "--max-gpus is 0"),
        ({"gpus": -2}, "--gpus is -2"),
        ({"max_gpus": 100000}, "at most 4096"),
        ({"users": -1}, "users is -1"),
        ({"ttl_ms": 0.0}, "ttl-ms is 0"),
        ({"ttl_ms": 0.5}, "impossible here"),
        ({"precision": "fp3"}, "precision 'fp3' is unknown"),
        ({"gpu": "h100", "max_gpus": 8}, "h100 has no fp4 arithmetic"),
        ({"engine": "vlm"}, "engine 'vlm' is unknown; choose"),
        ({"families": "helx"}, "family 'helx' is unknown; choose helix"),
        ({"emit": "llamacpp"}, "engine 'llamacpp' is unknown"),
        ({"output": (Path("plan.pdf"),)}, "ends in .pdf; choose .html"),
        ({"output": (Path("no/such/folder/plan.html"),)}, "does not exist"),
        ({"gpus": 1, "max_gpus": None}, "does not fit 1 × gb200.*GB too much"),
        ({"why_not": " "}, "the layout is empty"),
    ],
)
def test_wrong_input_is_one_line_with_a_remedy(options: dict[str, object], message: str) -> None:
    with pytest.raises(HelicubeError, match=message) as caught:
        plan(**options)
    assert "\n" not in str(caught.value)


def test_a_failed_request_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        plan(ttl_ms=0.5, output=(tmp_path / "plan.html",))
    assert list(tmp_path.iterdir()) == []


def test_missing_options_and_lists() -> None:
    result = CliRunner().invoke(cli, ["plan"])
    assert result.exit_code != 0
    assert "--model and --gpu missing" in result.output
    names = CliRunner().invoke(cli, ["plan", "--list"]).output
    assert "deepseek-r1" in names
    assert "no: bounds only" in names
    assert "reproduce" in CliRunner().invoke(cli, ["plan", "--help"]).output


def test_default_precision_is_that_of_the_checkpoint() -> None:
    assert "weights fp8;" in plan(precision=None, gpu="h200", max_gpus=16, context=8192).headline
    oss = plan(model="gpt-oss-120b", gpu="h100", precision=None, context=8192, max_gpus=8).headline
    assert "experts fp4" in oss
    assert "attention bf16" in oss


def test_the_command_imports_neither_torch_nor_scipy_nor_matplotlib() -> None:
    code = (
        "import sys; from helicube.cli.main import cli; "
        "cli.main(['plan','--model','llama-3.1-8b','--gpu','h100','--context','8192'], standalone_mode=False); "
        "bad = {'torch','scipy','matplotlib','pyarrow'} & set(sys.modules); assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
