"""From logits to the next id: guidance, temperature, top-p.

B requests, V ids. A request's random numbers come from its own seed alone, so its result does not depend on neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.errors import InputError

__all__ = ["SamplingConfig", "guide", "gumbel", "request_keys", "sample"]

MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingConfig:
    """How one request chooses its ids."""

    # Strength of classifier-free guidance at the first step; it falls linearly to scale/n at the last. 0 is none.
    guidance_scale: float = 3.0
    # 0 takes the likeliest id; otherwise logits are divided by it.
    temperature: float = 0.0
    # Ids are drawn from the smallest set of likeliest ids whose probability reaches this.
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("guidance_scale", 0, 100), ("temperature", 0, 10), ("top_p", 0, 1)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name}={value} is out of range; choose a value from {low} to {high}")
        if self.top_p == 0:
            raise InputError("top_p=0 leaves no id to draw from; choose a value above 0, or temperature=0 for greedy")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed={self.seed} is out of range; choose a whole number from 0 to 2^63 - 1")


def guide(cond_BV: Tensor, uncond_BV: Tensor, gamma: Tensor | float) -> Tensor:
    """(1 + γ)·cond − γ·uncond in float32 (Ho and Salimans, "Classifier-Free Diffusion Guidance", 2022).

    The published model's γ at step i of n is scale · (n − i)/n.
    """
    cond, uncond = cond_BV.float(), uncond_BV.float()
    # An id masked out is −∞ in both, and must stay so.
    return torch.where(cond == -torch.inf, cond, (1 + gamma) * cond - gamma * uncond)


def request_keys(configs: Sequence[SamplingConfig]) -> Tensor:
    """One 32-bit key per request, from its seed; (B,) int64."""
    seeds = torch.tensor([c.seed for c in configs], dtype=torch.int64)
    return _mix((seeds & MASK) ^ _mix(seeds >> 32))


def gumbel(keys_B: Tensor, step_B: Tensor, first_id: int, num_ids: int) -> Tensor:
    """Gumbel noise of each request and id at its step; (B, V) float32.

    A hash of (key, step, id) in place of a state: any step can be computed on its own, on any device, inside
    a captured graph, and whatever the neighbours do.

    Args:
        keys_B: see `request_keys`.
        step_B: place of the id to be chosen in each request.
        first_id, num_ids: the ids first_id … first_id + num_ids − 1.
    """
    ids = torch.arange(first_id, first_id + num_ids, device=keys_B.device)
    row = _mix((keys_B + step_B.to(keys_B.device) * 0x9E3779B9) & MASK)[:, None]
    # 23 bits and a half, which float32 holds exactly: with one bit more, 1 would occur, and its noise is infinite.
    uniform = ((_mix((row + ids * 0x85EBCA77) & MASK) >> 9).float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def _mix(x: Tensor) -> Tensor:
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
