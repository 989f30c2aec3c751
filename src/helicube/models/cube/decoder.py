"""The Cube decoder: a dual-stream transformer from conditioning tokens to shape tokens.

Source: "Cube: A Roblox View of 3D Intelligence" (arXiv 2503.15475); parameter names are those of the published file.
The condition is causal among itself and never sees the shape, so its keys and values are computed once per prompt
(`prefill`), and a step reads the weights of the shape stream alone.

Shapes: B rows, S conditioning tokens, L shape tokens, D width, H heads, d head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from helicube.nn.attention import attend, merge_heads, split_heads
from helicube.nn.cache import CacheSpec, LayerCache, LayerSpec
from helicube.nn.mlp import SwiGLU
from helicube.nn.norm import PlainLayerNorm, RMSNorm
from helicube.nn.rotary import apply_rotary, rotary_table

__all__ = ["CubeDecoder", "DecoderConfig", "Places"]

# eps of the RMSNorm on queries and keys.
QK_EPS = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Sizes of the decoder, in the published names."""

    # Dual-stream layers, then single-stream layers.
    n_layer: int = 23
    n_single_layer: int = 1
    # Heads and width.
    n_head: int = 12
    n_embd: int = 1536
    # Base of the rotary frequencies.
    rope_theta: float = 10000.0
    # Whether Linear layers (other than c_qk) have a bias.
    bias: bool = True
    # eps of the layer norms.
    eps: float = 1e-6
    # Shape codes; three special ids follow them: BOS, EOS, padding.
    shape_model_vocab_size: int = 16384
    # Channels of the tokenizer's codebook, projected into the token table on loading.
    shape_model_embed_dim: int = 32
    # Channels of the text encoder's states.
    text_model_embed_dim: int = 768
    # Whether one more conditioning token holds the size of the bounding box.
    use_bbox: bool = True
    # Positions with a vector of their own that is added to the token's; 0, as published, has none. Where a sequence is
    # a lattice in a fixed order, it tells which cell a token describes, which rotation alone does not.
    num_positions: int = 0

    @property
    def vocab_size(self) -> int:
        return self.shape_model_vocab_size + 3

    @property
    def bos_id(self) -> int:
        return self.shape_model_vocab_size

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head


class QueryKeyValue(nn.Module):
    """Normalised queries and keys, and values, of one stream."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.num_heads = config.n_head
        self.c_qk = nn.Linear(config.n_embd, 2 * config.n_embd, bias=False)
        self.c_v = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.q_norm = RMSNorm(config.head_dim, QK_EPS)
        self.k_norm = RMSNorm(config.head_dim, QK_EPS)

    def forward(self, x_BLD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k = self.c_qk(x_BLD).chunk(2, dim=-1)
        q, k, v = (split_heads(t, self.num_heads) for t in (q, k, self.c_v(x_BLD)))
        return self.q_norm(q), self.k_norm(k), v


class KeyValue(nn.Module):
    """Keys and values of the condition in the last dual layer, which asks nothing more of it."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.num_heads = config.n_head
        self.c_k = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.c_v = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.k_norm = RMSNorm(config.head_dim, QK_EPS)

    def forward(self, c_BSD: Tensor) -> tuple[Tensor, Tensor]:
        k, v = (split_heads(t, self.num_heads) for t in (self.c_k(c_BSD), self.c_v(c_BSD)))
        return self.k_norm(k), v


class Post(nn.Module):
    """Residual output projection, then a residual SwiGLU MLP."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.ln_3 = PlainLayerNorm(config.n_embd, config.eps)
        self.mlp = SwiGLU(config.n_embd, 4 * config.n_embd, config.bias)

    def forward(self, x_BLD: Tensor, attended_BHLd: Tensor) -> Tensor:
        x_BLD = x_BLD + self.c_proj(merge_heads(attended_BHLd))
        y_BLD: Tensor = x_BLD + self.mlp(self.ln_3(x_BLD))
        return y_BLD


class JointAttention(nn.Module):
    """The two streams' projections; the last layer asks only keys and values of the condition."""

    def __init__(self, config: DecoderConfig, last: bool) -> None:
        super().__init__()
        self.pre_x = QueryKeyValue(config)
        self.pre_c = KeyValue(config) if last else QueryKeyValue(config)


class DualBlock(nn.Module):
    """Both streams attend jointly; each has weights of its own."""

    def __init__(self, config: DecoderConfig, last: bool) -> None:
        super().__init__()
        self.ln_1 = PlainLayerNorm(config.n_embd, config.eps)
        self.ln_2 = PlainLayerNorm(config.n_embd, config.eps)
        self.attn = JointAttention(config, last)
        self.post_1 = Post(config)
        self.post_2: Post | None = None if last else Post(config)

    def condition(self, c_BSD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The condition's next state, and its keys and values; all at position 0, where rotation does nothing."""
        if self.post_2 is None:
            k, v = self.attn.pre_c(self.ln_2(c_BSD))
            return c_BSD, k, v
        q, k, v = self.attn.pre_c(self.ln_2(c_BSD))
        length = c_BSD.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=c_BSD.device).tril()
        return self.post_2(c_BSD, attend(q, k, v, causal)), k, v

    def forward(self, x_BLD: Tensor, rotary: Tensor, cache: LayerCache) -> Tensor:
        q, k, v = self.attn.pre_x(self.ln_1(x_BLD))
        k, v, mask = cache.extend(apply_rotary(k, rotary), v)
        y_BLD: Tensor = self.post_1(x_BLD, attend(apply_rotary(q, rotary), k, v, mask))
        return y_BLD


class SingleAttention(QueryKeyValue):
    """Self-attention of the shape stream alone."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)


class SingleBlock(nn.Module):
    """Ordinary pre-norm layer on the shape stream."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.ln_1 = PlainLayerNorm(config.n_embd, config.eps)
        self.attn = SingleAttention(config)
        self.ln_2 = PlainLayerNorm(config.n_embd, config.eps)
        self.mlp = SwiGLU(config.n_embd, 4 * config.n_embd, config.bias)

    def forward(self, x_BLD: Tensor, rotary: Tensor, cache: LayerCache) -> Tensor:
        q, k, v = self.attn(self.ln_1(x_BLD))
        k, v, mask = cache.extend(apply_rotary(k, rotary), v)
        x_BLD = x_BLD + self.attn.c_proj(merge_heads(attend(apply_rotary(q, rotary), k, v, mask)))
        y_BLD: Tensor = x_BLD + self.mlp(self.ln_2(x_BLD))
        return y_BLD


class Transformer(nn.Module):
    """Token table and layers, under the published prefix."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.num_positions, config.n_embd) if config.num_positions else None
        dual = [DualBlock(config, last=i == config.n_layer - 1) for i in range(config.n_layer)]
        self.dual_blocks = nn.ModuleList(dual)
        self.single_blocks = nn.ModuleList(SingleBlock(config) for _ in range(config.n_single_layer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What a decoder knows of positions: of consecutive ones, or of one per row of a batch."""

    # Rotary table, (L, d/2, 2) or (B, 1, 1, d/2, 2).
    rotary: Tensor
    # What is added to tokens, (L, D) or (B, 1, D); None where the decoder has no vectors of positions.
    added: Tensor | None

    def range(self, start: int, stop: int) -> Places:
        """Of consecutive positions, some."""
        return Places(rotary=self.rotary[start:stop], added=None if self.added is None else self.added[start:stop])

    def rows(self, positions_B: Tensor) -> Places:
        """Of consecutive positions, one for each row of a batch."""
        added = None if self.added is None else self.added[positions_B][:, None]
        return Places(rotary=self.rotary[positions_B][:, None, None], added=added)


class CubeDecoder(nn.Module):
    """Conditioning tokens and past shape ids to logits of the next one."""

    bbox_proj: nn.Linear | None

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.text_proj = nn.Linear(config.text_model_embed_dim, config.n_embd, bias=config.bias)
        self.shape_proj = nn.Linear(config.shape_model_embed_dim, config.n_embd)
        self.bbox_proj = nn.Linear(3, config.n_embd) if config.use_bbox else None
        self.transformer = Transformer(config)
        self.ln_f = PlainLayerNorm(config.n_embd, config.eps)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    @property
    def device(self) -> torch.device:
        return self.transformer.wte.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Of activations; matrices may be quantised."""
        return self.transformer.wte.weight.dtype

    @torch.no_grad()
    def adopt_codebook(self, codebook_KF: Tensor) -> None:
        """Replace the rows of the codes in the token table by the projected codebook of the tokenizer."""
        projected = self.shape_proj(codebook_KF.to(self.shape_proj.weight.dtype))
        self.transformer.wte.weight[: self.config.shape_model_vocab_size].copy_(projected)

    def cache_spec(self, num_text: int, max_tokens: int) -> CacheSpec:
        """What a cache for `num_text` text states and `max_tokens` shape tokens has to hold."""
        c = self.config
        num_prefix = num_text + int(c.use_bbox)
        dual = LayerSpec(num_heads=c.n_head, head_dim=c.head_dim, num_prefix=num_prefix)
        single = LayerSpec(num_heads=c.n_head, head_dim=c.head_dim)
        return CacheSpec(layers=(dual,) * c.n_layer + (single,) * c.n_single_layer, max_tokens=max_tokens)

    def step_modules(self) -> list[nn.Module]:
        """What a decode step reads whole: the shape stream and the output head, but not the condition's stream."""
        dual = cast("Iterable[DualBlock]", self.transformer.dual_blocks)
        streams = [module for block in dual for module in (block.attn.pre_x, block.post_1)]
        return [*streams, *self.transformer.single_blocks, self.lm_head]

    def condition(self, text_BTC: Tensor, bbox_B3: Tensor | None = None) -> Tensor:
        """Conditioning tokens (B, S, D): the projected text states, then the box (zeros where none is asked for).

        Args:
            text_BTC: text encoder states.
            bbox_B3: x, y, z sizes of the box.
        """
        cond: Tensor = self.text_proj(text_BTC)
        if self.bbox_proj is None:
            return cond
        if bbox_B3 is None:
            bbox_B3 = torch.zeros(len(text_BTC), 3)
        box = self.bbox_proj(bbox_B3.to(cond))
        return torch.cat([cond, box[:, None]], dim=1)

    def prefill(self, cond_BSD: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the condition in each dual layer; (B, H, S, d) each."""
        pairs: list[tuple[Tensor, Tensor]] = []
        for block in cast("Iterable[DualBlock]", self.transformer.dual_blocks):
            cond_BSD, k, v = block.condition(cond_BSD)
            pairs.append((k, v))
        return pairs

    def decode(self, ids_BL: Tensor, places: Places, caches: Sequence[LayerCache]) -> Tensor:
        """Logits (B, L, V) after each of the given ids.

        Args:
            ids_BL: shape ids, BOS first in a sequence.
            places: the ids' positions.
            caches: one per layer, dual layers first; those hold the condition's keys and values already.
        """
        logits: Tensor = self.lm_head(self.hidden(self.transformer.wte(ids_BL), places, caches))
        return logits

    def hidden(self, x_BLD: Tensor, places: Places, caches: Sequence[LayerCache]) -> Tensor:
        """Normalised states (B, L, D) from which `lm_head` makes logits, of rows of the token table."""
        if places.added is not None:
            x_BLD = x_BLD + places.added
        blocks = [*self.transformer.dual_blocks, *self.transformer.single_blocks]
        for block, cache in zip(blocks, caches, strict=True):
            x_BLD = block(x_BLD, places.rotary, cache)
        normalised: Tensor = self.ln_f(x_BLD)
        return normalised

    def forward(self, ids_BL: Tensor, cond_BSD: Tensor) -> Tensor:
        """Logits (B, L, V) of a whole sequence at once, without a cache: the reference for decoding step by step."""
        logits: Tensor = self.lm_head(self.whole(self.transformer.wte(ids_BL), cond_BSD))
        return logits

    def whole(self, x_BLD: Tensor, cond_BSD: Tensor) -> Tensor:
        """Normalised states (B, L, D) of a whole sequence at once, of rows of the token table; for training."""
        length, dual = x_BLD.shape[1], self.config.n_layer
        causal = torch.ones(length, length, dtype=torch.bool, device=x_BLD.device).tril()
        caches: list[LayerCache] = [WholeSequence(causal, k, v) for k, v in self.prefill(cond_BSD)]
        caches += [WholeSequence(causal) for _ in range(self.config.n_single_layer)]
        assert len(caches) == dual + self.config.n_single_layer
        return self.hidden(x_BLD, self.places(length), caches)

    def places(self, length: int) -> Places:
        """Positions 0 … length − 1, on the decoder's device."""
        rotary = rotary_table(length, self.config.head_dim, self.config.rope_theta, self.device)
        wpe = self.transformer.wpe
        assert wpe is None or length <= self.config.num_positions, f"{length} of {self.config.num_positions} positions"
        return Places(rotary=rotary, added=None if wpe is None else wpe.weight[:length])


class WholeSequence:
    """A cache that remembers nothing: all tokens come at once, after the condition's keys and values."""

    def __init__(self, causal_LL: Tensor, k_BHSd: Tensor | None = None, v_BHSd: Tensor | None = None) -> None:
        self.causal, self.k, self.v = causal_LL, k_BHSd, v_BHSd

    def extend(self, k_BHLd: Tensor, v_BHLd: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        if self.k is None or self.v is None:
            return k_BHLd, v_BHLd, self.causal
        past = self.causal.new_ones(len(self.causal), self.k.shape[2])
        mask = torch.cat([past, self.causal], dim=1)
        return torch.cat([self.k, k_BHLd], dim=2), torch.cat([self.v, v_BHLd], dim=2), mask
