"""Seven requests of different lengths for three slots, so that they join and leave, and what each gets alone."""

from __future__ import annotations

from functools import cache

import torch
from scenario import source_of

from helicube.engine.helix_runner import HelixRunner
from helicube.engine.sampling import SamplingConfig
from helicube.engine.text import TextEngine, TextRequest, TextResult
from helicube.models.loading import load_part
from helicube.models.tiny import tiny_config
from helicube.parallel.collectives import Collectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout

__all__ = ["SIZES", "alone", "prompt", "requests", "run_texts"]

# (prompt, tokens)
SIZES = ((5, 14), (1, 6), (16, 3), (37, 8), (33, 15), (4, 1), (20, 7))


def prompt(length: int) -> tuple[int, ...]:
    return tuple(torch.randint(2, 61, (length,), generator=torch.Generator().manual_seed(length)).tolist())


def requests(sampling: SamplingConfig | None = None) -> list[TextRequest]:
    chosen = sampling or SamplingConfig(guidance_scale=0)
    return [TextRequest(ids=prompt(n), num_tokens=m, sampling=chosen) for n, m in SIZES]


@cache
@torch.inference_mode()
def alone(model: str) -> list[tuple[int, ...]]:
    """Each request by itself, without a cache."""
    config = tiny_config(model)
    whole = load_part(config, source_of(model))
    found = []
    for length, count in SIZES:
        ids = list(prompt(length))
        for _ in range(count):
            ids.append(int(whole(torch.tensor([ids]))[0, -1].argmax()))
        found.append(tuple(ids[length:]))
    return found


def run_texts(
    model: str,
    layout: HelixLayout,
    collectives: Collectives,
    asked: list[TextRequest],
    *,
    slots: int = 80,
    num_slots: int = 3,
) -> list[TextResult]:
    """One rank's results; what it heard while decoding is what it gets in the end, and all room is given back."""
    options = HelixOptions(layout=layout, cache_slots=slots, block=4, overlap_parts=2)
    decoder = HelixDecoder(tiny_config(model), source_of(model), options, collectives)
    heard: list[tuple[int, int]] = []
    engine = TextEngine(HelixRunner(decoder, num_slots=num_slots, chunk=8))
    results = engine.run(asked, lambda index, token: heard.append((index, token)))
    assert decoder.cache.free_slots == slots, "all room must be given back"
    for index, result in enumerate(results):
        assert tuple(t for i, t in heard if i == index) == result.ids
    return results
