"""Every published-architecture value of shared/golden/cube, within its stated tolerance; ids exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from helicube.engine.engine import Engine
from helicube.engine.host_runner import HostRunner
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig
from helicube.models.cube.checkpoint import CubeWeights, load_cube

TOLERANCE = 1e-4  # of the golden README: absolute, on logits, latents and occupancy logits


@pytest.fixture(scope="module")
def golden(shared_dir: Path) -> Path:
    return shared_dir / "golden" / "cube"


@pytest.fixture(scope="module")
def expected(golden: Path) -> dict[str, Tensor]:
    return load_file(golden / "expected.safetensors")


@pytest.fixture(scope="module")
def weights(golden: Path) -> CubeWeights:
    return load_cube(golden, dtype=torch.float32)


def close(ours: Tensor, theirs: Tensor) -> bool:
    assert ours.shape == theirs.shape
    return bool((ours - theirs).abs().max() < TOLERANCE)


@torch.no_grad()
def test_decoder_logits_and_token_table(weights: CubeWeights, expected: dict[str, Tensor]) -> None:
    decoder = weights.decoder
    assert close(decoder.transformer.wte.weight, expected["token_embedding_table"])
    cond = decoder.condition(expected["text_embed"], expected["bbox_xyz"])
    assert close(decoder(expected["input_ids"], cond), expected["logits"])


@pytest.mark.parametrize("cache", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("scale", [3, 0])
@torch.no_grad()
def test_greedy_ids(weights: CubeWeights, expected: dict[str, Tensor], scale: int, cache: bool) -> None:
    decoder, c = weights.decoder, weights.decoder.config
    spec = decoder.cache_spec(expected["text_embed"].shape[1], 12)
    runner = CubeRunner(decoder, spec, num_slots=2, guided=scale > 0, cache=cache)
    cond = decoder.condition(expected["text_embed"], expected["bbox_xyz"])
    uncond = decoder.condition(expected["null_text_embed"])
    sampling = SamplingConfig(guidance_scale=scale)
    prompts = [Conditioning(cond=cond[i], uncond=uncond[i]) for i in range(2)]
    requests = [Request(prompt=prompt, num_tokens=12, sampling=sampling) for prompt in prompts]
    results = Engine(HostRunner(runner, IdPlan(ranges=((0, c.shape_model_vocab_size),)))).generate(requests).results
    assert torch.equal(torch.stack([r.ids for r in results]), expected[f"greedy_ids_guidance_{scale}"])


@torch.no_grad()
def test_tokenizer(weights: CubeWeights, expected: dict[str, Tensor]) -> None:
    tokenizer, cloud = weights.tokenizer, expected["point_cloud"]
    assert close(tokenizer.encoder(cloud[..., :3], cloud[..., 3:]), expected["encoder_output"])
    assert torch.equal(tokenizer.encode(cloud), expected["indices"])
    assert close(tokenizer.bottleneck.block.codes(), expected["codebook"])
    latents = tokenizer.decode(expected["greedy_ids_guidance_3"])
    assert close(latents, expected["latents"])
    assert close(tokenizer.field(latents, expected["query_points"]), expected["occupancy_logits"])
