"""The exact merge and attention over a prefix, against attention over everything."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helicube.nn import prefix_attention
from helicube.nn.merge import merge_partials
from helicube.nn.prefix_attention import attend_prefix
from helicube.parallel.collectives import SoloCollectives
from helicube.parallel.collectives_threads import ThreadCollectives, ThreadPool
from helicube.parallel.exchange import merge_received, send_partials


def softmax_attention(scores_M: Tensor, v_Mv: Tensor) -> tuple[Tensor, Tensor]:
    """Output and LSE in float64; (0, −∞) without keys."""
    if not len(scores_M):
        return torch.zeros(v_Mv.shape[1], dtype=torch.float64), torch.tensor(-torch.inf, dtype=torch.float64)
    s = scores_M.double()
    return s.softmax(0) @ v_Mv.double(), s.logsumexp(0)


@st.composite
def split_keys(draw: st.DrawFn) -> tuple[Tensor, Tensor, list[list[int]]]:
    """Scores and values of some keys, dealt in any order to some sets, of which any may be empty."""
    count = draw(st.integers(0, 12))
    # Scores up to ±10,000: far beyond what exp can hold.
    size = draw(st.sampled_from([1.0, 30.0, 10_000.0]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scores = (torch.rand(count, generator=generator) * 2 - 1) * size
    values = torch.randn(count, 3, generator=generator) * draw(st.sampled_from([1.0, 1e4]))
    num_sets = draw(st.integers(1, 6))
    owner = draw(st.lists(st.integers(0, num_sets - 1), min_size=count, max_size=count))
    order = draw(st.permutations(range(count)))
    return scores, values, [[i for i in order if owner[i] == s] for s in range(num_sets)]


@given(split_keys())
@settings(max_examples=200, deadline=None)
def test_any_split_merges_to_the_whole(case: tuple[Tensor, Tensor, list[list[int]]]) -> None:
    scores, values, sets = case
    parts = [softmax_attention(scores[s], values[s]) for s in sets]
    o, lse = merge_partials(torch.stack([p[0] for p in parts]).float(), torch.stack([p[1] for p in parts]).float())
    want_o, want_lse = softmax_attention(scores, values)
    assert not o.isnan().any()
    assert not lse.isnan()
    if not len(scores):
        assert torch.equal(o, torch.zeros(3))
        assert lse == -torch.inf
        return
    # An LSE of 10,000 has a step of 2^-10 in float32, which is a relative error of 1e-3 in a weight.
    step = 2.0**-22 * max(1.0, float(want_lse.abs()))
    scale = float(values.abs().max())
    assert (o - want_o).abs().max() <= scale * 4 * step
    assert abs(float(lse - want_lse)) <= 4 * step


@given(st.integers(1, 5), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_merging_in_two_stages_is_merging_at_once(num_sets: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    o = torch.randn(2 * num_sets, 4, 3, generator=generator)
    lse = torch.randn(2 * num_sets, 4, generator=generator) * 5
    lse[:: max(1, num_sets)] = -torch.inf
    o[lse == -torch.inf] = 0
    halves = [merge_partials(o[i:j], lse[i:j]) for i, j in ((0, num_sets), (num_sets, 2 * num_sets))]
    twice = merge_partials(torch.stack([h[0] for h in halves]), torch.stack([h[1] for h in halves]))
    once = merge_partials(o, lse)
    assert torch.allclose(twice[0], once[0], atol=1e-6)
    assert torch.allclose(twice[1], once[1], atol=1e-5)


def naive(q: Tensor, k: Tensor, v: Tensor, limits: list[int], scale: float) -> tuple[Tensor, Tensor]:
    """One query and head at a time, float64."""
    groups = q.shape[1] // k.shape[0]
    rows = [
        [
            softmax_attention((k[h // groups, :n].double() @ q[i, h].double()) * scale, v[h // groups, :n])
            for h in range(q.shape[1])
        ]
        for i, n in enumerate(limits)
    ]
    return (
        torch.stack([torch.stack([o for o, _ in row]) for row in rows]),
        torch.stack([torch.stack([lse for _, lse in row]) for row in rows]),
    )


@pytest.mark.parametrize("max_scores", [1, 1 << 21])
@pytest.mark.parametrize("limits", [[0], [5], [700], [0, 0, 1, 2, 2], [250, 256, 257, 513, 700], [0, 0]])
def test_attention_over_a_prefix(limits: list[int], max_scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_attention, "MAX_SCORES", max_scores)  # blocks of 256 keys, or one block
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(len(limits), 6, 8, generator=generator)
    k, v = torch.randn(2, 700, 8, generator=generator), torch.randn(2, 700, 5, generator=generator)
    o, lse = attend_prefix(q, k, v, limits, 0.5)
    want_o, want_lse = naive(q, k, v, limits, 0.5)
    assert (o - want_o).abs().max() < 1e-5
    assert torch.equal(lse.isinf(), want_lse.isinf())
    assert (lse - want_lse).nan_to_num(0.0, 0.0, 0.0).abs().max() < 1e-5


def test_lse_is_a_natural_logarithm() -> None:
    """Two keys of score 0: log 2, where a base-2 kernel would say 1."""
    zero = torch.zeros(1, 1, 1)
    _, lse = attend_prefix(zero, torch.zeros(1, 2, 1), torch.zeros(1, 2, 1), [2], 1.0)
    assert lse.item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_message_carries_outputs_and_lses_and_pads_heads(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    # 3 ranks, 2 rows, 1 token, 7 heads: 3 per rank, so two of the last rank's are padding.
    o = torch.randn(3, 2, 1, 7, 5, generator=generator).to(dtype)
    lse = torch.randn(3, 2, 1, 7, generator=generator) * 3

    def rank(collectives: ThreadCollectives) -> Tensor:
        at = collectives.rank
        pending = send_partials(o[at], lse[at], heads=3, dtype=dtype, collectives=collectives, group=(0, 1, 2))
        found = merge_received(pending.wait(), dtype)
        sent = collectives.traffic.bytes_sent["all_to_all"]
        assert sent == 2 * (2 * 1 * 3) * (5 * dtype.itemsize + 4), "two peers, six (row, head) pairs each"
        return found

    merged = torch.cat(ThreadPool(3).run(rank), dim=2)
    assert torch.equal(merged[:, :, :7], merge_partials(o, lse)[0].to(dtype))
    assert torch.equal(merged[:, :, 7:], torch.zeros(2, 1, 2, 5, dtype=dtype))
    solo = send_partials(o[0], lse[0], heads=7, dtype=dtype, collectives=SoloCollectives(), group=(0,))
    assert torch.allclose(merge_received(solo.wait(), dtype), o[0])
