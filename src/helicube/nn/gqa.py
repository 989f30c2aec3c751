"""Grouped-query attention in the published parameter names, whole or in part.

B rows, L tokens, H hidden size, Q query heads, K key-value heads, d head size. MHA is K = Q, MQA is K = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from helicube.nn.norm import RMSNorm
from helicube.nn.part import Cut, ModelPart
from helicube.nn.rotary_scaling import apply_rotary_half

__all__ = ["GqaConfig", "GroupedQueryAttention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GqaConfig:
    """Sizes of one layer's attention."""

    hidden_size: int
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    # Biases on the projections of queries, keys and values.
    bias: bool = False
    # Bias on the output projection.
    output_bias: bool = False
    # RMSNorm over each head's queries and keys (Qwen3).
    qk_norm: bool = False
    norm_eps: float = 1e-6

    @property
    def groups(self) -> int:
        """Query heads per key-value head."""
        return self.num_query_heads // self.num_kv_heads


class GroupedQueryAttention(nn.Module):
    """Queries and keys of some KV heads, and the output projection of some query heads.

    Source: Ainslie et al., "GQA" (2023).
    """

    def __init__(self, config: GqaConfig, part: ModelPart) -> None:
        super().__init__()
        d, num_kv = config.head_dim, len(part.kv_heads)
        self.config, self.part = config, part
        self.num_kv_heads, self.key_size, self.value_size = num_kv, d, d
        self.is_latent = False
        self.scale = d**-0.5
        self.q_proj = nn.Linear(config.hidden_size, num_kv * config.groups * d, bias=config.bias)
        self.k_proj = nn.Linear(config.hidden_size, num_kv * d, bias=config.bias)
        self.v_proj = nn.Linear(config.hidden_size, num_kv * d, bias=config.bias)
        self.o_proj = nn.Linear(len(part.output_heads) * d, config.hidden_size, bias=config.output_bias)
        if config.qk_norm:
            self.q_norm = RMSNorm(d, config.norm_eps)
            self.k_norm = RMSNorm(d, config.norm_eps)

    def project(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries (B, L, Q, d), and keys and values (B, L, K, d) for the cache, of this part's heads."""
        d = self.config.head_dim
        q = self.q_proj(x_BLH).unflatten(-1, (-1, d))
        k = self.k_proj(x_BLH).unflatten(-1, (-1, d))
        v = self.v_proj(x_BLH).unflatten(-1, (-1, d))
        if self.config.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        rows = rotary_BLf2[:, :, None]
        return apply_rotary_half(q, rows), apply_rotary_half(k, rows), v

    def output(self, o_BLQd: Tensor) -> Tensor:
        """This part's share of the output, (B, L, H), from the attention of its output heads."""
        y: Tensor = self.o_proj(o_BLQd.flatten(2))
        return y

    def forward(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> Tensor:
        """Causal attention over all of x, without a cache; only for a whole layer."""
        q, k, v = (t.transpose(1, 2) for t in self.project(x_BLH, rotary_BLf2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(o.transpose(1, 2))

    def cuts(self) -> dict[str, tuple[Cut, ...]]:
        """Where each parameter comes from."""
        d, groups = self.config.head_dim, self.config.groups
        kv, out = self.part.kv_heads, self.part.output_heads
        keys = (range(kv.start * d, kv.stop * d),)
        rows = {"q_proj": (range(kv.start * groups * d, kv.stop * groups * d),), "k_proj": keys, "v_proj": keys}
        found: dict[str, tuple[Cut, ...]] = {f"{n}.weight": (Cut(name=f"{n}.weight", rows=r),) for n, r in rows.items()}
        found["o_proj.weight"] = (Cut(name="o_proj.weight", columns=range(out.start * d, out.stop * d)),)
        if self.config.bias:
            found |= {f"{n}.bias": (Cut(name=f"{n}.bias", rows=r),) for n, r in rows.items()}
        if self.config.output_bias:
            found["o_proj.bias"] = (Cut(name="o_proj.bias", zero=not self.part.first),)
        return found
