"""How ids are chosen where a request does not say."""

from __future__ import annotations

from dataclasses import replace

from helicube.engine.sampling import SamplingConfig

__all__ = ["sampling_of", "usual_sampling"]


def usual_sampling(usual: SamplingConfig, variants: int) -> SamplingConfig:
    """What is usual for a model; but several variants are not taken greedily, as they would all be the same."""
    return replace(usual, temperature=1.0, top_p=0.9) if variants > 1 and usual.temperature == 0 else usual


def sampling_of(
    usual: SamplingConfig, guidance: float | None, temperature: float | None, top_p: float | None, seed: int
) -> SamplingConfig:
    """What was asked for, and for the rest what is usual."""
    return SamplingConfig(
        guidance_scale=usual.guidance_scale if guidance is None else guidance,
        temperature=usual.temperature if temperature is None else temperature,
        top_p=usual.top_p if top_p is None else top_p,
        seed=seed,
    )
