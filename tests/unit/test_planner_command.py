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
    assert "it takes 16 GPUs, not the 32 asked for" in lines("kvp=16,tpa=1", gpus=32)
    assert "read as a Helix layout; 'dcp kvp=8 tpa=1'" in lines("kvp=8 tpa=1")
    assert "read as" not in lines("dcp kvp=8,tpa=1")
    assert "it is the best layout" in lines(plan().tables[0].rows[0][1])
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "deepsek-r1"}, "did you mean deepseek-r1"),
        ({"gpu": "gb2000"}, "did you mean gb200"),
        ({"context": 0}, "context is 0"),
        ({"context": -5}, "context is -5"),
        ({"max_gpus": 0}, "--max-gpus is 0"),
        ({"gpus": -2, "max_gpus": None}, "--gpus is -2"),
        ({"max_gpus": 100000}, "--max-gpus is 100000; at most 4096"),
        ({"gpus": 100000, "max_gpus": None}, "--gpus is 100000; at most 4096"),
        ({"gpus": 8, "max_gpus": 4}, "contradict each other"),
        ({"context": "1q"}, "context '1q' is no number of tokens; write 131072, 128k or 1m"),
        ({"ttl_ms": -5.0}, "ttl-ms is -5; it must be positive"),
        ({"ttl_ms": float("inf")}, "ttl-ms is inf; it must be positive and finite"),
        ({"families": " ,"}, "no family of layouts is named; choose out of tp"),
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
        ({"gpus": 1, "max_gpus": None}, "does not fit 1 × gb200.*GB too much; use --max-gpus 4, a lower precision"),
        ({"users": 4000}, "4000 users do not fit 32 × gb200: the most is .*; use --max-gpus [0-9]+, a lower"),
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


def test_what_is_not_asked_for_is_said() -> None:
    def told(**options: object) -> str:
        report = plan(**{"precision": None, "context": 8192, "max_gpus": 8, **options})
        return "\n".join((report.headline, *report.notes))

    assert "weights fp4" in told(model="qwen3-32b-nvfp4", gpu="b200")
    assert "experts fp4" in told(model="deepseek-v3.1-nvfp4", gpu="b200")
    hopper = told(model="qwen3-32b-nvfp4", gpu="h100")
    assert "weights bf16" in hopper
    assert "published in fp4, which h100 does not multiply: planned in bf16" in hopper
    assert "the cache is taken as fp8" in told(model="llama-3.1-70b", gpu="h100", weights="fp8")
    assert "the cache is taken" not in told(model="llama-3.1-70b", gpu="h100")
    assert "int4 experts are timed as fp4 ones" in told(model="kimi-k2.5", gpu="b200")
    assert "no served run of deepseek-r1 was in that fit" in told(model="deepseek-r1", gpu="h200", max_gpus=16)
    assert "no served run" not in told(model="llama-3.1-70b", gpu="h100")


def test_contexts_in_thousands_and_millions() -> None:
    for text, tokens in (("128k", "131,072"), ("1m", "1,048,576"), ("1_000_000", "1,000,000")):
        assert f"context {tokens}," in plan(context=text).headline


def test_padded_layouts_are_named_and_can_be_left_out() -> None:
    from helicube.planner.layouts import is_padded
    from helicube.planner.why_not import parse_layout
    from helicube.specs.catalog import get_model

    odd = plan(model="llama-3.1-70b", gpu="h100", precision="bf16", context=65536, gpus=7, max_gpus=None)
    assert any("zeros fill them up" in note for note in odd.notes)
    even = plan(padding=False, families="helix")
    best = even.tables[0].rows[0][1]
    assert not is_padded(get_model("deepseek-r1"), parse_layout(f"helix {best}"))[0]
    assert not any("zeros fill" in note for note in even.notes)


def test_every_phase_says_where_its_time_comes_from() -> None:
    phases = plan(families="helix").tables[1]
    kinds = {row[0]: row[4] for row in phases.rows}
    assert phases.header[4] == "kind"
    assert kinds["exchange"] == "assumed"
    assert kinds["attention"] == kinds["experts"] == kinds["all"] == "fitted"
    bound = plan(gpu="mi300x", precision="fp8", max_gpus=8, context=65536).tables[1]
    assert {row[4] for row in bound.rows} == {"bound"}


def test_frontier_rows_stand_alone(tmp_path: Path) -> None:
    plan(output=(tmp_path / "a.CSV", tmp_path / "b.json"))
    rows = list(csv.DictReader((tmp_path / "a.CSV").open()))
    assert {(row["model"], row["gpu"], row["context"], row["cache"]) for row in rows} == {
        ("deepseek-r1", "gb200", "1000000", "fp4")
    }
    assert {row["extrapolated"] for row in rows} == {"True"}
    memory = json.loads((tmp_path / "b.json").read_text())["best"]["memory_gb_per_gpu"]
    parts = sum(value for key, value in memory.items() if key != "capacity")
    assert parts == pytest.approx(memory["capacity"]) == pytest.approx(198.674743296)


def test_crossover_files_hold_the_map(tmp_path: Path) -> None:
    report = plan(crossover=True, gpus=8, max_gpus=None, precision="fp8", output=(tmp_path / "map.csv",))
    rows = list(csv.DictReader((tmp_path / "map.csv").open()))
    assert len(rows) == 130
    assert {row["num_gpus"] for row in rows} == {"8"}
    first = next(row for row in rows if (row["users"], row["context"]) == ("64", "1024"))
    assert 0 < float(first["latency_without_over_with_kvp"]) < 1
    assert first["best_without"].startswith(("tp", "pp", "dp"))
    assert any("KV parallelism pays from" in note for note in report.notes)


def test_links_are_followed_and_folders_refused(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    plan(output=(tmp_path / "link.json",))
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["model"] == "deepseek-r1"
    (tmp_path / "dir.json").mkdir()
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        plan(output=(tmp_path / "dir.json",))


def test_pictures_are_reproducible(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plan extra brings it")
    plan(output=(tmp_path / "a.svg", tmp_path / "b.svg"))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_command_imports_neither_torch_nor_scipy_nor_matplotlib() -> None:
    code = (
        "import sys; from helicube.cli.main import cli; "
        "cli.main(['plan','--model','llama-3.1-8b','--gpu','h100','--context','8192'], standalone_mode=False); "
        "bad = {'torch','scipy','matplotlib','pyarrow'} & set(sys.modules); assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
