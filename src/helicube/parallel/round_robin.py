"""Which shard of a sequence's cache holds which token: blocks dealt round robin.

Source: Helix Parallelism (arXiv 2507.07120), section 2.3: block j belongs to KVP rank j mod KVP, for prompt and
generated tokens alike, so shards never differ by more than one block.
"""

from __future__ import annotations

from dataclasses import dataclass

from helicube.errors import LayoutError

__all__ = ["RoundRobin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobin:
    """Placement of tokens over the KVP ranks; positions and lengths are counted over the whole sequence.

    Raises:
        LayoutError: a size below 1.
    """

    # KVP
    num_shards: int
    # Tokens that stay together.
    block: int = 16

    def __post_init__(self) -> None:
        if self.num_shards < 1 or self.block < 1:
            raise LayoutError(f"kvp={self.num_shards} with blocks of {self.block} tokens; both must be at least 1")

    def owner(self, position: int) -> int:
        """Shard of a token."""
        return position // self.block % self.num_shards

    def held(self, length: int, shard: int) -> int:
        """How many of the first `length` tokens a shard holds; also the place in the shard of its next token."""
        blocks, rest = divmod(length, self.block)
        own, left = divmod(blocks, self.num_shards)
        if shard < left:
            return (own + 1) * self.block
        return own * self.block + (rest if shard == left else 0)

    def most_held(self, length: int) -> int:
        """Tokens of the fullest shard: the first one."""
        return self.held(length, 0)

    def capacity(self, per_shard: int) -> int:
        """Longest sequence whose every shard holds at most `per_shard` tokens."""
        blocks, rest = divmod(per_shard, self.block)
        return blocks * self.block * self.num_shards + rest
