"""Guidance, temperature, top-p and seeds."""

from __future__ import annotations

import pytest
import torch

from helicube.engine.sampling import SamplingConfig, request_keys
from helicube.errors import InputError
from helicube.kernels.sampling import draw, guide, gumbel, sample, scores

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))


def at(step: int) -> torch.Tensor:
    return torch.tensor([step])


def draws(count: int, temperature: float = 1.0, top_p: float = 1.0) -> torch.Tensor:
    """Frequencies of the four ids over many seeds."""
    keys = request_keys([SamplingConfig(seed=s) for s in range(count)])
    full = torch.ones(count)
    ids = sample(LOGITS.expand(count, -1), full * temperature, full * top_p, gumbel(keys, at(7), 0, 4))
    return torch.bincount(ids, minlength=4) / count


def test_draws_follow_the_softmax() -> None:
    # 20,000 draws: three standard deviations are 0.011 at most.
    assert torch.allclose(draws(20_000), LOGITS.exp()[0], atol=0.011)


def test_temperature_sharpens() -> None:
    expected = (LOGITS / 0.5).softmax(-1)[0]
    assert torch.allclose(draws(20_000, temperature=0.5), expected, atol=0.011)


def test_top_p_of_1_keeps_ids_that_rounding_gives_no_share() -> None:
    logits, noise = torch.tensor([[30.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 31.0]])
    assert float(logits.softmax(dim=-1)[0, 0]) == 1
    for top_p, want in ((1.0, 2), (0.99, 0)):
        assert sample(logits, torch.ones(1), torch.tensor([top_p]), noise).tolist() == [want]


@pytest.mark.parametrize(("top_p", "kept"), [(0.4, 1), (0.5, 1), (0.51, 2), (0.8, 2), (0.81, 3), (1.0, 4)])
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p: float, kept: int) -> None:
    frequency = draws(4000, top_p=top_p)
    assert (frequency > 0).tolist() == [i < kept for i in range(4)]
    expected = LOGITS.exp()[0, :kept] / LOGITS.exp()[0, :kept].sum()
    assert torch.allclose(frequency[:kept], expected, atol=0.03)


def test_zero_temperature_is_argmax_whatever_the_noise() -> None:
    noise = torch.randn(1, 4, generator=torch.Generator().manual_seed(0)) * 100
    assert sample(LOGITS, torch.zeros(1), torch.ones(1), noise).item() == 0


def test_noise_depends_on_seed_step_and_id_and_on_nothing_else() -> None:
    configs = [SamplingConfig(seed=s) for s in (0, 1, 2**32, 2**62)]
    keys = request_keys(configs)
    assert len(set(keys.tolist())) == 4
    together, alone = gumbel(keys, at(3), 0, 1000), gumbel(keys[2:3], at(3), 0, 1000)
    assert torch.equal(together[2:3], alone)
    assert torch.equal(gumbel(keys, at(3), 200, 500), together[:, 200:700])
    flat = torch.cat([gumbel(keys, at(step), 0, 1000) for step in range(50)]).flatten()
    # Gumbel: mean 0.5772, variance π²/6; 200,000 values.
    assert flat.mean() == pytest.approx(0.5772, abs=0.01)
    assert flat.var() == pytest.approx(1.6449, abs=0.04)
    assert len(torch.unique(flat)) > 0.98 * len(flat)


def test_the_largest_noise_is_finite() -> None:
    # For this key and step, the hash of this id has all its upper bits set.
    noise = gumbel(request_keys([SamplingConfig(seed=0)]), at(0), 13_293_621, 1)
    assert 15 < float(noise) < 17


def test_scores_are_guided_masked_and_sound() -> None:
    logits = torch.randn(6, 5, generator=torch.Generator().manual_seed(3))
    # Of the first two requests, one id that may not stand is not finite, and one that may; all of the third are fine.
    logits[0, 0], logits[2, 2] = torch.nan, torch.inf
    gamma, ranges = torch.tensor([0.5, 2.0, 0.0]), torch.tensor([[11, 13], [10, 15], [14, 15]])
    found, sound = scores(logits, gamma, ranges, 10)
    assert sound.tolist() == [True, False, True]
    for row, (low, high) in enumerate([(1, 3), (0, 5), (4, 5)]):
        want = guide(logits[2 * row], logits[2 * row + 1], float(gamma[row]))
        assert torch.equal(found[row, low:high], want[low:high])
        assert (found[row, :low] == -torch.inf).all()
        assert (found[row, high:] == -torch.inf).all()
    # One NaN among numbers, wherever it stands, and even beside +∞.
    for at in range(5):
        for other in (0.0, torch.inf, -torch.inf):
            bad = torch.full((1, 5), other)
            bad[0, at] = torch.nan
            assert not scores(bad, None)[1]
    # One row per request; nowhere a number.
    assert not scores(torch.full((1, 4), -torch.inf), None)[1]
    assert torch.equal(scores(logits[1:2].double(), None)[0], logits[1:2])


def test_a_draw_is_the_argmax_with_the_noise_of_the_ids_it_stands_for() -> None:
    rows = torch.randn(300, 7, generator=torch.Generator().manual_seed(4))
    keys = request_keys([SamplingConfig(seed=s) for s in range(300)])
    steps, warm = torch.arange(300), torch.full((300,), 0.7)
    ids = draw(rows, keys_A=keys, steps_A=steps, temperature_A=warm, top_p_A=torch.ones(300), first_id=40)
    assert torch.equal(ids, 40 + (rows / warm[:, None] + gumbel(keys, steps, 40, 7)).argmax(dim=-1))
    assert len(set(ids.tolist())) == 7
    cold = draw(rows, keys_A=keys, steps_A=steps, temperature_A=0 * warm, top_p_A=torch.ones(300), first_id=40)
    assert torch.equal(cold, 40 + rows.argmax(dim=-1))


def test_guidance_zero_is_the_conditioned_row_and_masked_ids_stay_masked() -> None:
    cond, uncond = torch.randn(2, 5), torch.randn(2, 5)
    assert torch.equal(guide(cond, uncond, 0.0), cond)
    assert torch.allclose(guide(cond, uncond, 2.0), 3 * cond - 2 * uncond)
    cond[:, 3] = uncond[:, 3] = -torch.inf
    assert (guide(cond, uncond, 2.0)[:, 3] == -torch.inf).all()


@pytest.mark.parametrize(
    "wrong", [{"guidance_scale": -1}, {"temperature": -0.1}, {"temperature": float("nan")}, {"top_p": 0},
              {"top_p": 1.1}, {"seed": -1}, {"seed": 2**63}]
)  # fmt: skip
def test_values_out_of_range_name_themselves(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        SamplingConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("asked", "used"), [(1e-40, 0.0), (5e-324, 0.0), (2.0**-126, 2.0**-126), (0.5, 0.5)])
def test_temperatures_that_float32_cannot_hold_are_zero(asked: float, used: float) -> None:
    assert SamplingConfig(temperature=asked).temperature == used
