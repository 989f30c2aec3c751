"""What is asked of the engine, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from helicube.engine.sampling import SamplingConfig

__all__ = ["IdPlan", "Request", "Result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdPlan:
    """Which ids may stand where, for all requests of an engine."""

    # Per step, the first id that may be chosen and the one after the last. Steps beyond the last entry use the last.
    ranges: tuple[tuple[int, int], ...]

    @property
    def num_steps(self) -> int:
        return len(self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One sequence to decode."""

    # What the model is conditioned on; its runner knows the kind.
    prompt: Any
    # Ids to decode.
    num_tokens: int
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    # (num_tokens,) int64, ids that are given, −1 where the model chooses.
    forced: Tensor | None = None
    # Ids that end the sequence early, and are not part of it.
    stop_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a request."""

    # (n,) int64 on the CPU.
    ids: Tensor
    # "length", "stop", or "error".
    finish: str
    # One line for the user where finish is "error".
    error: str = ""
