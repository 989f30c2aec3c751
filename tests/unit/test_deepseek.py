"""DeepSeek-V2 and V3 against transformers; absorbed against expanded attention; routing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers_twins import TOLERANCE, cached_logits, saved_twin, twin_cached_logits

from helicube.errors import CheckpointError
from helicube.models.loading import load_part
from helicube.models.loading_open import language_config
from helicube.models.tiny import TINY, random_source, tiny_config
from helicube.nn.moe import MoeConfig, Router
from helicube.nn.prefix_attention import attend_prefix

V2, V3 = dict(TINY["tiny-deepseek-v2"]), dict(TINY["tiny-mla-moe"])
YARN = {
    "type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 0.707,
    "mscale_all_dim": 0.9,
}
CASES: dict[str, dict[str, Any]] = {
    "v2": V2,
    "v2-greedy-full-queries": V2 | {"topk_method": "greedy", "q_lora_rank": None, "n_group": None, "topk_group": None},
    "v2-yarn": V2 | {"rope_scaling": YARN},
    "v3": V3,
    "v3-yarn": V3 | {"rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}},
    "v3-dense-halves-biases": V3
    | {"first_k_dense_replace": 2, "rope_interleave": False, "attention_bias": True, "tie_word_embeddings": True},
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


def test_absorbed_attention_equals_expanded() -> None:
    config = tiny_config("tiny-mla")
    model = load_part(config, random_source(config))
    attention = model.layers[0].self_attn
    x = torch.randn(1, 19, 32, generator=torch.Generator().manual_seed(0))
    rotary = model.rotary(torch.arange(19))[None]
    q, k, v = attention.project(x, rotary)
    assert k.shape == (1, 19, 1, 16)
    assert v.data_ptr() == k.data_ptr(), "values must be a view of the latent"
    o, _ = attend_prefix(q[0], k[0].transpose(0, 1), v[0].transpose(0, 1), list(range(1, 20)), attention.scale)
    assert (attention.output(o[None]) - attention(x, rotary)).abs().max() < 1e-5


def test_the_bias_steers_the_choice_and_not_the_weight() -> None:
    router = Router(MoeConfig(hidden_size=4, num_experts=4, top_k=1, expert_size=1, sigmoid=True))
    with torch.no_grad():
        router.weight.copy_(torch.eye(4))
        router.e_score_correction_bias.copy_(torch.tensor([0.0, 0.0, 0.0, 2.0]))
    weights, ids = router(torch.tensor([[3.0, 0.0, 0.0, -1.0]]))
    assert ids.tolist() == [[3]]
    assert weights.item() == pytest.approx(torch.tensor(-1.0).sigmoid().item())


def test_only_the_best_groups_are_open() -> None:
    config = MoeConfig(hidden_size=4, num_experts=4, top_k=2, expert_size=1, num_groups=2, top_groups=1)
    router = Router(config)
    with torch.no_grad():
        router.weight.copy_(torch.eye(4))
    # The second-best expert stands in the closed group.
    _, ids = router(torch.tensor([[3.0, 0.0, 2.0, 2.0]]))
    assert sorted(ids[0].tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"topk_method": "random"}, "topk_method 'random'"),
        ({"scoring_func": "softmax"}, "scoring_func is 'softmax'"),
        ({"moe_layer_freq": 2}, "moe_layer_freq is 2"),
        ({"n_group": 3}, "8 experts do not form 3 groups"),
        ({"n_group": 0}, "n_group is 0; it must be at least 1"),
        ({"topk_group": 9}, "topk_group is 9; it must be at most n_group, 4"),
        ({"kv_lora_rank": None}, "kv_lora_rank is missing"),
    ],
)
def test_what_is_not_implemented_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        language_config(V3 | change, "x")
