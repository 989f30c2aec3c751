"""Rotary embedding at given positions, with the published ways of stretching it to longer contexts.

f = head_dim/2 frequencies. Sources: "linear": Chen et al., "Extending Context Window of Large Language Models via
Positional Interpolation" (2023); "dynamic": NTK-aware scaling (bloc97, 2023); "yarn": Peng et al., "YaRN" (2023);
"llama3": the Llama 3.1 release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["ROTARY_KINDS", "RotaryConfig", "apply_rotary_half", "rotary_frequencies", "rotary_rows"]

ROTARY_KINDS = ("default", "linear", "dynamic", "yarn", "llama3", "divided")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryConfig:
    """Frequencies and their scaling."""

    # Channels that are rotated.
    head_dim: int
    # Base of the frequencies.
    theta: float = 10_000.0
    # One of ROTARY_KINDS.
    kind: str = "default"
    # How many times longer the context becomes.
    factor: float = 1.0
    # Context before stretching, in tokens.
    original_context: int = 0
    # llama3: wavelengths above original_context/low are stretched, below original_context/high kept.
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    # yarn: rotations within the original context above which a frequency is kept, and below which it is stretched.
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    # yarn: round the bounds between those two to whole channels.
    truncate: bool = True
    # Factor on cosines and sines (yarn's attention temperature).
    amplitude: float = 1.0
    # divided: what each frequency is divided by (GGUF files hold llama3's scaling in this form).
    divisors: tuple[float, ...] = ()


def rotary_frequencies(config: RotaryConfig, context: int = 0) -> Tensor:
    """Radians per position; (f,) float32.

    Args:
        context: tokens of the longest context that will be rotated together. Only "dynamic" depends on it.
    """
    theta = config.theta
    if config.kind == "dynamic":
        # One base for a whole request: a base that grows with the context would rotate new keys unlike the cached ones.
        length = max(context, config.original_context)
        stretch = config.factor * length / config.original_context - (config.factor - 1)
        theta *= stretch ** (config.head_dim / (config.head_dim - 2))
    frequency = theta ** (-torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim)
    if config.kind == "divided":
        return frequency / torch.tensor(config.divisors)
    if config.kind == "linear":
        return frequency / config.factor
    if config.kind == "yarn":
        return _blend(frequency, config.factor, _yarn_kept(config))
    if config.kind == "llama3":
        turns = config.original_context * frequency / (2 * math.pi)
        low, high = config.low_frequency_factor, config.high_frequency_factor
        return _blend(frequency, config.factor, ((turns - low) / (high - low)).clamp(0, 1))
    return frequency


def _blend(frequency: Tensor, factor: float, kept: Tensor) -> Tensor:
    """Stretch by `factor` where `kept` is 0, leave alone where it is 1, and interpolate between."""
    return frequency / factor * (1 - kept) + frequency * kept


def _yarn_kept(config: RotaryConfig) -> Tensor:
    """YaRN's ramp γ over the channels, (f,)."""

    def channel(turns: float) -> float:
        # The channel that makes `turns` rotations over the original context.
        length = config.original_context / (turns * 2 * math.pi)
        return config.head_dim * math.log(length) / (2 * math.log(config.theta))

    low, high = channel(config.beta_fast), channel(config.beta_slow)
    if config.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, config.head_dim - 1)
    ramp = (torch.arange(config.head_dim // 2, dtype=torch.float32) - low) / max(high - low, 0.001)
    return 1 - ramp.clamp(0, 1)


def rotary_rows(positions: Tensor, frequency_f: Tensor, amplitude: float = 1.0) -> Tensor:
    """Cosines and sines at positions (…) times frequencies that broadcast to (…, f); (…, f, 2) float32.

    Computed for the positions at hand: a table for a million positions would take longer to read than to compute.
    """
    angle = positions[..., None].float() * frequency_f
    return torch.stack([angle.cos(), angle.sin()], dim=-1) * amplitude


def apply_rotary_half(x: Tensor, rows: Tensor) -> Tensor:
    """Rotate pairs (i, i + head_dim/2) in float32: the order of Llama-like checkpoints (Hugging Face format).

    Args:
        x: (…, head_dim).
        rows: (…, f, 2) of `rotary_rows`.
    """
    a, b = x.float().chunk(2, dim=-1)
    cos, sin = rows[..., 0], rows[..., 1]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)
