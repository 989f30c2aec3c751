"""Flash-decoding over the runs of a shared cache equals its plain twin. Without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")

from scenario import DECODED, agree, expected, run_layout  # noqa: E402

from helicube.kernels.triton import attention  # noqa: E402
from helicube.nn.merge import merge_partials  # noqa: E402
from helicube.parallel.attend import Runs, attend_plain, attend_triton, choose_attend  # noqa: E402
from helicube.parallel.collectives_threads import ThreadPool  # noqa: E402
from helicube.parallel.round_robin import RoundRobin  # noqa: E402
from helicube.specs.layout import HelixLayout  # noqa: E402


@pytest.mark.parametrize("heads", [(9, 3, 64), (8, 8, 16), (6, 1, 32)])
def test_decode_over_runs_of_any_length(heads: tuple[int, int, int]) -> None:
    num_query, num_kv, size = heads
    generator = torch.Generator().manual_seed(0)
    keys, values = torch.randn(2, num_kv, 900, size, generator=generator).to(DEVICE)
    q = torch.randn(5, 1, num_query, size, generator=generator).to(DEVICE)
    runs = Runs(starts=[0, 40, 40, 300, 899], limits=[[40], [0], [260], [599], [1]])
    o, lse = attend_triton(q, keys, values, runs, size**-0.5)
    want_o, want_lse = attend_plain(q, keys, values, runs, size**-0.5)
    assert (o.dtype, lse.dtype, o.shape, lse.shape) == (torch.float32, torch.float32, want_o.shape, want_lse.shape)
    assert (o - want_o).abs().max() < 1e-5
    assert torch.equal(lse[1], torch.full_like(lse[1], -torch.inf))
    assert torch.equal(o[1], torch.zeros_like(o[1]))
    assert (lse - want_lse).nan_to_num(0.0).abs().max() < 1e-5


def test_a_cpu_takes_the_plain_road() -> None:
    assert choose_attend("cpu") is attend_plain


@pytest.mark.parametrize("heads", [(9, 3, 64), (6, 1, 32)])
def test_partials_of_three_shards_merge_to_the_whole(heads: tuple[int, int, int]) -> None:
    """What three KVP ranks do, one after the other: the kernel over each one's round-robin blocks, then the merge."""
    num_query, num_kv, size = heads
    generator = torch.Generator().manual_seed(1)
    keys, values = torch.randn(2, num_kv, 200, size, generator=generator).to(DEVICE)
    q = torch.randn(2, 1, num_query, size, generator=generator).to(DEVICE)
    placement, lengths = RoundRobin(num_shards=3, block=16), (197, 20)
    partials = []
    for shard in range(3):
        mine = [i for i in range(200) if placement.owner(i) == shard]
        limits = [[placement.held(n, shard)] for n in lengths]
        runs = Runs(starts=[0, 0], limits=limits)
        partials.append(attend_triton(q, keys[:, mine].contiguous(), values[:, mine].contiguous(), runs, size**-0.5))
    assert torch.isinf(partials[2][1][1]).all(), "20 tokens leave the third shard empty"
    found, lse = merge_partials(torch.stack([o for o, _ in partials]), torch.stack([lse for _, lse in partials]))
    whole = Runs(starts=[0, 0], limits=[[n] for n in lengths])
    want, want_lse = attend_plain(q, keys, values, whole, size**-0.5)
    assert (found - want).abs().max() < 1e-5
    assert (lse - want_lse).abs().max() < 1e-5


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_layout_with_the_kernel_gives_what_one_device_gives(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "cpu" and ranks > 1:
        pytest.skip("Triton's interpreter is not made for threads")
    monkeypatch.setattr("helicube.parallel.helix.choose_attend", lambda _: attend_triton)
    calls: list[str] = []
    split = attention.attend_split

    def counted(*arguments: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append("split")
        return split(*arguments, **options)

    monkeypatch.setattr(attention, "attend_split", counted)
    want, layout = expected("tiny-uneven"), HelixLayout(kvp=ranks, tpf=ranks)
    agree(ThreadPool(ranks).run(lambda c: run_layout("tiny-uneven", layout, c, want.ids, device=DEVICE)), want)
    assert len(calls) >= DECODED, "the kernel was not used"
