"""Tiny language models with random weights, one of each kind: for tests, and to measure layouts without a download."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from helicube.errors import InputError
from helicube.models.llm_config import LlmConfig
from helicube.models.loading import published_shapes
from helicube.models.loading_open import language_config
from helicube.models.loading_sources import DictSource
from helicube.specs.huggingface import model_from_config
from helicube.specs.model import ModelSpec

__all__ = ["SMALL", "TINY", "random_source", "tiny_config", "tiny_spec"]

_COMMON: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": False,
    "eos_token_id": 1,
}
_LLAMA = _COMMON | {"model_type": "llama", "num_key_value_heads": 4, "head_dim": 8}
_QWEN3_MOE = _LLAMA | {
    "model_type": "qwen3_moe",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
}
_DEEPSEEK = _COMMON | {
    "num_key_value_heads": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "kv_lora_rank": 12,
    "q_lora_rank": 20,
    "moe_intermediate_size": 16,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 1.5,
}
_V3 = _DEEPSEEK | {
    "model_type": "deepseek_v3",
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "norm_topk_prob": True,
}

# Name -> content of a config.json.
TINY: Mapping[str, Mapping[str, Any]] = {
    "tiny-mha": _LLAMA | {"num_key_value_heads": 8},
    "tiny-gqa": _LLAMA,
    "tiny-mqa": _LLAMA | {"num_key_value_heads": 1},
    # SmolLM2's 9 query and 3 KV heads, Qwen3's norms, one embedding for both ends, widths that divide by nothing.
    "tiny-uneven": _LLAMA
    | {
        "model_type": "qwen3",
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 37,
        "tie_word_embeddings": True,
    },
    "tiny-mha-moe": _QWEN3_MOE | {"num_key_value_heads": 8},
    "tiny-gqa-moe": _QWEN3_MOE,
    "tiny-mqa-moe": _QWEN3_MOE | {"num_key_value_heads": 1},
    "tiny-mixtral": _LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
    "tiny-mla": _V3 | {"first_k_dense_replace": 2},
    "tiny-mla-moe": _V3,
    "tiny-deepseek-v2": _DEEPSEEK
    | {
        "model_type": "deepseek_v2",
        "topk_method": "group_limited_greedy",
        "scoring_func": "softmax",
        "norm_topk_prob": False,
    },
}


# Large enough that a step is more than overhead, small enough that eight processes on two cores run it.
SMALL: Mapping[str, Mapping[str, Any]] = {
    "small-gqa": _LLAMA
    | {
        "vocab_size": 1024,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 32,
        "intermediate_size": 768,
        "max_position_embeddings": 1 << 20,
    },
    "small-mla-moe": _V3
    | {
        "vocab_size": 1024,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
        "kv_lora_rank": 64,
        "q_lora_rank": 96,
        "intermediate_size": 768,
        "moe_intermediate_size": 128,
        "n_routed_experts": 16,
        "max_position_embeddings": 1 << 20,
    },
}


def tiny_config(name: str) -> LlmConfig:
    """Configuration of a tiny model.

    Raises:
        InputError: the name is unknown.
    """
    return language_config(dict(_content(name)), name)


def tiny_spec(name: str) -> ModelSpec:
    """The same as a `ModelSpec`."""
    return model_from_config(dict(_content(name)), name, source="helicube.models.tiny")


def _content(name: str) -> Mapping[str, Any]:
    known = {**TINY, **SMALL}
    if name not in known:
        raise InputError(f"random model {name!r} is unknown; choose one of {', '.join(known)}")
    return known[name]


def random_source(config: LlmConfig, seed: int = 0) -> DictSource:
    """Random tensors of a model, scaled so that activations and logits are of order one."""
    generator = torch.Generator().manual_seed(seed)

    def draw(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        noise = torch.randn(shape, generator=generator)
        if name.endswith("norm.weight"):
            return 1 + 0.2 * noise
        return noise * (0.1 if len(shape) == 1 else shape[-1] ** -0.5)

    return DictSource({name: draw(name, shape) for name, shape in published_shapes(config).items()})
