"""In-process ranks on one GPU: every layout of a few models against the CPU's single device; NCCL with one rank."""

from __future__ import annotations

import pytest
import torch
from scenario import agree, check_alone, expected, layouts_of, run_layout

from helicube.parallel.collectives_threads import ThreadPool
from helicube.pipelines.bench_helix import BenchOptions, bench_helix

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("model", ["tiny-uneven", "tiny-gqa-moe", "tiny-mla-moe"])
def test_ranks_on_one_gpu_give_what_a_cpu_gives(model: str) -> None:
    want = expected(model)
    # TF32 would round products to 10 bits.
    assert not torch.backends.cuda.matmul.allow_tf32
    for size in (1, 2, 4):
        for layout in layouts_of(model, size):
            ranks = ThreadPool(size).run(
                lambda c, layout=layout: run_layout(model, layout, c, want.ids, device="cuda")  # type: ignore[misc]
            )
            agree(ranks, want)


def test_nccl_with_one_rank() -> None:
    check_alone("nccl", "cuda")


def test_layouts_are_timed_on_one_gpu() -> None:
    options = BenchOptions(model="tiny-gqa", context=64, batch=2, ranks=(1, 2), steps=2, hopb=2, in_process=True)
    rows = bench_helix(options)
    assert {row.device for row in rows} == {"cuda:0"}
    assert all(row.same_ids and row.ttl_s > 0 for row in rows)
