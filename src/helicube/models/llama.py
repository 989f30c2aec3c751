"""The Llama family: Llama, Mistral, Qwen2, Qwen3, and with experts Mixtral and Qwen3-MoE.

Sources: the published config.json files; Touvron et al., "Llama 2" (2023); Grattafiori et al., "The Llama 3 Herd of
Models" (2024); the Qwen3 report (2025).
"""

from __future__ import annotations

import re

from helicube.models.llm_config import ConfigFile, LlmConfig
from helicube.nn.gqa import GqaConfig
from helicube.nn.moe import MoeConfig

__all__ = ["LLAMA_TYPES", "llama_config", "mixtral_name"]

LLAMA_TYPES = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "mixtral")


def llama_config(file: ConfigFile) -> LlmConfig:
    """Read the config.json of a Llama-like model.

    Raises:
        CheckpointError: a value is missing or malformed, or asks for something that is not implemented.
    """
    kind = file.data["model_type"]
    _refuse_unknown(file, kind)
    hidden = file.integer("hidden_size", least=1)
    attention = _attention(file, kind, hidden)
    layers = file.integer("num_hidden_layers")
    moe = _moe(file, kind, hidden)
    return LlmConfig(
        name=file.name,
        vocab_size=file.integer("vocab_size"),
        hidden_size=hidden,
        num_layers=layers,
        attention=attention,
        rotary=file.rotary(attention.head_dim),
        dense_size=0 if moe else file.integer("intermediate_size"),
        num_dense_layers=0 if moe else layers,
        moe=moe,
        mlp_bias=file.flag("mlp_bias"),
        norm_eps=attention.norm_eps,
        tied_embeddings=file.flag("tie_word_embeddings"),
        max_context=file.integer("max_position_embeddings", 0),
        eos_ids=file.ids("eos_token_id"),
        bos_id=next(iter(file.ids("bos_token_id")), -1),
    )


def _attention(file: ConfigFile, kind: str, hidden: int) -> GqaConfig:
    heads, bias = file.integer("num_attention_heads", least=1), file.flag("attention_bias")
    return GqaConfig(
        hidden_size=hidden,
        num_query_heads=heads,
        num_kv_heads=file.integer("num_key_value_heads", heads),
        head_dim=file.integer("head_dim", hidden // heads),
        # Qwen2 has them on queries, keys and values without saying so.
        bias=bias or kind == "qwen2",
        output_bias=bias and kind != "qwen2",
        qk_norm=kind.startswith("qwen3"),
        norm_eps=file.number("rms_norm_eps", 1e-6),
    )


def _refuse_unknown(file: ConfigFile, kind: str) -> None:
    file.refuse("hidden_act", "silu")
    if kind in {"mistral", "mixtral"} or file.flag("use_sliding_window"):
        file.refuse("sliding_window", None)
    if kind == "qwen3_moe":
        file.refuse("decoder_sparse_step", 1)
        file.refuse("mlp_only_layers", [])


def _moe(file: ConfigFile, kind: str, hidden: int) -> MoeConfig | None:
    if kind == "mixtral":
        return MoeConfig(
            hidden_size=hidden,
            num_experts=file.integer("num_local_experts"),
            top_k=file.integer("num_experts_per_tok"),
            expert_size=file.integer("intermediate_size"),
            normalise=True,
        )
    if kind == "qwen3_moe":
        return MoeConfig(
            hidden_size=hidden,
            num_experts=file.integer("num_experts"),
            top_k=file.integer("num_experts_per_tok"),
            expert_size=file.integer("moe_intermediate_size"),
            normalise=file.flag("norm_topk_prob"),
        )
    return None


_MIXTRAL_WEIGHTS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}


def mixtral_name(published: str) -> str:
    """The name that other models give to a parameter of Mixtral."""
    name = published.replace(".block_sparse_moe.", ".mlp.")
    return re.sub(r"(experts\.\d+\.)(w[123])\.", lambda m: f"{m[1]}{_MIXTRAL_WEIGHTS[m[2]]}.", name)
