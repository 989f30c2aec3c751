"""One scenario for every layout: prompts of several lengths in chunks, then side by side token by token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from helicube.models.loading import load_part
from helicube.models.loading_sources import DictSource
from helicube.models.tiny import random_source, tiny_config, tiny_spec
from helicube.parallel.collectives import Collectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout, legal_layouts

__all__ = ["BLOCK", "DECODED", "PROMPTS", "Expected", "expected", "layouts_of", "run_layout", "source_of"]

# Tokens: below a block; and no multiple of block or chunk, and more than a round over 8 shards.
PROMPTS = (3, 37)
BLOCK, CHUNK, DECODED = 4, 16, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What one device gives, computed without a cache."""

    # Per prompt, the prompt and the greedy continuation.
    ids: list[list[int]]
    # Per prompt, logits after each token but the last, (L, V).
    logits: list[Tensor]


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
    """Logits (L, V) per prompt: the prompts in chunks one after the other, then all of them token by token."""
    config = tiny_config(model)
    options = HelixOptions(
        layout=layout, cache_slots=192, block=BLOCK, overlap_parts=overlap_parts, dtype=dtype, device=device
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
    for step in range(DECODED - 1):
        new = torch.tensor([[row[len(row) - DECODED + step]] for row in given], device=device)
        for found, row_logits in zip(logits, decoder.step(sequences, new), strict=True):
            found.append(row_logits[None])
    return [torch.cat(found).cpu() for found in logits]
