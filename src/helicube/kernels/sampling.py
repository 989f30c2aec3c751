"""From logits to the next id in PyTorch's operators: guidance, temperature, top-p, and a step's book-keeping.

What the plain path runs, and the twin of kernels.triton.sampling and of the CPU kernels' sampler.

A requests, C rows of logits each (1, or 2 with guidance: conditioned, then unconditioned), R = A·C rows, V ids. A
request's random numbers come from its own key alone, so its result does not depend on neighbours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from helicube.kernels.sampling_state import SamplingState

__all__ = ["advance", "draw", "guide", "gumbel", "mix", "sample", "scores"]

MASK = 0xFFFFFFFF


def guide(cond_BV: Tensor, uncond_BV: Tensor, gamma: Tensor | float) -> Tensor:
    """(1 + γ)·cond − γ·uncond in float32 (Ho and Salimans, "Classifier-Free Diffusion Guidance", 2022).

    The published model's γ at step i of n is scale · (n − i)/n.
    """
    cond, uncond = cond_BV.float(), uncond_BV.float()
    # An id masked out is −∞ in both, and must stay so.
    return torch.where(cond == -torch.inf, cond, (1 + gamma) * cond - gamma * uncond)


def scores(
    logits_RV: Tensor, gamma_A: Tensor | None, ranges_A2: Tensor | None = None, first_id: int = 0
) -> tuple[Tensor, Tensor]:
    """What ids are chosen by: (A, V) float32, −∞ where an id may not stand; and whether each row is finite, (A,).

    Args:
        logits_RV: of the ids from `first_id` on.
        gamma_A: weight of guidance, see `guide`; None where a request has one row.
        ranges_A2: first id that may stand in each request, and the one after the last; None allows all.
    """
    logits = logits_RV.float()
    if gamma_A is not None:
        logits = guide(logits[0::2], logits[1::2], gamma_A[:, None])
    if ranges_A2 is not None:
        ids = torch.arange(first_id, first_id + logits.shape[1], device=logits.device)
        logits = logits.masked_fill((ids < ranges_A2[:, :1]) | (ids >= ranges_A2[:, 1:]), -torch.inf)
    # An id that may not stand here is −∞ by right; a row is sound if the best of the others is finite.
    # A maximum with NaN in it is NaN.
    return logits, logits.amax(dim=-1).isfinite()


def draw(
    scores_AV: Tensor, *, keys_A: Tensor, steps_A: Tensor, temperature_A: Tensor, top_p_A: Tensor, first_id: int = 0
) -> Tensor:
    """One id per request, (A,) int64; see `sample` and `gumbel`."""
    noise = gumbel(keys_A, steps_A, first_id, scores_AV.shape[1])
    return sample(scores_AV, temperature_A, top_p_A, noise) + first_id


def gumbel(keys_B: Tensor, step_B: Tensor, first_id: int, num_ids: int) -> Tensor:
    """Gumbel noise of each request and id at its step; (B, V) float32.

    A hash of (key, step, id) in place of a state: any step can be computed on its own, on any device, inside
    a captured graph, and whatever the neighbours do.

    Args:
        keys_B: int64, 32-bit hashes of the requests' seeds.
        step_B: place of the id to be chosen in each request.
        first_id, num_ids: the ids first_id … first_id + num_ids − 1.
    """
    ids = torch.arange(first_id, first_id + num_ids, device=keys_B.device)
    row = mix((keys_B + step_B.to(keys_B.device) * 0x9E3779B9) & MASK)[:, None]
    # 23 bits and a half, which float32 holds exactly: with one bit more, 1 would occur, and its noise is infinite.
    uniform = ((mix((row + ids * 0x85EBCA77) & MASK) >> 9).float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def mix(x: Tensor) -> Tensor:
    """A 32-bit hash with low bias, in int64 lanes (constants: "lowbias32" of the hash-prospector survey)."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & MASK
    return x ^ (x >> 16)


def sample(logits_BV: Tensor, temperature_B: Tensor, top_p_B: Tensor, noise_BV: Tensor) -> Tensor:
    """Ids (B,): the largest of logits/temperature plus Gumbel noise, which draws from the softmax (Gumbel, 1954).

    Unlike inverting the distribution, this hardly ever turns rounding in the logits into another id: it takes two
    scores that are equal to within the rounding.

    Args:
        logits_BV: float32.
        temperature_B: 0 for the likeliest id.
        top_p_B: ids stay until the likelier ones reach this share of the probability; 1 keeps all.
        noise_BV: see `gumbel`.
    """
    hot = (temperature_B > 0)[:, None]
    scaled = logits_BV / torch.where(hot[:, 0], temperature_B, 1.0)[:, None]
    kept = _nucleus(scaled, top_p_B)
    return torch.where(kept, scaled + torch.where(hot, noise_BV, 0.0), -torch.inf).argmax(dim=-1)


def _nucleus(logits_BV: Tensor, top_p_B: Tensor) -> Tensor:
    """Which ids stay (Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020); (B, V) bool."""
    ordered, order = logits_BV.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    # The likelier ids have not reached top_p yet, so the first always stays.
    # Rounded sums reach 1 before the last id does, and 1 keeps all.
    kept = (ordered.cumsum(dim=-1) - ordered < top_p_B[:, None]) | (top_p_B >= 1)[:, None]
    return torch.empty_like(kept).scatter_(-1, order, kept)


def advance(state: SamplingState, logits_RV: Tensor) -> None:
    """Choose one id per slot, and book it: a step's end on buffers that a graph may hold. Reads nothing back.

    Args:
        logits_RV: (A·C, V) of all ids, the rows of a slot together.
    """
    copies = len(state.tokens) // len(state.steps)
    under_way = (state.steps >= 0) & (state.steps < state.num_tokens)
    steps = state.steps.clamp_min(0)
    ranges = state.ranges[steps.clamp_max(len(state.ranges) - 1)]
    weighed, sound = scores(logits_RV, _gamma(state, steps) if copies == 2 else None, ranges)
    chosen = draw(
        weighed, keys_A=state.keys, steps_A=steps.long(), temperature_A=state.temperature, top_p_A=state.top_p
    )

    place = steps.long().clamp_max(state.ids.shape[1] - 1)[:, None]
    given = state.forced.gather(1, place)[:, 0]
    chosen = torch.where(given >= 0, given, chosen)
    # Only now, since a slot may be left alone: every write is a choice between the old value and the new.
    state.ids.scatter_(1, place, torch.where(under_way, chosen, state.ids.gather(1, place)[:, 0])[:, None])
    first_failure = under_way & ~sound & (state.failed == 0)
    state.failed.copy_(torch.where(first_failure, state.steps + 1, state.failed))
    done = state.steps + 1 >= state.num_tokens
    state.steps.add_(under_way)
    rows = (t.repeat_interleave(copies) for t in (under_way, done, chosen))
    _book_rows(state, *rows)


def _gamma(state: SamplingState, steps: Tensor) -> Tensor:
    """Weight of each slot's guidance, (A,) float32."""
    total = state.num_tokens.clamp_min(1)
    # In double precision, as on the host.
    return (state.guidance * (total - steps) / total).float()


def _book_rows(state: SamplingState, under_way: Tensor, done: Tensor, chosen: Tensor) -> None:
    state.tokens.copy_(torch.where(under_way, chosen, state.tokens))
    for field, free in ((state.positions, -1), (state.lengths, 0)):
        field.copy_(torch.where(under_way, torch.where(done, free, field + 1), field))
