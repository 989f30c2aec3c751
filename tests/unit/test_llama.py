"""The Llama family against transformers, whole and through the cache; rotary scaling; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers_twins import TOLERANCE, cached_logits, saved_twin, twin_cached_logits

from helicube.errors import CheckpointError
from helicube.models.loading_open import language_config
from helicube.models.tiny import TINY
from helicube.nn.rotary_scaling import apply_rotary_half, rotary_frequencies, rotary_rows

GQA = dict(TINY["tiny-gqa"])
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 8.0}

CASES: dict[str, dict[str, Any]] = {
    "llama": GQA,
    "biases": GQA | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "mqa": dict(TINY["tiny-mqa"]),
    "linear": GQA | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "llama3": GQA | {"rope_scaling": LLAMA3},
    "yarn": GQA | {"rope_scaling": YARN},
    "dynamic": GQA | {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings": 48},
    "mistral": GQA | {"model_type": "mistral", "sliding_window": None},
    "qwen2": GQA | {"model_type": "qwen2", "use_sliding_window": False},
    "qwen3": dict(TINY["tiny-uneven"]),
    "qwen3_moe": dict(TINY["tiny-gqa-moe"]),
    "mixtral": dict(TINY["tiny-mixtral"]) | {"sliding_window": None},
}


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    twin, opened, model = saved_twin(CASES[case], tmp_path)
    ids = torch.randint(0, 61, (2, 41), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = twin(ids).logits
        assert expected.abs().max() > 1
        assert (model(ids) - expected).abs().max() < TOLERANCE
    cached = cached_logits(opened, ids, prompt=33, chunk=7)
    assert (cached - expected).abs().max() < TOLERANCE
    assert (twin_cached_logits(twin, ids, prompt=33) - cached).abs().max() < TOLERANCE


def test_dynamic_scaling_beyond_its_length_uses_one_base_for_the_whole_request(tmp_path: Path) -> None:
    content = GQA | {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings": 16}
    twin, opened, model = saved_twin(content, tmp_path)
    ids = torch.randint(0, 61, (1, 41), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        expected = twin(ids).logits
        assert (model(ids) - expected).abs().max() < TOLERANCE
    # transformers would rotate the first tokens by another base than the last; here the reservation sets it.
    assert (cached_logits(opened, ids, prompt=5, chunk=5) - expected).abs().max() < TOLERANCE


def test_scores_depend_on_the_distance_alone() -> None:
    config = language_config(GQA | {"rope_scaling": LLAMA3}, "x").rotary
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(3))

    def score(i: int, j: int) -> float:
        rows = rotary_rows(torch.tensor([i, j]), rotary_frequencies(config))
        return float(apply_rotary_half(q, rows[0]) @ apply_rotary_half(k, rows[1]))

    assert score(5, 2) == pytest.approx(score(50, 47), abs=1e-5)
    assert score(5, 2) != pytest.approx(score(5, 3), abs=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"model_type": "mistral", "sliding_window": 8}, "sliding_window is 8"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope type 'longrope' is unknown"),
        ({"rope_scaling": {"rope_type": "linear"}}, None),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"hidden_size": "32"}, "hidden_size is '32'"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0; it must be at least 1"),
        ({"rope_theta": 0}, r"rope_theta is 0\.0; it must be finite and above 0"),
        ({"rope_scaling": "yarn"}, "rope_scaling is 'yarn'"),
        ({"rope_scaling": YARN | {"beta_fast": 0}}, "beta_fast is 0"),
        ({"rope_scaling": YARN | {"attention_factor": "one"}}, "attention_factor is 'one'"),
        ({"rope_scaling": {"rope_type": "divided", "divisors": [1]}}, "1 rotary divisors for 4 frequencies"),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2}, "max_position_embeddings": 0},
            "needs max_position_embeddings",
        ),
        ({"vocab_size": None}, "vocab_size is missing"),
        ({"model_type": "gpt2"}, "model_type 'gpt2' cannot be run"),
    ],
)
def test_what_is_not_implemented_is_refused(change: dict[str, Any], words: str | None) -> None:
    if words is None:
        # No factor: the ratio of both lengths, which is 1 where only one is given.
        assert language_config(GQA | change, "x").rotary.factor == 1.0
        return
    with pytest.raises(CheckpointError, match=words):
        language_config(GQA | change, "x")
