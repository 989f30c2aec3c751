"""HelixLayout: what is legal, what the errors say, what padding is exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helicube.errors import LayoutError
from helicube.specs.catalog import get_model
from helicube.specs.layout import HelixLayout, legal_layouts

LLAMA = get_model("llama-3.1-405b")
R1 = get_model("deepseek-r1")
SMOL = get_model("smollm2-135m")


def test_round_trip_through_text() -> None:
    layout = HelixLayout(kvp=8, tpa=8, tpf=64, ep=1)
    assert HelixLayout.parse(str(layout)) == layout
    assert layout.num_ranks == 64


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_missing_widths_are_filled(kvp: int, tpa: int, ep_index: int) -> None:
    ranks = kvp * tpa
    ep = [d for d in range(1, ranks + 1) if ranks % d == 0][ep_index % sum(ranks % d == 0 for d in range(1, ranks + 1))]
    layout = HelixLayout.of(kvp=kvp, tpa=tpa, ep=ep)
    assert (layout.kvp, layout.tpa, layout.tpf * layout.ep) == (kvp, tpa, ranks)
    assert HelixLayout.of(tpa=tpa, num_ranks=ranks).kvp == kvp
    assert HelixLayout.parse(str(layout), num_ranks=ranks) == layout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kvp=2,tpa=0", "tpa=0 is below 1"),
        ("kvp=2,tp=1", "'tp' is unknown; choose tp[af]"),
        ("kvp=two", "no whole number"),
        ("kvp=2,kvp=2", "twice"),
        ("kvp=4,tpa=2,ep=3", "ep=3 does not divide the 8 ranks; choose ep in 1, 2, 4, 8"),
        ("kvp=4,tpa=2,tpf=2,ep=2", "differs from tpf·ep = 2·2 = 4.*choose tpf=4"),
        ("", "layout '' names no width; write it as kvp=2,tpa=1"),
        ("kvp:2", "'kvp:2' is not understood; write it as key=value"),
    ],
)
def test_parse_errors(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        HelixLayout.parse(text)


@pytest.mark.parametrize(
    ("layout", "model", "message"),
    [
        (
            HelixLayout.of(kvp=1, tpa=16),
            LLAMA,
            "tpa=16 exceeds the 8 KV heads of llama-3.1-405b; choose tpa in 1, 2, 4, 8",
        ),
        (HelixLayout.of(kvp=1, tpa=3), LLAMA, "tpa=3 does not divide the 8 KV heads"),
        (HelixLayout.of(kvp=2, tpa=2, ep=2), LLAMA, "is dense; choose ep=1 and tpf=4"),
        (HelixLayout.of(kvp=4, tpa=2), R1, "one latent head; choose tpa=1 and kvp=8"),
        (HelixLayout.of(kvp=6, tpa=1, ep=3), R1, "ep=3 does not divide the 256 experts.*choose ep in 1, 2"),
        (HelixLayout.of(kvp=10, tpa=1), SMOL, "kvp=10 exceeds the 9 query heads"),
    ],
)
def test_validation_names_the_legal_choices(layout: HelixLayout, model: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        layout.validate(model)  # type: ignore[arg-type]


def test_pool_size_is_checked() -> None:
    with pytest.raises(LayoutError, match="needs 8 ranks, but there are 4"):
        HelixLayout.of(kvp=8).validate(R1, num_ranks=4)


def test_padding_is_reported_and_can_be_refused() -> None:
    layout = HelixLayout.of(kvp=4, tpa=1)
    layout.validate(SMOL)
    pad = layout.padding(SMOL)
    assert (pad.query_heads, pad.dense_size) == (3, 0)
    with pytest.raises(LayoutError, match="3 more query heads per TPA slice"):
        layout.validate(SMOL, allow_padding=False)
    assert not HelixLayout.of(kvp=1, tpa=3).padding(SMOL)


def test_padded_widths_divide() -> None:
    for ranks in range(1, 73):
        for layout in legal_layouts(R1, ranks):
            pad = layout.padding(R1)
            assert (R1.attention.num_query_heads // layout.tpa + pad.query_heads) % layout.kvp == 0
            assert (R1.ffn.expert_size + pad.expert_size) % layout.tpf == 0
            assert (R1.ffn.dense_size + pad.dense_size) % ranks == 0


def test_legal_layouts_of_64_ranks() -> None:
    # Llama-405B: tpa 1, 2, 4, 8 with ep 1. DeepSeek-R1: tpa 1 with every power of two for ep.
    assert [layout.tpa for layout in legal_layouts(LLAMA, 64)] == [8, 4, 2, 1]
    assert [layout.ep for layout in legal_layouts(R1, 64)] == [1, 2, 4, 8, 16, 32, 64]
    assert {layout.kvp for layout in legal_layouts(R1, 64)} == {64}
