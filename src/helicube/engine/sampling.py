"""From logits to the next id: guidance, temperature, top-p.

B requests, V ids. A request's random numbers come from its own seed alone, so its result does not depend on neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.errors import InputError

__all__ = ["SamplingConfig", "guidance_weight", "guide", "sample", "uniforms"]


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


def guidance_weight(scale: float, step: int, num_steps: int) -> float:
    """γ of step i of n: scale · (n − i)/n (specification of the published model)."""
    return scale * (num_steps - step) / num_steps


def guide(cond_BV: Tensor, uncond_BV: Tensor, gamma: Tensor | float) -> Tensor:
    """(1 + γ)·cond − γ·uncond in float32 (Ho and Salimans, "Classifier-Free Diffusion Guidance", 2022)."""
    cond, uncond = cond_BV.float(), uncond_BV.float()
    return (1 + gamma) * cond - gamma * uncond


def uniforms(configs: Sequence[SamplingConfig], num_steps: int) -> Tensor:
    """One number in [0, 1) per request and step; (B, n) float32, drawn on the CPU so that devices agree."""
    rows = [torch.rand(num_steps, generator=torch.Generator().manual_seed(c.seed)) for c in configs]
    return torch.stack(rows)


def sample(logits_BV: Tensor, temperature_B: Tensor, top_p_B: Tensor, uniform_B: Tensor) -> Tensor:
    """Ids (B,), by inverting the distribution at the given uniform numbers.

    Args:
        logits_BV: float32.
        temperature_B: 0 for the likeliest id.
        top_p_B: share of probability that the kept ids reach.
        uniform_B: in [0, 1).
    """
    greedy = logits_BV.argmax(dim=-1)
    hot = temperature_B > 0
    scaled = logits_BV / torch.where(hot, temperature_B, 1.0)[:, None]
    ordered, order = scaled.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    total = ordered.cumsum(dim=-1)
    # An id stays if the likelier ones have not reached top_p yet, so the first always stays.
    kept = torch.where(total - ordered < top_p_B[:, None], ordered, 0.0).cumsum(dim=-1)
    place = (kept <= uniform_B[:, None] * kept[:, -1:]).sum(dim=-1, keepdim=True)
    drawn = order.gather(-1, place.clamp(max=logits_BV.shape[-1] - 1))[:, 0]
    return torch.where(hot, drawn, greedy)
