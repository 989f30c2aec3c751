"""The same matrix as real processes over gloo, up to four; overlap, and its trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gloo_rank
import pytest
import torch
from scenario import agree, check_alone, expected
from texts import alone

from helicube.parallel.launch import launch

RANK = Path(gloo_rank.__file__)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank found; one pool for all tests, as starting Python and PyTorch four times is most of the time."""
    folder = tmp_path_factory.mktemp("gloo")
    launch([sys.executable, str(RANK), str(folder)], gloo_rank.NUM_RANKS, {"OMP_NUM_THREADS": "1"})
    return [torch.load(folder / f"{r}.pt", weights_only=True) for r in range(gloo_rank.NUM_RANKS)]


@pytest.mark.parametrize("model", gloo_rank.MODELS)
def test_processes_give_what_one_device_gives(model: str, ranks: list[dict[str, Any]]) -> None:
    want = expected(model)
    layouts = [layout for name, layout in gloo_rank.cases() if name == model]
    assert {layout.num_ranks for layout in layouts} >= {2, 4}
    for layout in layouts:
        agree([ranks[r][f"{model} {layout}"] for r in range(layout.num_ranks)], want)


@pytest.mark.parametrize("model", gloo_rank.TEXTS)
def test_requests_join_and_leave_over_processes(model: str, ranks: list[dict[str, Any]]) -> None:
    for rank in range(gloo_rank.TEXTS[model].num_ranks):
        assert ranks[rank][f"texts {model}"] == alone(model)


@pytest.mark.parametrize("model", gloo_rank.WEIGHED)
def test_what_is_counted_is_what_goes_over_the_wire(model: str, ranks: list[dict[str, Any]]) -> None:
    """Weighed by the system: the same at every length of the context, and as counted but for gloo's headers.

    Each rank in turn may be the one that sends the larger half of what does not divide, hence all ranks together.
    """
    if "wire" not in ranks[0]:
        pytest.skip("only Linux counts what a process writes")
    short, long = (
        [sum(column) for column in zip(*(rank["wire"][model][i] for rank in ranks), strict=True)] for i in range(2)
    )
    assert short == long
    counted, wire = short
    # gloo puts 144 bytes before each message, in the order of a hundred of which make four steps.
    assert counted < wire
    assert (wire - counted) % 144 == 0, (counted, wire)


def test_a_pool_of_one_rank_may_go_through_a_backend() -> None:
    check_alone("gloo", "cpu")


def test_overlap_changes_no_bit(ranks: list[dict[str, Any]]) -> None:
    for found in ranks:
        off, on = found["overlap"]
        assert all(torch.equal(a, b) for a, b in zip(off, on, strict=True))


def test_the_trace_shows_exchanges_during_attention(ranks: list[dict[str, Any]]) -> None:
    for found in ranks:
        events = sorted(found["trace"], key=lambda e: e[1])
        ours = [name for name, _, _ in events if name.startswith("helix.")]
        # 5 steps of 2 layers of 4 parts: every part is sent before the next is attended to, and only then merged.
        assert ours == (["helix.attend", "helix.send"] * 4 + ["helix.merge"]) * 10
    spans = {
        name: [(a, b) for n, a, b in ranks[0]["trace"] if n == name] for name in ("gloo:all_to_all", "helix.attend")
    }
    assert len(spans["gloo:all_to_all"]) == 40
    # An exchange under way while a later part is attended to; how many of the 30 do depends on the machine.
    overlapping = sum(
        any(a < end and start < b for a, b in spans["helix.attend"]) for start, end in spans["gloo:all_to_all"]
    )
    assert overlapping >= 1
