"""Derived sizes against published figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helicube.errors import InputError
from helicube.specs.catalog import get_model, list_models, load_model
from helicube.specs.huggingface import model_from_config
from helicube.specs.precision import PRECISIONS, get_precision

# Parameters in the published safetensors files or reports, in billions: text decoder, without multi-token prediction.
PUBLISHED = {
    "smollm2-135m": 0.134515,
    "llama-3.2-1b": 1.235814,
    "llama-3.2-3b": 3.212750,
    "llama-3.1-8b": 8.030261,
    "llama-3.1-70b": 70.553706,
    "llama-3.3-70b": 70.553706,
    "llama-3.1-405b": 405.853389,
    "mixtral-8x7b": 46.702793,
    "mixtral-8x22b": 140.630071,
    "qwen3-0.6b": 0.596050,
    "qwen3-4b": 4.022468,
    "qwen3-8b": 8.190735,
    "qwen3-14b": 14.768307,
    "qwen3-32b": 32.762123,
    "qwen3-30b-a3b": 30.532123,
    "qwen3-235b-a22b": 235.093635,
    "qwen3.5-397b-a17b": 397.0,
    "deepseek-v2-lite": 15.706484,
    "deepseek-v2": 235.741434,
    "deepseek-v3": 671.026,
    "kimi-k2": 1026.4,
    "glm-5": 744.0,
    "gpt-oss-20b": 20.914757,
    "gpt-oss-120b": 116.829157,
    "minimax-m2": 228.7,
    "cube3d-v0.5": 1.8,
}
# Parameters that one token uses, as the reports give them, in billions.
ACTIVE = {
    "gpt-oss-120b": 5.13,
    "gpt-oss-20b": 3.61,
    "mixtral-8x7b": 12.9,
    "deepseek-v3": 37.0,
    "kimi-k2": 32.0,
    "qwen3-235b-a22b": 22.0,
    "cube3d-v0.5": 0.93,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_match_published_counts(name: str) -> None:
    assert get_model(name).num_params / 1e9 == pytest.approx(PUBLISHED[name], rel=0.01)


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters_match_reports(name: str) -> None:
    # Reports round to two or three digits and differ on whether embeddings count.
    assert get_model(name).num_active_params / 1e9 == pytest.approx(ACTIVE[name], rel=0.025)


@pytest.mark.parametrize(("name", "gigabytes"), [("llama-3.1-405b", 129.0), ("deepseek-r1", 17.57)])
def test_cache_bytes_of_a_million_tokens(name: str, gigabytes: float) -> None:
    assert get_model(name).cache_bytes(10**6, 0.5) / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_windowed_layers_stop_growing() -> None:
    model = get_model("gpt-oss-120b")
    grown = model.cache_values(2000) - model.cache_values(1000)
    assert grown == 1000 * 18 * 2 * 8 * 64
    assert model.cache_values(100) == 100 * 36 * 2 * 8 * 64


def test_linear_layers_hold_a_state_of_fixed_size() -> None:
    model = get_model("qwen3.5-397b-a17b")
    state = 45 * (64 * 128 * 128 * 4 + (2 * 16 * 128 + 64 * 128) * 4 * 2)
    assert model.cache_bytes(0, 2.0) == state
    assert model.cache_bytes(1000, 2.0) - state == 15 * 1000 * 2 * 2 * 256 * 2


def test_flops_and_bytes_per_token() -> None:
    model = get_model("llama-3.1-8b")
    assert model.flops_per_token(0) == 2 * model.num_active_params
    # Scores and weighted sum: 2 FLOPs × 2 × Q × D for each cached token and layer.
    assert model.flops_per_token(1000) - model.flops_per_token(0) == 32 * 1000 * 4 * 32 * 128
    assert model.read_bytes_per_token(1000, 2.0, 2.0) == 2 * model.num_active_params + 1000 * 131072


def test_names_resolve_from_hubs_and_cases() -> None:
    assert get_model("meta-llama/Llama-3.1-70B-Instruct").name == "llama-3.1-70b"
    assert get_model("nvidia/Llama-3.3-70B-Instruct-FP8").name == "llama-3.3-70b"
    assert get_model("nvidia/DeepSeek-V3.1-NVFP4").name == "deepseek-v3.1-nvfp4"
    assert get_model("deepseek-ai/DeepSeek-R1").num_params == get_model("deepseek-v3").num_params
    assert get_model("openai/gpt-oss-120b").ffn.num_experts == 128


def test_names_of_quantised_checkpoints_say_their_format() -> None:
    assert get_model("qwen3-32b-nvfp4").native_precision == "fp4"
    assert get_model("nvidia/DeepSeek-V3.1-NVFP4").native_precision == "fp4"
    assert get_model("nvidia/Llama-3.3-70B-Instruct-FP8").native_precision == "fp8"
    assert get_model("deepseek-r1").native_precision == "fp8"
    assert get_model("llama-3.3-70b").native_precision == "bf16"


def test_hub_ids_lead_back_to_their_model() -> None:
    for model in list_models():
        assert "/" in model.hub
        assert get_model(model.hub).num_params == model.num_params


@pytest.mark.parametrize(
    ("name", "near"), [("lama-3.1-70b", "llama-3.1-70b"), ("deepsek-r1", "deepseek-r1"), ("gpt-oss", "gpt-oss-20b")]
)
def test_unknown_model_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match=near):
        get_model(name)


def test_every_model_is_internally_consistent() -> None:
    for model in list_models():
        assert model.num_full_layers >= 1
        assert model.num_active_params <= model.num_params
        assert model.max_context > 0
        assert model.native_precision in PRECISIONS
        assert model.source


LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def test_own_config_file_and_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    model = load_model(str(tmp_path))
    # 2 · (64·64·2 + 64·32·2 + 3·64·128 + 2·64) + 2·100·64 + 64
    assert model.num_params == 2 * (8192 + 4096 + 24576 + 128) + 12800 + 64
    assert load_model(str(tmp_path / "config.json")) == model


def test_multimodal_config_uses_its_text_part() -> None:
    model = model_from_config({"model_type": "some_vision", "text_config": LLAMA, "tie_word_embeddings": True}, "own")
    assert model.num_layers == 2
    assert model.tied_embeddings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "lama"}, "model_type 'lama' is unknown.*llama"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"num_hidden_layers": -2}, "num_hidden_layers is -2"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"intermediate_size": None}, "intermediate_size is missing"),
        ({"num_key_value_heads": 3}, "4 query heads are no multiple of its 3 KV heads"),
    ],
)
def test_wrong_config_is_one_clear_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        model_from_config({**LLAMA, **change}, "own")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("content", "message"), [("{", "is not JSON"), ("[]", "no JSON object")])
def test_broken_config_file(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "own.json").write_text(content)
    with pytest.raises(InputError, match=message):
        load_model(str(tmp_path / "own.json"))
    with pytest.raises(InputError, match="cannot be read"):
        load_model(str(tmp_path / "absent.json"))


def test_precisions() -> None:
    assert get_precision("nvfp4").element_bytes == 0.5
    assert get_precision("fp4").stored_bytes == 0.5625
    with pytest.raises(InputError, match="fp8"):
        get_precision("fp6")
