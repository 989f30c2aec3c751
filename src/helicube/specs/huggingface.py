"""ModelSpec from the content of a Hugging Face config.json. A family not listed here is an error, never a guess."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helicube.errors import InputError
from helicube.specs.attention import AttentionSpec, LinearAttentionSpec
from helicube.specs.model import FfnSpec, ModelSpec
from helicube.specs.names import nearest_names

__all__ = ["MODEL_TYPES", "model_from_config"]


# No size of a model comes near; larger ones only overflow what is computed from them.
_LARGEST = 10**9
_MOST_LAYERS = 10**5


class _Config:
    """Typed access to a config.json; the first key present wins."""

    def __init__(self, data: dict[str, Any], name: str) -> None:
        self.data = data
        self.name = name

    def integer(self, *keys: str, default: int | None = None) -> int:
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"{self.name}: {key} is {value!r}; it must be a whole number")
            if value < 0:
                raise InputError(f"{self.name}: {key} is {value}; it must not be negative")
            if value > _LARGEST:
                raise InputError(f"{self.name}: {key} is above {_LARGEST:,}: {value}; correct it")
            return value
        if default is None:
            raise InputError(f"{self.name}: {' or '.join(keys)} is missing; add it to the file")
        return default

    def positive(self, *keys: str, default: int | None = None) -> int:
        value = self.integer(*keys, default=default)
        if value == 0:
            raise InputError(f"{self.name}: {keys[0]} is 0; it must be positive")
        return value

    def flag(self, key: str) -> bool:
        value = self.data.get(key)
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{self.name}: {key} is {value!r}; it must be true or false")
        return bool(value)

    def layer_kinds(self, layers: int) -> list[str]:
        """`layer_types`, one word for each layer; empty where the file leaves it out."""
        kinds = self.data.get("layer_types")
        if kinds is None:
            return []
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds) or len(kinds) != layers:
            raise InputError(f"{self.name}: layer_types must be a list of {layers} words, one for each layer")
        return kinds


def _gqa(c: _Config, **options: Any) -> AttentionSpec:
    heads = c.positive("num_attention_heads")
    size = c.positive("head_dim", default=c.positive("hidden_size") // heads)
    kv_heads = c.positive("num_key_value_heads", default=heads)
    return AttentionSpec(num_query_heads=heads, num_kv_heads=kv_heads, qk_head_size=size, v_head_size=size, **options)


def _mla(c: _Config) -> AttentionSpec:
    rope = c.positive("qk_rope_head_dim")
    return AttentionSpec(
        num_query_heads=c.positive("num_attention_heads"),
        num_kv_heads=1,
        qk_head_size=c.positive("qk_nope_head_dim") + rope,
        v_head_size=c.positive("v_head_dim"),
        kv_lora_rank=c.positive("kv_lora_rank"),
        rope_head_size=rope,
        q_lora_rank=c.integer("q_lora_rank", default=0),
        index_heads=c.integer("index_n_heads", default=0),
        index_head_size=c.integer("index_head_dim", default=0),
        index_top_k=c.integer("index_topk", default=0),
    )


def _dense_ffn(c: _Config) -> FfnSpec:
    layers = c.positive("num_hidden_layers")
    return FfnSpec(dense_size=c.positive("intermediate_size"), num_dense_layers=layers, bias=c.flag("mlp_bias"))


def _moe_ffn(c: _Config, *, width: str, experts: str, **options: bool) -> FfnSpec:
    dense = c.integer("first_k_dense_replace", default=0)
    size = c.positive(width)
    shared = c.integer("shared_expert_intermediate_size", "shared_intermediate_size", default=0)
    return FfnSpec(
        dense_size=c.positive("intermediate_size") if dense else 0,
        num_dense_layers=dense,
        num_experts=c.positive(experts),
        top_k=c.positive("num_experts_per_tok"),
        expert_size=size,
        shared_size=shared or c.integer("n_shared_experts", default=0) * size,
        num_groups=c.integer("n_group", default=1) or 1,
        top_groups=c.integer("topk_group", default=1) or 1,
        **options,
    )


def _llama(c: _Config) -> dict[str, Any]:
    return {"attention": _gqa(c, bias=c.flag("attention_bias")), "ffn": _dense_ffn(c)}


def _qwen2(c: _Config) -> dict[str, Any]:
    return {"attention": _gqa(c, bias=True), "ffn": _dense_ffn(c)}


def _qwen3(c: _Config) -> dict[str, Any]:
    return {"attention": _gqa(c, qk_norm=True), "ffn": _dense_ffn(c)}


def _qwen3_moe(c: _Config) -> dict[str, Any]:
    if c.data.get("mlp_only_layers"):
        raise InputError(f"{c.name}: mlp_only_layers is not supported; only dense layers that come first are")
    return {
        "attention": _gqa(c, qk_norm=True),
        "ffn": _moe_ffn(c, width="moe_intermediate_size", experts="num_experts"),
    }


def _mixtral(c: _Config) -> dict[str, Any]:
    return {"attention": _gqa(c), "ffn": _moe_ffn(c, width="intermediate_size", experts="num_local_experts")}


def _minimax(c: _Config) -> dict[str, Any]:
    norm, bias = c.flag("use_qk_norm"), c.flag("use_routing_bias")
    ffn = _moe_ffn(c, width="intermediate_size", experts="num_local_experts", router_bias=bias)
    return {"attention": _gqa(c, qk_norm=norm, qk_norm_full=norm), "ffn": ffn}


def _glm4_moe(c: _Config) -> dict[str, Any]:
    attention = _gqa(c, bias=c.flag("attention_bias"), qk_norm=c.flag("use_qk_norm"))
    ffn = _moe_ffn(c, width="moe_intermediate_size", experts="n_routed_experts", router_bias=True)
    return {"attention": attention, "ffn": ffn}


def _deepseek(c: _Config) -> dict[str, Any]:
    bias = c.data.get("topk_method") == "noaux_tc"
    ffn = _moe_ffn(c, width="moe_intermediate_size", experts="n_routed_experts", router_bias=bias)
    return {"attention": _mla(c), "ffn": ffn}


def _gpt_oss(c: _Config) -> dict[str, Any]:
    layers = c.positive("num_hidden_layers")
    kinds = c.layer_kinds(layers) or ["sliding_attention", "full_attention"] * (layers // 2)
    attention = _gqa(c, bias=True, output_bias=True, sinks=True, window=c.positive("sliding_window"))
    ffn = _moe_ffn(c, width="intermediate_size", experts="num_local_experts", router_bias=True, bias=True)
    return {"attention": attention, "ffn": ffn, "num_window_layers": kinds.count("sliding_attention")}


def _qwen3_next(c: _Config) -> dict[str, Any]:
    layers = c.positive("num_hidden_layers")
    kinds = c.layer_kinds(layers)
    full = kinds.count("full_attention") if kinds else layers // c.positive("full_attention_interval", default=4)
    if not full:
        raise InputError(f"{c.name}: none of its {layers} layers has full attention; correct full_attention_interval")
    linear = LinearAttentionSpec(
        num_key_heads=c.positive("linear_num_key_heads"),
        num_value_heads=c.positive("linear_num_value_heads"),
        key_head_size=c.positive("linear_key_head_dim"),
        value_head_size=c.positive("linear_value_head_dim"),
        conv_width=c.positive("linear_conv_kernel_dim", default=4),
    )
    if "num_experts" in c.data:
        ffn = _moe_ffn(c, width="moe_intermediate_size", experts="num_experts", shared_gate=True)
    else:
        ffn = _dense_ffn(c)
    attention = _gqa(c, qk_norm=True, output_gate=True)
    return {"attention": attention, "ffn": ffn, "num_linear_layers": layers - full, "linear": linear}


def _cube3d(c: _Config) -> dict[str, Any]:
    layers = c.positive("num_hidden_layers")
    ffn = FfnSpec(dense_size=c.positive("intermediate_size"), num_dense_layers=layers, bias=True)
    idle = c.integer("condition_params", default=0)
    return {"attention": _gqa(c, qk_norm=True), "ffn": ffn, "idle_params": idle, "norms_per_layer": 0}


_FAMILIES: dict[str, Callable[[_Config], dict[str, Any]]] = {
    "llama": _llama,
    "mistral": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next,
    "qwen3_5": _qwen3_next,
    "qwen3_5_text": _qwen3_next,
    "qwen3_5_moe": _qwen3_next,
    "qwen3_5_moe_text": _qwen3_next,
    "mixtral": _mixtral,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "deepseek_v32": _deepseek,
    "kimi_k2": _deepseek,
    "glm_moe_dsa": _deepseek,
    "glm4_moe": _glm4_moe,
    "gpt_oss": _gpt_oss,
    "minimax_m2": _minimax,
    "cube3d": _cube3d,
}
MODEL_TYPES = tuple(_FAMILIES)


def model_from_config(data: dict[str, Any], name: str, *, source: str = "", native: str = "") -> ModelSpec:
    """Build a ModelSpec from the content of a Hugging Face config.json.

    Args:
        data: the parsed file; of a multimodal model, `text_config` is used.
        name: shown in messages and tables.
        source: where the sizes come from; by default the file.
        native: precision of the published weights; by default what `quantization_config` says.

    Raises:
        InputError: `model_type` is unknown, or a size is missing or not a positive whole number.
    """
    inner = data.get("text_config")
    text = data
    if inner is not None and not isinstance(inner, dict):
        raise InputError(f"{name}: text_config is {type(inner).__name__}; it must be an object of sizes")
    if isinstance(inner, dict):
        text = {"tie_word_embeddings": data.get("tie_word_embeddings", False), **inner}
    kind = text.get("model_type") or data.get("model_type")
    if not isinstance(kind, str) or kind not in _FAMILIES:
        near = nearest_names(str(kind), _FAMILIES)
        raise InputError(f"{name}: model_type {kind!r} is unknown; the nearest that are known: {near}")
    c = _Config(text, name)
    if c.positive("num_hidden_layers") > _MOST_LAYERS:
        layers = c.positive("num_hidden_layers")
        raise InputError(f"{name}: num_hidden_layers is above {_MOST_LAYERS:,}: {layers}; correct it")
    return ModelSpec(
        name=name,
        source=source or f"config.json of {name}",
        num_layers=c.positive("num_hidden_layers"),
        hidden_size=c.positive("hidden_size"),
        vocab_size=c.positive("vocab_size"),
        tied_embeddings=c.flag("tie_word_embeddings"),
        max_context=c.integer("max_position_embeddings", default=0),
        native_precision=native or _native_precision(data, name),
        **_FAMILIES[kind](c),
    )


# Methods whose checkpoints hold quantised weights in formats that the planner knows.
_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "fp4", "nvfp4": "fp4", "modelopt": "fp4"}
_BITS = {4: "int4", 8: "int8"}


def _native_precision(data: dict[str, Any], name: str) -> str:
    """Precision that `quantization_config` says: by its method, or by its bits (AWQ, GPTQ)."""
    config = data.get("quantization_config")
    if config is None:
        return "bf16"
    if not isinstance(config, dict):
        raise InputError(f"{name}: quantization_config is {config!r}; it must be an object with quant_method")
    method, bits = config.get("quant_method"), config.get("bits")
    if isinstance(method, str) and method in _METHODS:
        return _METHODS[method]
    if bits in _BITS and isinstance(bits, int):
        return _BITS[bits]
    return "bf16"
