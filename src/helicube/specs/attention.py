"""What one attention layer holds, caches and multiplies.

Axes: H hidden size, Q query heads, K KV heads, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AttentionSpec", "LinearAttentionSpec"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionSpec:
    """Softmax attention: grouped-query (MHA and MQA included) or multi-head latent (MLA)."""

    num_query_heads: int
    # Q
    num_kv_heads: int
    # K; 1 for MLA, whose latent is shared by all query heads.
    qk_head_size: int
    # D of queries and keys; for MLA the non-rotary part plus the rotary part.
    v_head_size: int
    # D of values.
    kv_lora_rank: int = 0
    # Width of the MLA latent; 0 means grouped-query attention.
    q_lora_rank: int = 0
    # Width of MLA's compressed query; 0 means a full query projection.
    rope_head_size: int = 0
    # Rotary values that MLA caches beside the latent.
    bias: bool = False
    # Biases on the QKV projection.
    output_bias: bool = False
    # Bias on the output projection.
    qk_norm: bool = False
    # RMSNorm over queries and keys.
    qk_norm_full: bool = False
    # That norm has a weight for each head and channel (MiniMax-M2) and not one row shared by the heads.
    output_gate: bool = False
    # A sigmoid gate on the attention output, projected with the queries (Qwen3-Next).
    sinks: bool = False
    # One learned sink logit per query head (gpt-oss).
    window: int = 0
    # Width of the sliding window of windowed layers; 0 means none are windowed.
    index_heads: int = 0
    # Heads of the sparse-attention indexer (DSA); 0 means dense attention.
    index_head_size: int = 0
    # Head size of the indexer; its keys are cached too.
    index_top_k: int = 0
    # Cached tokens that each query attends to after indexing.

    @property
    def is_mla(self) -> bool:
        """True when the cache holds a latent that all query heads share."""
        return self.kv_lora_rank > 0

    def qkv_params(self, hidden: int) -> int:
        """Parameters of the projections before the scores, the value up-projection of MLA excluded."""
        q, k = self.num_query_heads, self.num_kv_heads
        if self.is_mla:
            nope = self.qk_head_size - self.rope_head_size
            down = hidden * (self.kv_lora_rank + self.rope_head_size) + self.kv_lora_rank
            query = q * self.qk_head_size
            up_q = hidden * self.q_lora_rank + self.q_lora_rank + self.q_lora_rank * query
            return down + (up_q if self.q_lora_rank else hidden * query) + self.kv_lora_rank * q * nope
        rows = q * self.qk_head_size * (2 if self.output_gate else 1) + k * (self.qk_head_size + self.v_head_size)
        return rows * (hidden + (1 if self.bias else 0))

    def down_params(self, hidden: int) -> int:
        """Parameters of MLA's down-projections, which every rank holds whole; 0 without MLA."""
        if not self.is_mla:
            return 0
        query = self.q_lora_rank * (hidden + 1) if self.q_lora_rank else 0
        return hidden * (self.kv_lora_rank + self.rope_head_size) + self.kv_lora_rank + query

    def output_params(self, hidden: int) -> int:
        """Parameters after the scores: the output projection, for MLA with the value up-projection."""
        width = self.num_query_heads * self.v_head_size
        up_v = self.kv_lora_rank * width
        return up_v + width * hidden + (hidden if self.output_bias else 0)

    def small_params(self, hidden: int) -> int:
        """Norms over heads, sinks, and the indexer."""
        heads = self.num_query_heads + self.num_kv_heads
        norm = (heads if self.qk_norm_full else 2) * self.qk_head_size if self.qk_norm else 0
        index = 0
        if self.index_heads:
            width = self.index_heads * self.index_head_size
            index = (self.q_lora_rank or hidden) * width + hidden * (self.index_head_size + self.index_heads)
        return norm + index + (self.num_query_heads if self.sinks else 0)

    def params(self, hidden: int) -> int:
        """All parameters of one layer's attention."""
        return self.qkv_params(hidden) + self.output_params(hidden) + self.small_params(hidden)

    @property
    def cache_values(self) -> int:
        """Cached values per token and layer: 2·K·D, or the latent and its rotary part (indexer keys excluded)."""
        if self.is_mla:
            return self.kv_lora_rank + self.rope_head_size
        return self.num_kv_heads * (self.qk_head_size + self.v_head_size)

    @property
    def score_flops(self) -> int:
        """FLOPs per query token and cached token, scores and weighted sum; MLA with absorbed projections."""
        if self.is_mla:
            return 2 * self.num_query_heads * (2 * self.kv_lora_rank + self.rope_head_size)
        return 2 * self.num_query_heads * (self.qk_head_size + self.v_head_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearAttentionSpec:
    """Gated delta-rule attention (Qwen3-Next): a state of fixed size instead of a cache that grows."""

    num_key_heads: int
    # Heads of queries and keys.
    num_value_heads: int
    # Heads of values; each has a state of key size × value size.
    key_head_size: int
    # Channels of a key.
    value_head_size: int
    # Channels of a value.
    conv_width: int = 4
    # Taps of the short convolution.

    def params(self, hidden: int) -> int:
        """Parameters of one layer."""
        keys, values = self.num_key_heads * self.key_head_size, self.num_value_heads * self.value_head_size
        project = hidden * (2 * keys + 2 * values) + hidden * 2 * self.num_value_heads
        mix = (2 * keys + values) * self.conv_width + 2 * self.num_value_heads + self.value_head_size
        return project + mix + values * hidden

    @property
    def state_bytes(self) -> int:
        """Bytes of one sequence's state in one layer (float32 state, 16-bit convolution taps)."""
        keys, values = self.num_key_heads * self.key_head_size, self.num_value_heads * self.value_head_size
        return (
            self.num_value_heads * self.key_head_size * self.value_head_size * 4
            + (2 * keys + values) * self.conv_width * 2
        )
