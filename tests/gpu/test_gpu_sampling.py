"""Sampling over the whole vocabulary on a GPU chooses the ids of the plain path on the CPU."""

from __future__ import annotations

import pytest
import torch

from helicube.engine.sampling import SamplingConfig, request_keys
from helicube.kernels.sampling import guide, gumbel, sample
from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.sampling import sample_ids
from triton_cases import DEVICE, GPU_ONLY, normal

pytestmark = GPU_ONLY

NUM_REQUESTS, N, WIDTH, VOCAB = 8, 1024, 16384, 16387


@pytest.mark.parametrize("top_p", [1.0, 0.9])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_ids_of_the_engine(temperature: float, top_p: float) -> None:
    configs = [SamplingConfig(temperature=temperature, top_p=top_p, seed=s << 20) for s in range(NUM_REQUESTS)]
    rows = 2 * NUM_REQUESTS
    state = SamplingState.empty(NUM_REQUESTS, 2, N, [(0, WIDTH)], DEVICE)
    for slot, key in enumerate(request_keys(configs).tolist()):
        state.start(slot, 0, N, guidance=3.0, temperature=temperature, top_p=top_p, key=key)
    # Each at a step of its own.
    state.steps.copy_(100 * torch.arange(NUM_REQUESTS))
    for turn in range(20):
        at = state.steps.cpu().long()
        logits = 3 * normal(rows, VOCAB, seed=turn)
        sample_ids(logits, state, max_width=WIDTH)
        host = logits.cpu()[:, :WIDTH]
        gamma = (3.0 * (N - at.double()) / N).float()
        guided = guide(host[0::2], host[1::2], gamma[:, None])
        noise = gumbel(request_keys(configs), at, 0, WIDTH)
        wanted = sample(guided, torch.full((NUM_REQUESTS,), temperature), torch.full((NUM_REQUESTS,), top_p), noise)
        assert torch.equal(state.ids.cpu()[torch.arange(NUM_REQUESTS), at], wanted)
    assert state.failed.tolist() == [0] * NUM_REQUESTS
