"""Which heads, columns, experts and rows of a model a module holds.

A module built for a part computes a partial sum: over all parts of a pool the sums add up to the whole layer. A whole
model is the one part of a pool of one. Who holds which part is decided elsewhere (helicube.parallel).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cut", "ModelPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """Half-open ranges over the whole model's axes."""

    # KV heads, with the query heads that read them; for MLA, whose latent is one head, range(1).
    kv_heads: range
    # Query heads whose attention reaches the output projection here.
    output_heads: range
    # Columns of a dense FFN.
    dense_columns: range
    # Routed experts, and the columns of each.
    experts: range
    expert_columns: range
    # Columns of the shared experts.
    shared_columns: range
    # Rows of the embedding and of the output head.
    vocab: range
    # Holds the biases that are added once per layer and not once per part.
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A region of one published tensor."""

    # Published name, relative to the module.
    name: str
    # Rows, in order; None is all.
    rows: tuple[range, ...] | None = None
    # Columns; None is all.
    columns: range | None = None
    # Zeros instead of the stored values: a bias that another part adds.
    zero: bool = False
