"""One scenario for every layout: prompts of several lengths in chunks, then side by side token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
import torch.distributed as dist
from torch import Tensor

from helicube.models.loading import load_part
from helicube.models.loading_sources import DictSource
from helicube.models.tiny import random_source, tiny_config, tiny_spec
from helicube.parallel.collectives import Collectives
from helicube.parallel.collectives_torch import TorchCollectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout, legal_layouts

__all__ = [
    "BLOCK",
    "DECODED",
    "PROMPTS",
    "TOLERANCE",
    "Expected",
    "agree",
    "check_alone",
    "expected",
    "layouts_of",
    "run_layout",
    "source_of",
]

# Tokens: below a block; no multiple of block or chunk, and more than a round over 8 shards; and in between.
PROMPTS = (3, 37, 9)
BLOCK, CHUNK, DECODED = 4, 16, 4
# Which prompts are decoded side by side, step by step: batches of three, one and two. Each gets DECODED − 1 steps.
BATCHES = ((0, 1, 2), (1,), (0, 2), (0, 1, 2))


# Logits are of order one in float32; a hundred sums in another order give 1e-5, and 1e-4 is what is promised.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What one device gives, computed without a cache."""

    # Per prompt, the prompt and the greedy continuation.
    ids: list[list[int]]
    # Per prompt, logits after each token but the last, (L, V).
    logits: list[Tensor]


def agree(per_rank: Sequence[Sequence[Tensor]], want: Expected) -> None:
    """Logits and greedy ids are those of one device, and the same bits on all ranks, which choose ids by themselves."""
    for logits, reference, ids in zip(per_rank[0], want.logits, want.ids, strict=True):
        assert (logits - reference).abs().max() <= TOLERANCE
        assert logits[-DECODED:].argmax(-1).tolist() == ids[-DECODED:]
    for other in per_rank[1:]:
        assert all(torch.equal(a, b) for a, b in zip(per_rank[0], other, strict=True))


@cache
def source_of(model: str) -> DictSource:
    """The weights, drawn once."""
    return random_source(tiny_config(model))


@cache
@torch.inference_mode()
def expected(model: str) -> Expected:
    """The uncached model on each prompt alone."""
    config = tiny_config(model)
    whole = load_part(config, source_of(model))
    generator = torch.Generator().manual_seed(2)
    ids = [torch.randint(2, config.vocab_size, (n,), generator=generator).tolist() for n in PROMPTS]
    for row in ids:
        for _ in range(DECODED):
            row.append(int(whole(torch.tensor([row]))[0, -1].argmax()))
    return Expected(ids=ids, logits=[whole(torch.tensor([row]))[0, :-1] for row in ids])


def layouts_of(model: str, num_ranks: int) -> list[HelixLayout]:
    """All that the model allows."""
    return legal_layouts(tiny_spec(model), num_ranks)


def run_layout(
    model: str,
    layout: HelixLayout,
    collectives: Collectives,
    given: list[list[int]],
    *,
    dtype: torch.dtype = torch.float32,
    overlap_parts: int = 1,
    device: str = "cpu",
) -> list[Tensor]:
    """Logits (L, V) per prompt: the prompts in chunks one after the other, then token by token in changing batches."""
    config = tiny_config(model)
    options = HelixOptions(
        layout=layout, cache_slots=96, block=BLOCK, overlap_parts=overlap_parts, dtype=dtype, device=device
    )
    decoder = HelixDecoder(config, source_of(model), options, collectives)
    sequences = [s for row in given if (s := decoder.cache.allocate(len(row))) is not None]
    assert len(sequences) == len(given)
    logits: list[list[Tensor]] = [[] for _ in given]
    for row, sequence, found in zip(given, sequences, logits, strict=True):
        prompt = len(row) - DECODED
        for start in range(0, prompt, CHUNK):
            piece = torch.tensor([row[start : min(start + CHUNK, prompt)]], device=device)
            found.append(decoder.step([sequence], piece, every=True)[0])
    for batch in BATCHES:
        new = torch.tensor([[given[i][sequences[i].length]] for i in batch], device=device)
        for i, row_logits in zip(batch, decoder.step([sequences[i] for i in batch], new), strict=True):
            logits[i].append(row_logits[None])
    return [torch.cat(found).cpu() for found in logits]


def check_alone(backend: str, device: str) -> None:
    """A pool of one rank whose collectives go through a backend of torch.distributed all the same."""
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=0, world_size=1)
    try:
        collectives = TorchCollectives([(0,)], store, 60.0)
        x = torch.arange(6.0, device=device).view(1, 6)
        assert torch.equal(collectives.all_reduce(x.clone(), (0,)), x)
        assert torch.equal(collectives.all_gather(x, (0,)), x[None])
        assert torch.equal(collectives.all_to_all(x, (0,)).wait(), x)
        assert collectives.traffic.total == 0
        assert collectives.traffic.calls == {"all_reduce": 1, "all_gather": 1, "all_to_all": 1}
        want = expected("tiny-gqa-moe")
        found = run_layout("tiny-gqa-moe", HelixLayout(), collectives, want.ids, device=device)
        agree([found], want)
        assert collectives.traffic.calls["all_reduce"] > 1, "the decoder did not use them"
    finally:
        dist.destroy_process_group()
