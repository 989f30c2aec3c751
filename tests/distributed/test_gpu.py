"""In-process ranks on one GPU: every layout of a few models against the CPU's single device."""

from __future__ import annotations

import pytest
import torch
from scenario import expected, layouts_of, run_layout

from helicube.parallel.collectives_threads import ThreadPool

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
            for logits, reference in zip(ranks[0], want.logits, strict=True):
                assert (logits - reference).abs().max() <= 1e-4
            for other in ranks[1:]:
                assert all(torch.equal(a, b) for a, b in zip(ranks[0], other, strict=True))
