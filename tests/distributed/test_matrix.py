"""Every layout of every kind of model gives what one device gives, with ranks inside this process."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scenario import DECODED, TOLERANCE, agree, expected, layouts_of, run_layout

from helicube.models.llm_config import LlmConfig
from helicube.models.loading import load_part
from helicube.models.tiny import TINY, random_source, tiny_config
from helicube.nn.part import ModelPart
from helicube.parallel.collectives_threads import ThreadPool
from helicube.parallel.grid import part_of
from helicube.specs.layout import HelixLayout

# Kinds beside the eight of the matrix need fewer sizes, and 9 query heads other ones.
SIZES = {"tiny-uneven": (2, 3, 4, 6, 8), "tiny-mixtral": (4,), "tiny-deepseek-v2": (4,)}


@pytest.mark.parametrize(("model", "size"), [(m, n) for m in TINY for n in SIZES.get(m, (1, 2, 4, 8))])
def test_every_layout_gives_what_one_device_gives(model: str, size: int) -> None:
    want = expected(model)
    layouts = layouts_of(model, size)
    assert layouts
    for layout in layouts:
        per_rank = ThreadPool(size).run(lambda c, layout=layout: run_layout(model, layout, c, want.ids))  # type: ignore[misc]
        agree(per_rank, want)


@pytest.mark.parametrize("model", ["tiny-gqa", "tiny-mla-moe"])
def test_overlap_changes_no_bit(model: str) -> None:
    want = expected(model)
    layout = HelixLayout(kvp=4, tpf=4)
    parts = [
        ThreadPool(4).run(lambda c, n=n: run_layout(model, layout, c, want.ids, overlap_parts=n))[0]  # type: ignore[misc]
        for n in (1, 2, 3, 16)
    ]
    for other in parts[1:]:
        assert all(torch.equal(a, b) for a, b in zip(parts[0], other, strict=True))


@pytest.mark.parametrize("model", ["tiny-gqa", "tiny-mqa", "tiny-mla"])
def test_bfloat16_errs_at_each_token_by_no_more_than_rounding(model: str) -> None:
    """Rounding to 8 bits moves values of order one by up to 2^-9: results and weights, at some ten places per layer.

    Were the errors of these forty places of two layers to add up on one side, that were 40 · 2^-9 = 0.08: the bound of
    the error's root mean square over the vocabulary, at every token. Ids may differ only where the best two logits are
    nearer than 4 times that: the difference of two errors, each of which is hardly above 3 times their mean.
    """
    want, bound = expected(model), 40 * 2**-9
    for layout in [HelixLayout(), *layouts_of(model, 4)]:
        run = ThreadPool(layout.num_ranks).run(
            lambda c, layout=layout: run_layout(model, layout, c, want.ids, dtype=torch.bfloat16)  # type: ignore[misc]
        )
        num_clear = 0
        for logits, reference in zip(run[0], want.logits, strict=True):
            error = (logits - reference).square().mean(dim=-1).sqrt()
            assert error.max() < bound, layout
            assert error.min() > 0, "nothing was rounded"
            best = reference.topk(2).values
            clear = best[:, 0] - best[:, 1] > 4 * bound
            num_clear += int(clear.sum())
            assert torch.equal(logits.argmax(-1)[clear], reference.argmax(-1)[clear]), layout
        assert num_clear >= 10, "nothing was compared"


def test_bfloat16_with_experts_errs_no_more_on_a_pool_than_on_one_device() -> None:
    """A token whose router rounds to another expert is another token, on one device too: most tokens are compared.

    A pool rounds partial sums and outputs as well: twice the error of one device is allowed.
    """
    want = expected("tiny-gqa-moe")

    def errors(layout: HelixLayout) -> torch.Tensor:
        run = ThreadPool(layout.num_ranks).run(
            lambda c: run_layout("tiny-gqa-moe", layout, c, want.ids, dtype=torch.bfloat16)
        )
        return torch.cat([(a - b).square().mean(-1).sqrt() for a, b in zip(run[0], want.logits, strict=True)])

    alone = errors(HelixLayout()).median()
    assert 0 < alone < 20 * 2**-9
    for layout in layouts_of("tiny-gqa-moe", 4):
        assert errors(layout).median() < 2 * alone


def test_a_wrong_order_of_the_output_projection_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trap of the design: kvp-major slices of W_O. If this passed, the matrix would prove nothing."""

    def kvp_major(config: LlmConfig, layout: HelixLayout, rank: int) -> ModelPart:
        other = (rank % layout.kvp) * layout.tpa + rank // layout.kvp
        return replace(part_of(config, layout, rank), output_heads=part_of(config, layout, other).output_heads)

    monkeypatch.setattr("helicube.parallel.helix.part_of", kvp_major)
    want = expected("tiny-gqa")
    found = ThreadPool(4).run(lambda c: run_layout("tiny-gqa", HelixLayout(kvp=2, tpa=2, tpf=4), c, want.ids))[0]
    assert (found[1] - want.logits[1]).abs().max() > 0.1


def test_the_reference_itself_has_no_near_ties() -> None:
    """Ids can only be asked to be identical where the best two logits are further apart than the tolerance."""
    for model in TINY:
        for logits in expected(model).logits:
            best = logits[-DECODED:].topk(2).values
            assert (best[:, 0] - best[:, 1]).min() > TOLERANCE


def test_other_weights_give_other_logits() -> None:
    config = tiny_config("tiny-gqa")
    other = load_part(config, random_source(config, seed=1))
    want = expected("tiny-gqa")
    with torch.inference_mode():
        assert (other(torch.tensor([want.ids[1]]))[0, :-1] - want.logits[1]).abs().max() > 0.5
