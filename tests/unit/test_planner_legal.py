"""Legality: the search lists exactly the layouts that break no rule, and --why-not names the rule of the others."""

from __future__ import annotations

import itertools

import pytest

from helicube.planner.answer import Answer, ask
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow, enumerate_layouts
from helicube.planner.legal import broken_rule
from helicube.planner.question import Question
from helicube.planner.setting import make_setting, uniform_formats
from helicube.planner.why_not import explain
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware


@pytest.mark.parametrize("model", ["deepseek-r1", "llama-3.1-405b", "gpt-oss-120b", "qwen3-32b"])
def test_the_search_lists_exactly_the_legal_layouts(model: str) -> None:
    spec = get_model(model)
    widths = (1, 2, 3, 4, 8)
    listed = enumerate_layouts(spec, 8, overlap=False)
    rows = [
        LayoutRow(FAMILIES.index(family), w[0], w[1], w[2], w[3], w[4], w[5])
        for family in FAMILIES
        for w in itertools.product(widths, repeat=6)
        if w[0] * w[1] * w[2] * w[3] in widths
        # pp, dp and KV shards of one are other families.
        and {"pp": w[0], "dp": w[1], "medha": w[2], "dcp": w[2], "helix": w[2]}.get(family, 2) > 1
    ]
    x = LayoutArrays.stack(rows)
    legal = {x.describe(i) for i in range(len(x)) if not broken_rule(spec, x, i)}
    inside = {
        listed.describe(i)
        for i in range(len(listed))
        if all(int(getattr(listed, key)[i]) in widths for key in ("pp", "dp", "kvp", "tpa", "tpf", "ep"))
        and int(listed.num_gpus[i]) in widths
    }
    assert legal == inside
    assert len(legal) > 10


@pytest.fixture(scope="module")
def answer() -> Answer:
    spec = get_model("llama-3.1-405b")
    s = make_setting(spec, load_hardware("gb200"), engine="trtllm", formats=uniform_formats(spec, "fp4", "fp8"))
    return ask(s, Question(context=10**5, max_gpus=8))


@pytest.mark.parametrize(
    ("layout", "rule"),
    [
        ("medha kvp=5,tpa=2,ep=7,tpf=9", "ep=7 needs experts"),
        ("medha kvp=5,tpa=2,tpf=9", "tpf=9, but medha ties it to tpa=2"),
        ("medha kvp=4,tpa=3", "tpa=3 does not divide the 8 KV heads"),
        ("pp=3,tpa=5", "tpa=5 does not divide the 128 query heads"),
        ("pp=200,tpa=1", "pp=200 exceeds the 126 layers"),
        ("dp=2,tpa=3", "tpa=3 does not divide the 128 query heads"),
        ("dp=2,tpa=2,tpf=3", "tpf × ep = 3, but attention has 4 ranks"),
        ("dcp kvp=3,tpa=1", "kvp × tpa = 3 does not divide the 128 query heads"),
        ("tp kvp=2,tpa=1", "tp has no kvp; kvp=2 needs medha, dcp, helix"),
        ("helix kvp=2,tpa=3", "does not divide the 8 KV heads"),
    ],
)
def test_illegal_layouts_are_named_not_timed(answer: Answer, layout: str, rule: str) -> None:
    found = explain(answer, layout)
    assert found.candidate is None
    assert len(found.lines) == 1
    assert rule in found.lines[0]
