"""Question: what is asked of a search."""

from __future__ import annotations

from dataclasses import dataclass

from helicube.errors import InputError
from helicube.planner.layouts import FAMILIES

__all__ = ["Question"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked.

    Raises:
        InputError: a size is not positive.
    """

    context: int
    # Cached tokens per user.
    max_gpus: int
    min_gpus: int = 1
    ttl_s: float | None = None
    # Token-to-token latency to keep.
    users: int | None = None
    # Users to serve at a time.
    families: tuple[str, ...] = FAMILIES
    overlap: bool = True
    # Consider HOP-B.
    padding: bool = True
    # Consider layouts whose widths must be padded.

    def __post_init__(self) -> None:
        ttl_ms = None if self.ttl_s is None else round(self.ttl_s * 1e3, 9)
        for name, value in (("context", self.context), ("max-gpus", self.max_gpus), ("min-gpus", self.min_gpus),
                            ("users", self.users), ("ttl-ms", ttl_ms)):  # fmt: skip
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} is {value:g}; it must be positive and finite")
        for name, size in (("context", self.context), ("users", self.users)):
            if size is not None and size > 10**9:
                raise InputError(f"{name} is {size:,}; at most 1,000,000,000 is planned")
        if not self.families:
            raise InputError(f"no family of layouts is named; choose out of {', '.join(FAMILIES)}")
        if self.min_gpus > self.max_gpus:
            raise InputError(f"min-gpus {self.min_gpus} exceeds max-gpus {self.max_gpus}; lower it")

    @property
    def pool(self) -> str:
        """Sizes of the pool, in words."""
        return str(self.max_gpus) if self.min_gpus == self.max_gpus else f"{self.min_gpus} … {self.max_gpus}"

    @property
    def goal(self) -> str:
        """What is maximised, in words."""
        if self.ttl_s is not None:
            floor = f" and at least {self.users} users" if self.users else ""
            return f"most tokens/s per GPU within {self.ttl_s * 1e3:g} ms per token{floor}"
        return f"lowest latency for {self.users} users" if self.users else "lowest latency"
