"""One decode step of a Cube decoder in seven launches per layer; nothing is read back, nothing allocated.

R rows, D width, H heads, d head size, F hidden channels, V vocabulary, T slots, P positions, S splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.attention import CachedKeys, attend_split, split_count
from helicube.kernels.triton.linear import linear
from helicube.kernels.triton.merge import merge
from helicube.kernels.triton.query_key import rotate_and_store
from helicube.kernels.triton.sampling import sample_ids
from helicube.kernels.triton.swiglu import swiglu
from helicube.kernels.triton.weight import KernelWeight

__all__ = ["DecodeStep", "LayerWeights", "StepWeights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """The shape stream of one layer."""

    # (3D, D): queries, keys, values; and the bias (3D,).
    qkv: KernelWeight
    qkv_bias: Tensor | None
    # (d,) weights of the RMSNorms on queries and on keys.
    qk_norm: tuple[Tensor, Tensor]
    # (D, D) and (D,).
    proj: KernelWeight
    proj_bias: Tensor | None
    # (2F, D), gate rows first, and (2F,).
    gate_up: KernelWeight
    gate_up_bias: Tensor | None
    # (D, F) and (D,).
    down: KernelWeight
    down_bias: Tensor | None
    # Slots of the condition at the head of this layer's cache; 0 in single-stream layers.
    prefix_slots: int

    @property
    def num_bytes(self) -> int:
        """Bytes of weights that a step reads."""
        return sum(w.num_bytes for w in (self.qkv, self.proj, self.gate_up, self.down))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWeights:
    """Everything that a step reads besides its cache."""

    # (V, D).
    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    # (V, D).
    head: KernelWeight
    # (P, d/2, 2) float32 rotary table.
    rotary: Tensor
    # What is added to a token at each position, (P, D), or None.
    added: Tensor | None
    num_heads: int
    # eps of the layer norms, and of the RMSNorms on queries and keys.
    eps: float
    qk_eps: float

    @property
    def num_bytes(self) -> int:
        """Bytes of weights that a step reads."""
        return sum(layer.num_bytes for layer in self.layers) + self.head.num_bytes


class DecodeStep:
    """A step as a callable without arguments or results: what a graph captures.

    Triton compiles and loads a kernel at its first launch, which a capture does not survive: call once before.

    Args:
        keys, values: per layer (R, H, T, d), prefix slots first.
        state: tokens to feed in, ids chosen out; advanced at each call.
        max_width: the most ids that any step may choose from.
    """

    def __init__(
        self,
        weights: StepWeights,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        state: SamplingState,
        *,
        max_width: int,
    ) -> None:
        assert len(keys) == len(values) == len(weights.layers), f"{len(keys)} caches for {len(weights.layers)} layers"
        self.weights, self.keys, self.values, self.state, self.max_width = weights, keys, values, state, max_width
        num_rows, width = len(state.tokens), weights.embedding.shape[1]
        head_dim = width // weights.num_heads
        self.splits = [split_count(k.shape[2]) for k in keys]
        new = weights.embedding.new_empty
        self.x = new(num_rows, width)
        self.qkv = new(num_rows, 3 * width)
        self.q = new(num_rows, weights.num_heads, head_dim)
        self.attended = new(num_rows, width)
        self.lse = new(num_rows, weights.num_heads, dtype=torch.float32)
        parts = (max(self.splits), num_rows, weights.num_heads)
        self.part_o = new(*parts, head_dim, dtype=torch.float32)
        self.part_lse = new(*parts, dtype=torch.float32)
        self.hidden = new(num_rows, max(layer.gate_up.num_outputs // 2 for layer in weights.layers))
        self.logits = new(num_rows, weights.head.num_outputs, dtype=torch.float32)

    def __call__(self) -> None:
        self.forward()
        sample_ids(self.logits, self.state, max_width=self.max_width)

    def forward(self) -> Tensor:
        """Logits (R, V) in float32 after `state.tokens`, whose keys and values go to the cache."""
        w = self.weights
        torch.index_select(w.embedding, 0, self.state.tokens, out=self.x)
        if w.added is not None:
            self.x.add_(w.added.index_select(0, self.state.positions.clamp_min(0)))
        for index, layer in enumerate(w.layers):
            self._attend(index, layer)
            swiglu(self.x, layer.gate_up, bias=layer.gate_up_bias, norm_eps=w.eps, out=self.hidden)
            linear(self.hidden, layer.down, bias_N=layer.down_bias, residual_RN=self.x, out=self.x)
        return linear(self.x, w.head, norm_eps=w.eps, out=self.logits)

    def _attend(self, index: int, layer: LayerWeights) -> None:
        w, state, keys, values, splits = (
            self.weights,
            self.state,
            self.keys[index],
            self.values[index],
            self.splits[index],
        )
        linear(self.x, layer.qkv, bias_N=layer.qkv_bias, norm_eps=w.eps, out=self.qkv)
        rotate_and_store(
            self.qkv, w.rotary, state.positions, keys, values, num_heads=w.num_heads, norm=layer.qk_norm,
            eps=w.qk_eps, prefix_slots=layer.prefix_slots, out=self.q,
        )  # fmt: skip
        part = attend_split(
            self.q,
            CachedKeys(keys=keys, values=values, lengths=state.lengths, prefix_slots=layer.prefix_slots),
            num_splits=splits,
            out=(self.part_o[:splits], self.part_lse[:splits]),
        )
        merge(*part, out=(self.attended.view_as(self.q), self.lse))
        linear(self.attended, layer.proj, bias_N=layer.proj_bias, residual_RN=self.x, out=self.x)
