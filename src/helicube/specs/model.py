"""ModelSpec: the sizes of a decoder-only transformer, and what follows from them.

Axes: L layers, H hidden size, F FFN width, E experts, V vocabulary, S context length in tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from helicube.errors import InputError
from helicube.specs.attention import AttentionSpec, LinearAttentionSpec

__all__ = ["FfnSpec", "ModelSpec"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FfnSpec:
    """Feed-forward part: dense, or a mixture of experts behind some dense first layers."""

    dense_size: int
    # F of a dense layer; 0 when every layer is a mixture of experts.
    num_dense_layers: int
    # Layers with a dense FFN; all layers for a dense model.
    num_experts: int = 0
    # E routed experts of each other layer; 0 for a dense model.
    top_k: int = 0
    # Routed experts per token.
    expert_size: int = 0
    # F of one routed expert.
    shared_size: int = 0
    # F of all shared experts together, which every token passes.
    shared_gate: bool = False
    # A sigmoid gate on the shared experts (Qwen3-Next).
    num_groups: int = 1
    # Groups that routing first chooses among.
    top_groups: int = 1
    # Groups chosen per token.
    router_bias: bool = False
    # One bias per expert at the router.
    bias: bool = False
    # Biases on the FFN's projections.

    @property
    def is_moe(self) -> bool:
        """True when some layer routes."""
        return self.num_experts > 0

    @staticmethod
    def gated_params(hidden: int, width: int, *, bias: bool = False) -> int:
        """Parameters of gate, up and down projections."""
        return 3 * hidden * width + (2 * width + hidden if bias else 0)

    def dense_params(self, hidden: int) -> int:
        """Parameters of one dense layer's FFN."""
        return self.gated_params(hidden, self.dense_size, bias=self.bias)

    def expert_params(self, hidden: int) -> int:
        """Parameters of one routed expert."""
        return self.gated_params(hidden, self.expert_size, bias=self.bias)

    def shared_params(self, hidden: int) -> int:
        """Parameters of the shared experts of one layer."""
        gate = hidden if self.shared_gate else 0
        return (self.gated_params(hidden, self.shared_size, bias=self.bias) + gate) if self.shared_size else 0

    def router_params(self, hidden: int) -> int:
        """Parameters of one layer's router."""
        return self.num_experts * (hidden + (1 if self.router_bias else 0))


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """A decoder-only transformer, as far as time and memory depend on it.

    Raises:
        InputError: a size is not positive, or the layer counts do not add up.
    """

    name: str
    # Name in the catalog, or of the user's file.
    source: str
    # Where the sizes come from.
    num_layers: int
    # L
    hidden_size: int
    # H
    vocab_size: int
    # V
    attention: AttentionSpec
    # Softmax attention of the full and the windowed layers.
    ffn: FfnSpec
    # Feed-forward part.
    tied_embeddings: bool = False
    # Input and output embeddings are one matrix.
    max_context: int = 0
    # Longest context that the model was trained or extended for, in tokens; 0 means unknown.
    num_window_layers: int = 0
    # Layers that attend only to the last `attention.window` tokens.
    num_linear_layers: int = 0
    # Layers with linear attention.
    linear: LinearAttentionSpec | None = None
    # Sizes of those layers.
    idle_params: int = 0
    # Parameters held but not read by a decode step (condition stream of Cube 3D).
    norms_per_layer: int = 2
    # Weighted norms over H in one layer.
    native_precision: str = "bf16"
    # Precision of the published weights.
    hub: str = ""
    # Hugging Face id of the published weights; "" for a model of the user's own.

    def __post_init__(self) -> None:
        for field in ("num_layers", "hidden_size", "vocab_size"):
            if getattr(self, field) <= 0:
                raise InputError(f"model {self.name}: {field} is {getattr(self, field)}; it must be positive")
        if self.num_window_layers + self.num_linear_layers > self.num_layers:
            raise InputError(f"model {self.name}: more windowed and linear layers than its {self.num_layers} layers")
        if self.num_linear_layers and self.linear is None:
            raise InputError(f"model {self.name}: num_linear_layers is set, but the sizes in `linear` are missing")
        a, f = self.attention, self.ffn
        if not a.is_mla and a.num_query_heads % a.num_kv_heads:
            raise InputError(
                f"model {self.name}: {a.num_query_heads} query heads are no multiple of its {a.num_kv_heads} KV heads"
            )
        if f.num_dense_layers > self.num_layers or (f.num_dense_layers < self.num_layers and not f.is_moe):
            raise InputError(
                f"model {self.name}: {f.num_dense_layers} dense layers do not fit {self.num_layers} layers"
            )
        if f.is_moe and not 0 < f.top_k <= f.num_experts:
            raise InputError(f"model {self.name}: top_k {f.top_k} is outside 1 … {f.num_experts} experts")

    @property
    def num_full_layers(self) -> int:
        """Layers that attend to the whole context."""
        return self.num_layers - self.num_window_layers - self.num_linear_layers

    @property
    def num_softmax_layers(self) -> int:
        """Layers with a KV cache, windowed ones included."""
        return self.num_layers - self.num_linear_layers

    @property
    def num_moe_layers(self) -> int:
        """Layers with a mixture of experts."""
        return self.num_layers - self.ffn.num_dense_layers

    @property
    def mixer_params(self) -> int:
        """Parameters of attention, of every kind, in all layers."""
        linear = self.linear.params(self.hidden_size) * self.num_linear_layers if self.linear else 0
        return self.attention.params(self.hidden_size) * self.num_softmax_layers + linear

    def _params(self, routed_experts: int) -> int:
        h, f = self.hidden_size, self.ffn
        moe = routed_experts * f.expert_params(h) + f.shared_params(h) + f.router_params(h)
        ffn = f.num_dense_layers * f.dense_params(h) + self.num_moe_layers * moe
        embeddings = self.vocab_size * h * (1 if self.tied_embeddings else 2)
        norms = h * (self.norms_per_layer * self.num_layers + 1)
        return self.mixer_params + ffn + embeddings + norms + self.idle_params

    @property
    def num_params(self) -> int:
        """All parameters of the text decoder; without multi-token-prediction layers and vision towers."""
        return self._params(self.ffn.num_experts)

    @property
    def num_active_params(self) -> int:
        """Parameters that one token uses: top-k experts, and one row of the input embedding."""
        idle_rows = 0 if self.tied_embeddings else self.vocab_size * self.hidden_size
        return self._params(self.ffn.top_k) - self.idle_params - idle_rows

    def cache_values(self, context: int) -> int:
        """Cached values of one sequence of `context` tokens, all layers; indexer keys included."""
        a = self.attention
        full = self.num_full_layers * (a.cache_values + a.index_head_size) * context
        return full + self.num_window_layers * a.cache_values * min(context, a.window)

    def cache_bytes(self, context: int, element_bytes: float) -> float:
        """Cache bytes of one sequence of `context` tokens, states of linear layers included."""
        states = self.linear.state_bytes * self.num_linear_layers if self.linear else 0
        return self.cache_values(context) * element_bytes + states

    def flops_per_token(self, context: int) -> float:
        """FLOPs of one decoded token at `context` cached tokens: two per active weight, plus attention."""
        a = self.attention
        attended = min(context, a.index_top_k) if a.index_heads else context
        per_full = a.score_flops * attended + 2 * a.index_heads * a.index_head_size * context
        scores = self.num_full_layers * per_full + self.num_window_layers * a.score_flops * min(context, a.window)
        return 2.0 * self.num_active_params + scores

    def read_bytes_per_token(self, context: int, weight_bytes: float, cache_bytes: float) -> float:
        """Bytes that one decoded token reads at batch 1: active weights and the cache of its sequence.

        Args:
            context: cached tokens.
            weight_bytes: bytes per weight.
            cache_bytes: bytes per cached value.
        """
        return self.num_active_params * weight_bytes + self.cache_bytes(context, cache_bytes)
