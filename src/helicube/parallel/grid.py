"""Who holds what: the groups of ranks of a layout, and the part of a model that each rank holds.

Ranks are numbered tpa-major, kvp-minor, so that the slices of W_O are in the order of the ranks: rank (tpa, kvp) holds
the query heads from tpa·Q/TPA + kvp·Q/N on, which is what the all-to-all of its KVP group leaves with it. The other
order gives wrong results and no error. In the FFN they are numbered ep-major, tpf-minor.
Source: Helix Parallelism (arXiv 2507.07120), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from helicube.models.llm_config import LlmConfig
from helicube.nn.gqa import GqaConfig
from helicube.nn.part import ModelPart
from helicube.specs.layout import HelixLayout

__all__ = ["RankGrid", "heads_per_rank", "part_of", "slice_heads", "slice_width"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGrid:
    """One rank's place in the pool and the groups that it communicates in, as sorted tuples of ranks."""

    layout: HelixLayout
    rank: int

    @property
    def tpa(self) -> int:
        """Index of this rank's TPA slice."""
        return self.rank // self.layout.kvp

    @property
    def kvp(self) -> int:
        """Index of this rank's shard of the sequence."""
        return self.rank % self.layout.kvp

    @property
    def tpf(self) -> int:
        """Index of this rank's slice of the FFN's columns."""
        return self.rank % self.layout.tpf

    @property
    def ep(self) -> int:
        """Index of this rank's group of experts."""
        return self.rank // self.layout.tpf

    @property
    def pool(self) -> tuple[int, ...]:
        """All ranks."""
        return tuple(range(self.layout.num_ranks))

    @property
    def kvp_group(self) -> tuple[int, ...]:
        """Ranks that hold the other shards of this rank's heads."""
        first = self.tpa * self.layout.kvp
        return tuple(range(first, first + self.layout.kvp))

    @property
    def tpf_group(self) -> tuple[int, ...]:
        """Ranks that hold the other columns of this rank's experts."""
        first = self.ep * self.layout.tpf
        return tuple(range(first, first + self.layout.tpf))

    @property
    def ep_group(self) -> tuple[int, ...]:
        """Ranks that hold the same columns of the other experts."""
        return tuple(range(self.tpf, self.layout.num_ranks, self.layout.tpf))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """All of this rank's groups."""
        return self.pool, self.kvp_group, self.tpf_group, self.ep_group


def slice_heads(config: LlmConfig, layout: HelixLayout) -> int:
    """Query heads of a TPA slice."""
    return config.attention.num_query_heads // layout.tpa


def heads_per_rank(config: LlmConfig, layout: HelixLayout) -> int:
    """Query heads that a rank gets from the all-to-all; where they do not divide, the last ranks' are padding."""
    return -(-slice_heads(config, layout) // layout.kvp)


def part_of(config: LlmConfig, layout: HelixLayout, rank: int) -> ModelPart:
    """What a rank holds.

    Widths that do not divide are rounded up, and the last ranks hold less: padding with zeros that are not stored.
    """
    assert config.num_kv_heads % layout.tpa == 0, f"{config.name}: tpa={layout.tpa} cuts a KV head; validate the layout"
    assert config.moe is not None or layout.ep == 1, (
        f"{config.name}: ep={layout.ep} without experts; validate the layout"
    )
    grid = RankGrid(layout=layout, rank=rank)
    moe, n = config.moe, layout.num_ranks
    first_head, heads = grid.tpa * slice_heads(config, layout), slice_heads(config, layout)
    own = _slice(grid.kvp, layout.kvp, heads)
    kv = _slice(grid.tpa, layout.tpa, config.num_kv_heads) if isinstance(config.attention, GqaConfig) else range(1)
    return ModelPart(
        kv_heads=kv,
        output_heads=range(first_head + own.start, first_head + own.stop),
        dense_columns=_slice(rank, n, config.dense_size),
        experts=_slice(grid.ep, layout.ep, moe.num_experts if moe else 0),
        expert_columns=_slice(grid.tpf, layout.tpf, moe.expert_size if moe else 0),
        shared_columns=_slice(rank, n, moe.shared_size if moe else 0),
        vocab=_slice(rank, n, config.vocab_size),
        first=rank == 0,
    )


def slice_width(count: int, width: int) -> int:
    """The widest of `count` slices of an axis."""
    return -(-width // count)


def _slice(index: int, count: int, width: int) -> range:
    """Slice `index` of `count` of an axis, each as wide as the widest, the last ones cut short."""
    each = slice_width(count, width)
    return range(min(index * each, width), min((index + 1) * each, width))
