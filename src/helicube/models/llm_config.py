"""The sizes and rules of a decoder-only language model, and typed access to the file that they are read from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from helicube.errors import CheckpointError
from helicube.nn.gqa import GqaConfig
from helicube.nn.mla import MlaConfig
from helicube.nn.moe import MoeConfig
from helicube.nn.part import ModelPart
from helicube.nn.rotary_scaling import ROTARY_KINDS, RotaryConfig

__all__ = ["ConfigFile", "LlmConfig", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmConfig:
    """A decoder-only transformer, as far as its mathematics goes."""

    # Shown in messages.
    name: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    attention: GqaConfig | MlaConfig
    rotary: RotaryConfig
    # Width of a dense FFN.
    dense_size: int
    # First layers with a dense FFN; all, without experts.
    num_dense_layers: int
    # FFN of the other layers.
    moe: MoeConfig | None = None
    # Biases on the dense FFN's projections.
    mlp_bias: bool = False
    norm_eps: float = 1e-6
    # Input and output embeddings are one matrix.
    tied_embeddings: bool = False
    # Longest context that the model was trained or extended for, in tokens.
    max_context: int = 0
    # Ids that end a text, in the order of the file.
    eos_ids: tuple[int, ...] = ()
    # Id that starts a text; −1 is none.
    bos_id: int = -1

    @property
    def num_kv_heads(self) -> int:
        """Heads of the cache; MLA has one latent head."""
        return self.attention.num_kv_heads if isinstance(self.attention, GqaConfig) else 1

    @property
    def most_tokens(self) -> int:
        """Tokens of a text at most; 0 is no limit: none is given, or rotary angles that stretch with the text."""
        return 0 if self.rotary.kind == "dynamic" else self.max_context


def whole(config: LlmConfig) -> ModelPart:
    """The part that is everything."""
    moe = config.moe
    return ModelPart(
        kv_heads=range(config.num_kv_heads),
        output_heads=range(config.attention.num_query_heads),
        dense_columns=range(config.dense_size),
        experts=range(moe.num_experts if moe else 0),
        expert_columns=range(moe.expert_size if moe else 0),
        shared_columns=range(moe.shared_size if moe else 0),
        vocab=range(config.vocab_size),
        first=True,
    )


class ConfigFile:
    """Typed access to the content of a Hugging Face config.json.

    Raises:
        CheckpointError: a key is missing, or its value is not of the type that it must have.
    """

    def __init__(self, data: dict[str, Any], name: str) -> None:
        self.data, self.name = data, name

    def integer(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CheckpointError(f"{self.name}: {key} is {value!r}; it must be a whole number")
        if value < least:
            raise CheckpointError(f"{self.name}: {key} is {value}; it must be at least {least}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CheckpointError(f"{self.name}: {key} is {value!r}; it must be a number")
        return float(value)

    def flag(self, key: str) -> bool:
        return bool(self.data.get(key) or False)

    def refuse(self, key: str, *fine: Any) -> None:
        """An option that would change the result and is not implemented is an error, never ignored."""
        value = self.data.get(key)
        if value not in (None, *fine):
            raise CheckpointError(f"{self.name}: {key} is {value!r}, which is not supported; supported: {fine[0]!r}")

    def _get(self, key: str, default: float | None) -> Any:
        value = self.data.get(key)
        if value is None:
            value = default
        if value is None:
            raise CheckpointError(f"{self.name}: {key} is missing; add it to the file")
        return value

    def ids(self, key: str) -> tuple[int, ...]:
        """An id, a list of ids, or nothing."""
        value = self.data.get(key)
        found = value if isinstance(value, list) else [value]
        return tuple(i for i in found if isinstance(i, int))

    def rotary(self, head_dim: int) -> RotaryConfig:
        """Rotary embedding, from the old form (rope_theta, rope_scaling) or the new one (rope_parameters)."""
        rope = self._rope()
        kind = rope.data["rope_type"]
        if kind not in ROTARY_KINDS:
            raise CheckpointError(f"{self.name}: rope type {kind!r} is unknown; known are {', '.join(ROTARY_KINDS)}")
        share = rope.data.get("partial_rotary_factor") or self.data.get("partial_rotary_factor") or 1.0
        if share != 1.0:
            raise CheckpointError(f"{self.name}: partial_rotary_factor is {share}; only whole heads are rotated")
        theta = rope.number("rope_theta", self.number("rope_theta", 10_000.0))
        longest = self.integer("max_position_embeddings", 0)
        # In "dynamic", the length from which the base grows is the configured one itself.
        original = longest if kind == "dynamic" else rope.integer("original_max_position_embeddings", longest)
        plain = kind in {"default", "divided"}
        factor = 1.0 if plain else rope.number("factor", longest / original if original else None)
        found = RotaryConfig(
            head_dim=head_dim,
            theta=theta,
            kind=kind,
            factor=factor,
            original_context=original,
            low_frequency_factor=rope.number("low_freq_factor", 1.0),
            high_frequency_factor=rope.number("high_freq_factor", 4.0),
            beta_fast=rope.number("beta_fast", 32.0),
            beta_slow=rope.number("beta_slow", 1.0),
            truncate=bool(rope.data.get("truncate", True)),
            amplitude=_yarn_amplitude(rope, factor) if kind == "yarn" else 1.0,
            divisors=tuple(map(float, rope.data.get("divisors") or ())),
        )
        _check_rotary(found, self.name)
        return found

    def score_factor(self) -> float:
        """What YaRN's temperature over all dimensions multiplies the scores with (DeepSeek-V2 and later)."""
        rope = self._rope()
        all_dims = rope.number("mscale_all_dim", 0.0)
        if rope.data["rope_type"] == "default" or not all_dims:
            return 1.0
        return yarn_temperature(rope.number("factor", 1.0), all_dims) ** 2

    def _rope(self) -> ConfigFile:
        """The part on rotary embedding, its type under one name."""
        found = self.data.get("rope_parameters") or self.data.get("rope_scaling") or {}
        if not isinstance(found, dict):
            raise CheckpointError(f"{self.name}: rope_scaling is {found!r}; it must be an object or absent")
        kind = found.get("rope_type") or found.get("type") or "default"
        return ConfigFile({**found, "rope_type": kind}, self.name)


def _check_rotary(c: RotaryConfig, name: str) -> None:
    for key, value in (
        ("rope_theta", c.theta),
        ("factor", c.factor),
        ("beta_fast", c.beta_fast),
        ("beta_slow", c.beta_slow),
    ):
        if not 0 < value < math.inf:
            raise CheckpointError(f"{name}: {key} is {value}; it must be finite and above 0")
    if c.kind in {"dynamic", "yarn", "llama3"} and not c.original_context:
        raise CheckpointError(f"{name}: rope type {c.kind!r} needs max_position_embeddings; add it to the file")
    if c.kind == "divided" and len(c.divisors) != c.head_dim // 2:
        raise CheckpointError(f"{name}: {len(c.divisors)} rotary divisors for {c.head_dim // 2} frequencies")


def yarn_temperature(factor: float, weight: float = 1.0) -> float:
    """√(1/t) = 0.1·weight·ln(factor) + 1 (YaRN, equation 22)."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _yarn_amplitude(rope: ConfigFile, factor: float) -> float:
    if rope.data.get("attention_factor") is not None:
        return rope.number("attention_factor")
    weight, all_dims = rope.number("mscale", 0.0), rope.number("mscale_all_dim", 0.0)
    if weight and all_dims:
        return yarn_temperature(factor, weight) / yarn_temperature(factor, all_dims)
    return yarn_temperature(factor)
