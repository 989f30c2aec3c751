"""DeepSeek-V2, V3 and R1: latent attention, dense first layers, then shared and routed experts.

Sources: the published config.json files; DeepSeek-V2 (arXiv 2405.04434); DeepSeek-V3 (arXiv 2412.19437).
"""

from __future__ import annotations

from helicube.errors import CheckpointError
from helicube.models.llm_config import ConfigFile, LlmConfig
from helicube.nn.mla import MlaConfig
from helicube.nn.moe import MoeConfig

__all__ = ["DEEPSEEK_TYPES", "deepseek_config"]

DEEPSEEK_TYPES = ("deepseek_v2", "deepseek_v3")


def deepseek_config(file: ConfigFile) -> LlmConfig:
    """Read the config.json of a DeepSeek model.

    Raises:
        CheckpointError: a value is missing or malformed, or asks for something that is not implemented.
    """
    third = file.data["model_type"] == "deepseek_v3"
    file.refuse("hidden_act", "silu")
    file.refuse("moe_layer_freq", 1)
    hidden = file.integer("hidden_size")
    attention = _attention(file, third, hidden)
    layers = file.integer("num_hidden_layers")
    dense = min(file.integer("first_k_dense_replace", 0), layers)
    return LlmConfig(
        name=file.name,
        vocab_size=file.integer("vocab_size"),
        hidden_size=hidden,
        num_layers=layers,
        attention=attention,
        rotary=file.rotary(attention.rope_size),
        dense_size=file.integer("intermediate_size") if dense else 0,
        num_dense_layers=dense,
        moe=_moe(file, third, hidden),
        mlp_bias=file.flag("mlp_bias"),
        norm_eps=file.number("rms_norm_eps", 1e-6),
        tied_embeddings=file.flag("tie_word_embeddings"),
        max_context=file.integer("max_position_embeddings", 0),
        eos_ids=file.ids("eos_token_id"),
        bos_id=next(iter(file.ids("bos_token_id")), -1),
    )


def _attention(file: ConfigFile, third: bool, hidden: int) -> MlaConfig:
    return MlaConfig(
        hidden_size=hidden,
        num_query_heads=file.integer("num_attention_heads"),
        nope_size=file.integer("qk_nope_head_dim"),
        rope_size=file.integer("qk_rope_head_dim"),
        value_size=file.integer("v_head_dim"),
        kv_rank=file.integer("kv_lora_rank"),
        q_rank=file.integer("q_lora_rank", 0),
        score_factor=file.score_factor(),
        bias=file.flag("attention_bias"),
        interleaved=not third or bool(file.data.get("rope_interleave", True)),
    )


def _moe(file: ConfigFile, third: bool, hidden: int) -> MoeConfig:
    num_experts, width = file.integer("n_routed_experts"), file.integer("moe_intermediate_size")
    method = file.data.get("topk_method") or ("noaux_tc" if third else "greedy")
    known = ("noaux_tc",) if third else ("greedy", "group_limited_greedy")
    if method not in known:
        raise CheckpointError(f"{file.name}: topk_method {method!r} is not one of {', '.join(known)}")
    if not third:
        file.refuse("norm_topk_prob", False)
        file.refuse("scoring_func", "softmax")
    else:
        file.refuse("scoring_func", "sigmoid")
    groups = 1 if method == "greedy" else file.integer("n_group", 1, least=1)
    open_groups = file.integer("topk_group", 1, least=1) if groups > 1 else 1
    if num_experts % groups or (third and groups > 1 and num_experts // groups < 2):
        raise CheckpointError(f"{file.name}: {num_experts} experts do not form {groups} groups of two or more")
    if open_groups > groups:
        raise CheckpointError(f"{file.name}: topk_group is {open_groups}; it must be at most n_group, {groups}")
    return MoeConfig(
        hidden_size=hidden,
        num_experts=num_experts,
        top_k=file.integer("num_experts_per_tok"),
        expert_size=width,
        shared_size=file.integer("n_shared_experts", 0) * width,
        sigmoid=third,
        num_groups=groups,
        top_groups=open_groups,
        normalise=third and bool(file.data.get("norm_topk_prob", True)),
        scaling=file.number("routed_scaling_factor", 1.0),
    )
