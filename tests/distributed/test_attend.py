"""Flash-decoding over the runs of a shared cache equals its plain twin. Without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")

from scenario import expected, run_layout  # noqa: E402

from helicube.parallel.attend import Runs, attend_plain, attend_triton, choose_attend  # noqa: E402
from helicube.parallel.collectives_threads import ThreadPool  # noqa: E402
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


@pytest.mark.parametrize("model", ["tiny-uneven", "tiny-mla"])
def test_a_layout_with_the_kernel_gives_what_one_device_gives(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helicube.parallel.helix.choose_attend", lambda _: attend_triton)
    want = expected(model)
    layout = HelixLayout(kvp=3, tpf=3)
    # One rank at a time where Triton is interpreted: the interpreter is not made for threads.
    found = ThreadPool(1).run(lambda c: run_layout(model, HelixLayout(), c, want.ids, device=DEVICE))[0]
    if DEVICE == "cuda":
        found = ThreadPool(3).run(lambda c: run_layout(model, layout, c, want.ids, device=DEVICE))[0]
    for logits, reference in zip(found, want.logits, strict=True):
        assert (logits - reference).abs().max() < 1e-4
