"""The published Cube shape tokenizer: points on a surface to shape ids, ids to latents, latents to a field.

Source: "Cube: A Roblox View of 3D Intelligence" (arXiv 2503.15475); parameter names are those of the published file.

Shapes: B objects, P points, N latents (shape tokens), D width, F frequencies, E codebook channels, K codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.nn.attention import attend, merge_heads, split_heads
from helicube.nn.mlp import GeluMLP
from helicube.nn.norm import PlainLayerNorm, RMSNorm

__all__ = ["CubeTokenizer", "TokenizerConfig"]

# eps of the RMSNorms on queries, keys and codes.
NORM_EPS = 1e-5
# Rows of codes compared at once in the nearest-code search; bounds memory.
SEARCH_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """Sizes of the tokenizer, in the published names."""

    # Whether one more learned query (dropped after the encoder) precedes the latents.
    encoder_with_cls_token: bool = True
    # Latents, and so shape tokens, per object.
    num_encoder_latents: int = 1024
    # Latents of the decoder; 0 means the same.
    num_decoder_latents: int = 0
    # Channels of the codebook, and width and heads of the layers.
    embed_dim: int = 32
    width: int = 768
    num_heads: int = 12
    # Outputs of the field: 1 is an occupancy logit.
    out_dim: int = 1
    # eps of the layer norms.
    eps: float = 1e-6
    # Frequencies of the point embedder.
    num_freqs: int = 128
    # Channels beside the position of an input point (a normal has 3), and whether they are embedded too.
    point_feats: int = 3
    embed_point_feats: bool = False
    # Encoder layers; those at the levels attend to the points, the others to each other.
    num_encoder_layers: int = 13
    encoder_cross_attention_levels: tuple[int, ...] = (0, 2, 4, 8)
    num_decoder_layers: int = 24
    num_codes: int = 16384

    @property
    def num_latents(self) -> int:
        return self.num_decoder_latents or self.num_encoder_latents


class PhaseEmbedder(nn.Module):
    """x to [x, cos fm + cos pm, sin fm + sin pm], fm = x·W (learned), pm = x·π/2 + carrier (fixed)."""

    def __init__(self, num_freqs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, num_freqs))

    def carrier(self) -> Tensor:
        """Fixed phases, (F,) float32."""
        num_freqs = self.weight.shape[1]
        ramp = torch.arange(num_freqs, device=self.weight.device, dtype=torch.float32) / (num_freqs - 1)
        return 2 * math.pi * ((num_freqs / 8) ** (1 - ramp) + ramp)

    def forward(self, x_BP3: Tensor) -> Tensor:
        """(B, P, 3) to (B, P, 3 + 6F), coordinate-major."""
        # In float32: the largest phases are a hundred radians, of which bfloat16 would leave no fraction.
        x = x_BP3.float().unsqueeze(-1)
        fm, pm = x * self.weight.float(), x * (math.pi / 2) + self.carrier()
        cos, sin = fm.cos() + pm.cos(), fm.sin() + pm.sin()
        return torch.cat([x_BP3.float(), cos.flatten(-2), sin.flatten(-2)], dim=-1).to(self.weight.dtype)


class TwoLayer(nn.Module):
    """Linear, SiLU, Linear."""

    def __init__(self, wide_in: int, width: int) -> None:
        super().__init__()
        self.in_layer = nn.Linear(wide_in, width)
        self.out_layer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out_layer(F.silu(self.in_layer(x)))
        return y


class CrossAttention(nn.Module):
    """Queries of one set, keys and values of another; no normalisation of queries and keys."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.c_q = nn.Linear(config.width, config.width)
        self.c_k = nn.Linear(config.width, config.width)
        self.c_v = nn.Linear(config.width, config.width)
        self.c_proj = nn.Linear(config.width, config.width)

    def keys_values(self, points_BPD: Tensor) -> tuple[Tensor, Tensor]:
        return split_heads(self.c_k(points_BPD), self.num_heads), split_heads(self.c_v(points_BPD), self.num_heads)

    def forward(self, x_BND: Tensor, keys_values: tuple[Tensor, Tensor]) -> Tensor:
        attended = attend(split_heads(self.c_q(x_BND), self.num_heads), *keys_values)
        y: Tensor = self.c_proj(merge_heads(attended))
        return y


class SelfAttention(nn.Module):
    """Self-attention with normalised queries and keys."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.c_qk = nn.Linear(config.width, 2 * config.width)
        self.c_v = nn.Linear(config.width, config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self.q_norm = RMSNorm(config.width // config.num_heads, NORM_EPS)
        self.k_norm = RMSNorm(config.width // config.num_heads, NORM_EPS)

    def forward(self, x_BND: Tensor) -> Tensor:
        q, k = self.c_qk(x_BND).chunk(2, dim=-1)
        q, k, v = (split_heads(t, self.num_heads) for t in (q, k, self.c_v(x_BND)))
        y: Tensor = self.c_proj(merge_heads(attend(self.q_norm(q), self.k_norm(k), v)))
        return y


class CrossBlock(nn.Module):
    """Residual cross-attention, then a residual MLP."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.ln_1 = PlainLayerNorm(config.width, config.eps)
        self.ln_2 = PlainLayerNorm(config.width, config.eps)
        self.attn = CrossAttention(config)
        self.ln_f = PlainLayerNorm(config.width, config.eps)
        self.mlp = GeluMLP(config.width, 4 * config.width)

    def keys_values(self, points_BPD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the attended set, which many batches of queries may share."""
        return self.attn.keys_values(self.ln_2(points_BPD))

    def forward(self, x_BND: Tensor, keys_values: tuple[Tensor, Tensor]) -> Tensor:
        x_BND = x_BND + self.attn(self.ln_1(x_BND), keys_values)
        y: Tensor = x_BND + self.mlp(self.ln_f(x_BND))
        return y


class SelfBlock(nn.Module):
    """Residual self-attention, then a residual MLP."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.ln_1 = PlainLayerNorm(config.width, config.eps)
        self.attn = SelfAttention(config)
        self.ln_2 = PlainLayerNorm(config.width, config.eps)
        self.mlp = GeluMLP(config.width, 4 * config.width)

    def forward(self, x_BND: Tensor) -> Tensor:
        x_BND = x_BND + self.attn(self.ln_1(x_BND))
        y: Tensor = x_BND + self.mlp(self.ln_2(x_BND))
        return y


class Encoder(nn.Module):
    """Learned queries gather what the points say."""

    def __init__(self, config: TokenizerConfig, embedder: PhaseEmbedder) -> None:
        super().__init__()
        self.config = config
        self.embedder = embedder
        self.feat_in = TwoLayer(3 + 6 * config.num_freqs + config.point_feats, config.width)
        self.num_cls = int(config.encoder_with_cls_token)
        self.query = nn.Parameter(torch.randn(self.num_cls + config.num_encoder_latents, config.width) * 0.02)
        levels = config.encoder_cross_attention_levels
        self.blocks = nn.ModuleList(
            CrossBlock(config) if i in levels else SelfBlock(config) for i in range(config.num_encoder_layers)
        )
        self.ln_f = nn.LayerNorm(config.width, eps=config.eps)

    def forward(self, points_BP3: Tensor, feats_BPC: Tensor) -> Tensor:
        """Points and their normals to (B, N, D)."""
        points = self.feat_in(torch.cat([self.embedder(points_BP3), feats_BPC.to(self.query)], dim=-1))
        h = self.query.expand(len(points), -1, -1)
        for block in self.blocks:
            h = block(h, block.keys_values(points)) if isinstance(block, CrossBlock) else block(h)
        latents: Tensor = self.ln_f(h)[:, self.num_cls :]
        return latents


class SphericalVQ(nn.Module):
    """Nearest code on a sphere: codes and states pass the same RMSNorm."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.codebook = nn.Embedding(config.num_codes, config.embed_dim)
        self.c_in = nn.Linear(config.width, config.embed_dim)
        # In the published file, and unused at inference.
        self.c_x = nn.Linear(config.width, config.embed_dim)
        self.c_out = nn.Linear(config.embed_dim, config.width)
        self.norm = RMSNorm(config.embed_dim, NORM_EPS)
        self.cb_weight = nn.Parameter(torch.ones(config.embed_dim))
        self.cb_bias = nn.Parameter(torch.zeros(config.embed_dim))

    def codes(self) -> Tensor:
        """The normalised codebook, (K, E)."""
        normalised: Tensor = self.norm(self.codebook.weight * self.cb_weight + self.cb_bias)
        return normalised

    def to_ids(self, h_BND: Tensor) -> Tensor:
        """(B, N, D) to the (B, N) ids of the nearest codes by Euclidean distance."""
        z = self.norm(self.c_in(h_BND))
        codes = self.codes()
        nearest = [torch.cdist(part, codes).argmin(dim=-1) for part in z.flatten(0, -2).split(SEARCH_ROWS)]
        return torch.cat(nearest).view(z.shape[:-1])

    def from_ids(self, ids_BN: Tensor) -> Tensor:
        """(B, N) ids to (B, N, D)."""
        h: Tensor = self.c_out(self.codes()[ids_BN])
        return h


class Bottleneck(nn.Module):
    """The quantiser, under the published prefix."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.block = SphericalVQ(config)


class LatentDecoder(nn.Module):
    """Quantised latents talk to each other."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.positional_encodings = nn.Parameter(torch.randn(config.num_latents, config.width) * 0.02)
        self.blocks = nn.ModuleList(SelfBlock(config) for _ in range(config.num_decoder_layers))

    def forward(self, h_BND: Tensor) -> Tensor:
        h = h_BND + self.positional_encodings
        for block in self.blocks:
            h = block(h)
        return h


class OccupancyDecoder(nn.Module):
    """Query points attend to the latents."""

    def __init__(self, config: TokenizerConfig, embedder: PhaseEmbedder) -> None:
        super().__init__()
        self.embedder = embedder
        self.query_in = TwoLayer(3 + 6 * config.num_freqs, config.width)
        self.attn_out = CrossBlock(config)
        self.ln_f = nn.LayerNorm(config.width, eps=config.eps)
        self.c_head = nn.Linear(config.width, config.out_dim)

    def forward(self, points_BP3: Tensor, keys_values: tuple[Tensor, Tensor]) -> Tensor:
        x = self.attn_out(self.query_in(self.embedder(points_BP3)), keys_values)
        logits: Tensor = self.c_head(self.ln_f(x))
        return logits


class CubeTokenizer(nn.Module):
    """Encoder, quantiser, decoder and field; the embedder is one module in two places."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedder = PhaseEmbedder(config.num_freqs)
        self.encoder = Encoder(config, self.embedder)
        self.bottleneck = Bottleneck(config)
        self.decoder = LatentDecoder(config)
        self.occupancy_decoder = OccupancyDecoder(config, self.embedder)

    def encode(self, points_BP6: Tensor) -> Tensor:
        """Surface points with normals, longest side of the object spanning ±0.96, to (B, N) ids."""
        return self.bottleneck.block.to_ids(self.encoder(points_BP6[..., :3], points_BP6[..., 3:]))

    def decode(self, ids_BN: Tensor) -> Tensor:
        """(B, N) ids to (B, N, D) latents."""
        latents: Tensor = self.decoder(self.bottleneck.block.from_ids(ids_BN))
        return latents

    def field(self, latents_BND: Tensor, points_BP3: Tensor) -> Tensor:
        """Occupancy logits, (B, P), > 0 inside, at points of the cube [−1.05, 1.05]³."""
        keys_values = self.occupancy_decoder.attn_out.keys_values(latents_BND)
        logits: Tensor = self.occupancy_decoder(points_BP3, keys_values)[..., 0]
        return logits
