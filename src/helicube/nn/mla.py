"""Multi-head latent attention with absorbed projections, whole or in part.

B rows, L tokens, H hidden size, Q query heads, n head size without rotary part, p rotary part, v value size, r latent
size. Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1 and appendix C.

The cache holds one latent per token, (r + p) values, shared by all heads: it is MQA with keys of r + p and values that
are the first r of them. Queries are carried into the latent space (W_UK absorbed), and the attention output is carried
out of it by W_UV, after any merge.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.nn.norm import RMSNorm
from helicube.nn.part import Cut, ModelPart
from helicube.nn.rotary import apply_rotary
from helicube.nn.rotary_scaling import apply_rotary_half

__all__ = ["MlaConfig", "MultiHeadLatentAttention"]

# The published implementations leave the norms of both latents at this value, whatever the model's own epsilon is.
LATENT_EPS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaConfig:
    """Sizes of one layer's attention."""

    hidden_size: int
    num_query_heads: int
    # Head size of queries and keys without the rotary part.
    nope_size: int
    # Rotary part, one per token in the keys, one per head in the queries.
    rope_size: int
    value_size: int
    # Latent of keys and values.
    kv_rank: int
    # Latent of queries; 0 is a full projection.
    q_rank: int = 0
    # Factor on scores beyond (n + p)^−½: the square of YaRN's temperature.
    score_factor: float = 1.0
    # Biases on the projections into the latents and on the output.
    bias: bool = False
    # Rotary pairs are neighbours (2i, 2i + 1), as published; False: (i, i + p/2).
    interleaved: bool = True


class MultiHeadLatentAttention(nn.Module):
    """Queries of all heads, and value up-projection and output projection of some."""

    def __init__(self, config: MlaConfig, part: ModelPart) -> None:
        super().__init__()
        c, heads, out = config, config.num_query_heads, len(part.output_heads)
        self.config, self.part = config, part
        self.num_kv_heads, self.key_size, self.value_size = 1, c.kv_rank + c.rope_size, c.kv_rank
        self.is_latent = True
        self.scale = (c.nope_size + c.rope_size) ** -0.5 * c.score_factor
        query = heads * (c.nope_size + c.rope_size)
        if c.q_rank:
            self.q_a_proj = nn.Linear(c.hidden_size, c.q_rank, bias=c.bias)
            self.q_a_layernorm = RMSNorm(c.q_rank, LATENT_EPS)
            self.q_b_proj = nn.Linear(c.q_rank, query, bias=False)
        else:
            self.q_proj = nn.Linear(c.hidden_size, query, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(c.hidden_size, c.kv_rank + c.rope_size, bias=c.bias)
        self.kv_a_layernorm = RMSNorm(c.kv_rank, LATENT_EPS)
        # The two halves of the published kv_b_proj, which interleaves them head by head.
        self.k_up = nn.Parameter(torch.empty(heads, c.nope_size, c.kv_rank))
        self.v_up = nn.Parameter(torch.empty(out, c.value_size, c.kv_rank))
        self.o_proj = nn.Linear(out * c.value_size, c.hidden_size, bias=c.bias)

    def project(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Absorbed queries (B, L, Q, r + p), the latent keys (B, L, 1, r + p), and their first r values."""
        q_nope, q_rope = self._queries(x_BLH, rotary_BLf2)
        latent, k_rope = self._latent(x_BLH, rotary_BLf2)
        q = torch.cat([torch.einsum("blqn,qnr->blqr", q_nope, self.k_up), q_rope], dim=-1)
        k = torch.cat([latent, k_rope], dim=-1)[:, :, None]
        return q, k, k[..., : self.value_size]

    def output(self, o_BLQr: Tensor) -> Tensor:
        """This part's share of the output, (B, L, H), from the latent attention of its output heads."""
        y: Tensor = self.o_proj(torch.einsum("blqr,qvr->blqv", o_BLQr, self.v_up).flatten(2))
        return y

    def forward(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> Tensor:
        """Causal attention over all of x with keys and values expanded per head; only for a whole layer.

        The twin of the absorbed form: same result, other order of products.
        """
        q_nope, q_rope = self._queries(x_BLH, rotary_BLf2)
        latent, k_rope = self._latent(x_BLH, rotary_BLf2)
        k_nope = torch.einsum("blr,qnr->blqn", latent, self.k_up)
        v = torch.einsum("blr,qvr->blqv", latent, self.v_up)
        k = torch.cat([k_nope, k_rope[:, :, None].expand(*k_nope.shape[:3], -1)], dim=-1)
        q = torch.cat([q_nope, q_rope], dim=-1)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        y: Tensor = self.o_proj(o.transpose(1, 2).flatten(2))
        return y

    def _queries(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> tuple[Tensor, Tensor]:
        c = self.config
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x_BLH))) if c.q_rank else self.q_proj(x_BLH)
        nope, rope = q.unflatten(-1, (c.num_query_heads, -1)).split([c.nope_size, c.rope_size], dim=-1)
        return nope, self._rotate(rope, rotary_BLf2[:, :, None])

    def _latent(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> tuple[Tensor, Tensor]:
        latent, rope = self.kv_a_proj_with_mqa(x_BLH).split([self.config.kv_rank, self.config.rope_size], dim=-1)
        return self.kv_a_layernorm(latent), self._rotate(rope, rotary_BLf2)

    def _rotate(self, x: Tensor, rows: Tensor) -> Tensor:
        return apply_rotary(x, rows) if self.config.interleaved else apply_rotary_half(x, rows)

    def cuts(self) -> dict[str, tuple[Cut, ...]]:
        """Where each parameter comes from that is not stored as it is."""
        c, out = self.config, self.part.output_heads
        pitch = c.nope_size + c.value_size
        keys = tuple(range(q * pitch, q * pitch + c.nope_size) for q in range(c.num_query_heads))
        values = tuple(range(q * pitch + c.nope_size, (q + 1) * pitch) for q in out)
        columns = range(out.start * c.value_size, out.stop * c.value_size)
        found: dict[str, tuple[Cut, ...]] = {
            "k_up": (Cut(name="kv_b_proj.weight", rows=keys),),
            "v_up": (Cut(name="kv_b_proj.weight", rows=values),),
            "o_proj.weight": (Cut(name="o_proj.weight", columns=columns),),
        }
        if c.bias:
            found["o_proj.bias"] = (Cut(name="o_proj.bias", zero=not self.part.first),)
        return found
