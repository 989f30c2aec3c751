"""A decoder-only language model: embedding, layers, norm, output head; whole or in part.

B rows, L tokens, H hidden size, V vocabulary, f rotary frequencies. `LanguageModel.forward` is the model on a single
device, read from top to bottom; decoding with a cache, on one rank or many, is `helicube.parallel.helix`, which uses
the same layers in the same order.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.models.llm_config import LlmConfig, whole
from helicube.nn.gqa import GqaConfig, GroupedQueryAttention
from helicube.nn.linear import convert, make_linear
from helicube.nn.mla import MultiHeadLatentAttention
from helicube.nn.mlp import SwiGLU
from helicube.nn.moe import MixtureOfExperts, swiglu_cuts
from helicube.nn.norm import RMSNorm
from helicube.nn.part import Cut, ModelPart
from helicube.nn.rotary_scaling import rotary_frequencies, rotary_rows

__all__ = ["DecoderLayer", "LanguageModel"]


class DecoderLayer(nn.Module):
    """x + attention(norm x), then x + ffn(norm x)."""

    def __init__(self, config: LlmConfig, part: ModelPart, index: int) -> None:
        super().__init__()
        self.config, self.part = config, part
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.self_attn: GroupedQueryAttention | MultiHeadLatentAttention = (
            GroupedQueryAttention(config.attention, part)
            if isinstance(config.attention, GqaConfig)
            else MultiHeadLatentAttention(config.attention, part)
        )
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.routes = config.moe is not None and index >= config.num_dense_layers
        self.mlp: SwiGLU | MixtureOfExperts = (
            MixtureOfExperts(config.moe, part)
            if config.moe is not None and self.routes
            else SwiGLU(config.hidden_size, len(part.dense_columns), bias=config.mlp_bias)
        )

    def forward(self, x_BLH: Tensor, rotary_BLf2: Tensor) -> Tensor:
        """Without a cache; only for a whole layer."""
        x = x_BLH + self.self_attn(self.input_layernorm(x_BLH), rotary_BLf2)
        y: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return y

    def cuts(self) -> dict[str, tuple[Cut, ...]]:
        """Where the dense FFN's parameters come from."""
        if self.routes:
            return {}
        return swiglu_cuts("mlp.", self.part.dense_columns, bias=self.config.mlp_bias, first=self.part.first)


class Trunk(nn.Module):
    """Everything below the output head; its attribute names are the published ones."""

    def __init__(self, config: LlmConfig, part: ModelPart) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(len(part.vocab), config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, part, i) for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)


class LanguageModel(nn.Module):
    """A part of a model, by default all of it.

    Args:
        config: the whole model.
        part: what this one holds.
    """

    def __init__(self, config: LlmConfig, part: ModelPart | None = None) -> None:
        super().__init__()
        self.config, self.part = config, part if part is not None else whole(config)
        self.model = Trunk(config, self.part)
        if not config.tied_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, len(self.part.vocab), bias=False)
        # The output head of tied embeddings in another format than the embeddings themselves.
        self.tied_head: nn.Module | None = None
        self._frequencies: dict[torch.device, Tensor] = {}

    @property
    def layers(self) -> list[DecoderLayer]:
        """The layers, typed."""
        return list(self.model.layers)  # type: ignore[arg-type]

    def embed(self, ids_BL: Tensor) -> Tensor:
        """Embeddings (B, L, H) of the ids in this part's vocabulary, and zeros for the others."""
        rows = self.part.vocab
        if len(rows) == self.config.vocab_size:
            y: Tensor = self.model.embed_tokens(ids_BL)
            return y
        here = (ids_BL >= rows.start) & (ids_BL < rows.stop)
        if not len(rows):
            return self.model.norm.weight.new_zeros(*ids_BL.shape, self.config.hidden_size)
        found: Tensor = self.model.embed_tokens(torch.where(here, ids_BL - rows.start, 0))
        return found * here[..., None]

    def head(self, x_BH: Tensor) -> Tensor:
        """Logits of this part's vocabulary, float32, from the hidden states after the last layer."""
        x = self.model.norm(x_BH)
        if self.tied_head is not None:
            logits: Tensor = self.tied_head(x)
        elif self.config.tied_embeddings:
            logits = F.linear(x, self.model.embed_tokens.weight)
        else:
            logits = self.lm_head(x)
        return logits.float()

    def convert_weights(self, form: str) -> None:
        """Hold all linear layers and the output head in a format of `nn.quantize`, in place.

        Embeddings, norms, routers and routed experts stay as they are, and so do MLA's products with the latent, which
        are no linear layers.

        Raises:
            InputError: there is no such format.
            CheckpointError: a weight is not finite.
        """
        convert(self, form)
        if self.config.tied_embeddings:
            self.tied_head = make_linear(self.model.embed_tokens.weight, None, form)

    def rotary(self, positions: Tensor, context: int = 0) -> Tensor:
        """Rotary rows (…, f, 2) of positions (…) in a request of at most `context` tokens."""
        device, config = positions.device, self.config.rotary
        frequency = self._frequencies.get(device)
        if frequency is None:
            frequency = rotary_frequencies(config, context).to(device)
            if config.kind != "dynamic":
                self._frequencies[device] = frequency
        return rotary_rows(positions, frequency, config.amplitude)

    def forward(self, ids_BL: Tensor) -> Tensor:
        """Logits (B, L, V) without a cache; only for a whole model."""
        positions = torch.arange(ids_BL.shape[1], device=ids_BL.device)
        rotary = self.rotary(positions, len(positions)).expand(len(ids_BL), -1, -1, -1)
        x = self.embed(ids_BL)
        for layer in self.layers:
            x = layer(x, rotary)
        return self.head(x)

    def cuts(self) -> dict[str, tuple[Cut, ...]]:
        """Where the embeddings come from."""
        rows = (self.part.vocab,)
        found: dict[str, tuple[Cut, ...]] = {
            "model.embed_tokens.weight": (Cut(name="model.embed_tokens.weight", rows=rows),)
        }
        if not self.config.tied_embeddings:
            found["lm_head.weight"] = (Cut(name="lm_head.weight", rows=rows),)
        return found
