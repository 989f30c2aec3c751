"""How a request chooses its ids; kernels.sampling does the choosing.

B requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.errors import InputError
from helicube.kernels.sampling import mix

__all__ = ["SamplingConfig", "request_keys"]


# What float32 holds only as a subnormal number, which some kernels flush to zero and others divide by, counts as 0.
LEAST_TEMPERATURE = float(torch.finfo(torch.float32).tiny)


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
        if self.temperature < LEAST_TEMPERATURE:
            object.__setattr__(self, "temperature", 0.0)


def request_keys(configs: Sequence[SamplingConfig]) -> Tensor:
    """One 32-bit key per request, from its seed; (B,) int64."""
    seeds = torch.tensor([c.seed for c in configs], dtype=torch.int64)
    return mix((seeds & 0xFFFFFFFF) ^ mix(seeds >> 32))
