"""A whole step on the device chooses the ids that the engine chooses with the plain decoder."""

from __future__ import annotations

import pytest
import torch

from helicube.engine.engine import Engine
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig, request_keys
from helicube.kernels.triton import tiles
from helicube.kernels.triton.cube_weights import cube_weights
from helicube.kernels.triton.decode_step import DecodeStep
from helicube.kernels.triton.sampling_state import SamplingState
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.nn.linear import convert
from triton_cases import DEVICE, normal

NUM_STEPS, NUM_TEXT = 4, 3
CONFIG = DecoderConfig(
    n_layer=2, n_single_layer=1, n_head=2, n_embd=32, shape_model_vocab_size=40, text_model_embed_dim=8
)
SAMPLING = SamplingConfig(guidance_scale=2.0, temperature=0.8, top_p=0.9, seed=11)


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes some milliseconds per program; the table's tiles would make hundreds."""
    monkeypatch.setattr(tiles, "tile_for", lambda _: tiles.Tile(block_n=128, block_k=128))


def tiny_decoder() -> CubeDecoder:
    decoder = CubeDecoder(CONFIG).eval()
    with torch.no_grad():
        for i, p in enumerate(decoder.parameters()):
            p.copy_(normal(*p.shape, seed=i) * (0.3 if p.dim() > 1 else 1.0))
    return decoder.to(DEVICE)


def state_for(first_id: int) -> SamplingState:
    state = SamplingState.empty(1, 2, NUM_STEPS, [(0, 40)], DEVICE)
    state.start(
        0,
        first_id,
        NUM_STEPS,
        guidance=SAMPLING.guidance_scale,
        temperature=SAMPLING.temperature,
        top_p=SAMPLING.top_p,
        key=int(request_keys([SAMPLING])),
    )
    return state


@torch.inference_mode()
@pytest.mark.usefixtures("few_programs")
@pytest.mark.parametrize("form", ["float32", "int8"])
def test_ids_are_those_of_the_engine(form: str) -> None:
    decoder = tiny_decoder()
    tensors = decoder.state_dict()
    cond = decoder.condition(normal(1, NUM_TEXT, 8), torch.zeros(1, 3, device=DEVICE))[0]
    prompt = Conditioning(cond=cond, uncond=torch.zeros_like(cond))
    spec = decoder.cache_spec(NUM_TEXT, NUM_STEPS)
    plain = CubeRunner(decoder, spec, num_slots=1)
    if form == "int8":
        # The plain decoder on the weights that int8 stands for, so that both see the same numbers.
        stream = ("pre_x", "post_1", "single_blocks", "lm_head")
        converted = CubeDecoder(CONFIG).to(DEVICE)
        converted.load_state_dict(tensors)
        names = convert(converted, "int8", lambda name, _: any(part in name for part in stream))
        tensors = converted.state_dict()
        for name in names:
            dense = tensors[f"{name}.weight"].float() * tensors[f"{name}.weight_scale"][:, None]
            decoder.get_parameter(f"{name}.weight").copy_(dense)
    engine = Engine(plain, IdPlan(ranges=((0, 40),) * NUM_STEPS), device=DEVICE)
    wanted = engine.generate([Request(prompt=prompt, num_tokens=NUM_STEPS, sampling=SAMPLING)]).results[0].ids

    runner = CubeRunner(decoder, spec, num_slots=1)
    state = state_for(runner.start(0, prompt))
    weights = cube_weights(tensors, decoder.rotary(NUM_STEPS, DEVICE), num_heads=2, prefix_slots=NUM_TEXT + 1)
    step = DecodeStep(weights, runner.cache.keys, runner.cache.values, state, max_width=40)
    for _ in range(NUM_STEPS):
        step()
    assert state.ids.tolist() == [wanted.tolist()]
    assert len(set(wanted.tolist())) > 1
    # Done: positions say that the slot is free, and another call changes nothing.
    assert state.positions.tolist() == [-1, -1]
    assert state.failed.tolist() == [0]
