"""The kernel chooses the ids that kernels.sampling chooses, and books a step as the engine would."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from helicube.engine.sampling import SamplingConfig, request_keys
from helicube.kernels.sampling import advance, draw, gumbel, scores
from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.sampling import sample_ids
from triton_cases import DEVICE, normal

N = 6


def state_of(
    configs: Sequence[SamplingConfig], steps: list[int], ranges: list[tuple[int, int]], copies: int = 2
) -> SamplingState:
    state = SamplingState.empty(len(configs), copies, N, ranges, DEVICE)
    for slot, (config, key) in enumerate(zip(configs, request_keys(configs).tolist(), strict=True)):
        state.start(
            slot,
            first_id=0,
            num_tokens=N,
            guidance=config.guidance_scale,
            temperature=config.temperature,
            top_p=config.top_p,
            key=key,
        )
    state.steps.copy_(torch.tensor(steps))
    rows = torch.tensor(steps, dtype=torch.int32).repeat_interleave(copies)
    state.positions.copy_(rows)
    state.lengths.copy_(rows + 1)
    return state


def assert_same(got: SamplingState, wanted: SamplingState) -> None:
    for f in dataclasses.fields(got):
        assert torch.equal(getattr(got, f.name), getattr(wanted, f.name)), f.name


def by_engine(logits_RV: Tensor, configs: Sequence[SamplingConfig], steps: list[int], low: int, high: int) -> Tensor:
    """What Engine does with the logits of ids low … high − 1."""
    gamma = torch.tensor([c.guidance_scale * (N - s) / N for c, s in zip(configs, steps, strict=True)], device=DEVICE)
    weighed, sound = scores(logits_RV[:, low:high], gamma)
    assert sound.all()
    return draw(
        weighed,
        keys_A=request_keys(configs).to(DEVICE),
        steps_A=torch.tensor(steps),
        temperature_A=torch.tensor([float(c.temperature) for c in configs], device=DEVICE),
        top_p_A=torch.tensor([float(c.top_p) for c in configs], device=DEVICE),
        first_id=low,
    )


CONFIGS = (
    SamplingConfig(guidance_scale=3.0),
    SamplingConfig(guidance_scale=0.0, temperature=1.0, seed=2**40 + 7),
    SamplingConfig(guidance_scale=1.3, temperature=0.7, top_p=0.5, seed=3),
    SamplingConfig(guidance_scale=2.0, temperature=1.3, top_p=0.9, seed=4),
)


@pytest.mark.parametrize("round_", range(4))
def test_ids_are_those_of_the_engine(round_: int) -> None:
    steps = [0, 1, 4, 5]
    logits = 2 * normal(8, 300, seed=round_)
    state, twin = (state_of(CONFIGS, steps, [(5, 280)] * N) for _ in range(2))
    sample_ids(logits, state, max_width=275)
    advance(twin, logits)
    assert_same(state, twin)
    chosen = state.ids[torch.arange(4), torch.tensor(steps)]
    assert torch.equal(chosen, by_engine(logits, CONFIGS, steps, 5, 280))


def test_noise_is_that_of_the_engine_bit_for_bit() -> None:
    # Equal logits: the largest noise decides, so that 384 numbers have to be right, not one.
    state = state_of([SamplingConfig(temperature=1.0, seed=s) for s in range(6)], [0, 1, 2, 3, 4, 5], [(0, 384)])
    sample_ids(torch.zeros(12, 384, device=DEVICE), state, max_width=384)
    noise = gumbel(state.keys, torch.arange(6), 0, 384)
    assert torch.equal(state.ids[torch.arange(6), torch.arange(6)], noise.argmax(dim=1))


def test_booking_of_steps_given_ids_and_the_end() -> None:
    configs = [SamplingConfig()] * 5
    # In use, given, last, done, never started.
    state = state_of(configs, [0, 2, 5, 6, -1], [(0, 8), (0, 8), (3, 8)])
    state.forced[1, 2] = 4
    before = {f.name: getattr(state, f.name).clone() for f in dataclasses.fields(state)}
    logits = torch.zeros(10, 8, device=DEVICE)
    logits[0::2, 1] = 1.0
    sample_ids(logits, state, max_width=8)
    assert state.steps.tolist() == [1, 3, 6, 6, -1]
    # At step 5 the last range serves: id 1 may not stand there, and the first of equals is chosen.
    assert [int(state.ids[0, 0]), int(state.ids[1, 2]), int(state.ids[2, 5])] == [1, 4, 3]
    assert state.tokens.tolist() == [1, 1, 4, 4, 3, 3, 0, 0, 0, 0]
    assert state.positions.tolist()[:6] == [1, 1, 3, 3, -1, -1]
    assert state.lengths.tolist()[:6] == [2, 2, 4, 4, 0, 0]
    assert torch.equal(state.positions[6:], before["positions"][6:])
    assert torch.equal(state.ids[3:], before["ids"][3:])
    assert state.failed.tolist() == [0] * 5


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_logits_that_are_not_finite_are_told_and_stay_alone(poison: float) -> None:
    state, clean = (
        state_of([SamplingConfig(temperature=1.0, seed=s) for s in range(3)], [2, 2, 2], [(0, 9)]) for _ in "ab"
    )
    logits = normal(6, 9)
    # An id masked out in both rows is no fault.
    logits[:, 4] = -torch.inf
    sample_ids(logits, clean, max_width=9)
    logits[2, 3] = poison
    for _ in range(2):
        sample_ids(logits, state, max_width=9)
    assert clean.failed.tolist() == [0, 0, 0]
    # The first step at which it happened.
    assert state.failed.tolist() == [0, 3, 0]
    assert torch.equal(state.ids[[0, 2], 2], clean.ids[[0, 2], 2])
    assert 0 <= int(state.ids[1, 2]) < 9


def test_one_row_per_request() -> None:
    configs = [SamplingConfig(guidance_scale=0, temperature=0.8, top_p=0.7, seed=s) for s in range(3)]
    state, twin = (state_of(configs, [0, 3, 5], [(2, 40)], copies=1) for _ in range(2))
    logits = normal(3, 40, seed=9)
    sample_ids(logits, state, max_width=38)
    advance(twin, logits)
    assert_same(state, twin)


def test_slots_start_and_stop() -> None:
    state = SamplingState.empty(3, 2, N, [(0, 8)], DEVICE)
    logits = torch.zeros(6, 8, device=DEVICE)
    logits[:, 5] = 1.0
    sample_ids(logits, state, max_width=8)
    assert (state.ids == -1).all()
    state.start(1, first_id=7, num_tokens=2, forced=torch.tensor([-1, 3]))
    assert state.tokens.tolist() == [0, 0, 7, 7, 0, 0]
    for _ in range(3):
        sample_ids(logits, state, max_width=8)
    assert state.ids[1].tolist() == [5, 3, -1, -1, -1, -1]
    assert state.positions.tolist() == [-1] * 6
    # A slot keeps nothing of the request before.
    state.start(1, first_id=7, num_tokens=3)
    sample_ids(logits, state, max_width=8)
    state.stop(1)
    sample_ids(logits, state, max_width=8)
    assert state.ids[1].tolist() == [5, -1, -1, -1, -1, -1]
    assert (state.positions.tolist(), state.lengths.tolist()) == ([-1] * 6, [0] * 6)
