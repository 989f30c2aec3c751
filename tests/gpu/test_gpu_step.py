"""A captured step: the ids of the plain decoder, the ids of the eager step, no allocation and no wait for the host."""

from __future__ import annotations

import pytest
import torch

from helicube.engine.engine import Engine
from helicube.engine.host_runner import HostRunner
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig, request_keys
from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.cube_weights import cube_weights
from helicube.kernels.triton.decode_step import DecodeStep
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from triton_cases import DEVICE, GPU_ONLY, normal, relative_error

pytestmark = GPU_ONLY

NUM_STEPS, NUM_TEXT, WIDTH = 24, 77, 16384
CONFIG = DecoderConfig(n_layer=3, n_single_layer=1)
CONFIGS = (
    SamplingConfig(),
    SamplingConfig(guidance_scale=1.5, temperature=1.0, seed=5),
    SamplingConfig(guidance_scale=2.0, temperature=0.9, top_p=0.9, seed=6),
)


@pytest.fixture(scope="module")
def decoder() -> CubeDecoder:
    torch.manual_seed(0)
    with torch.device(DEVICE):
        decoder = CubeDecoder(CONFIG).eval()
    return decoder.requires_grad_(False)


class Case:
    """Three requests in their slots, before the first step."""

    def __init__(self, decoder: CubeDecoder, dtype: torch.dtype) -> None:
        self.decoder = decoder.to(dtype)
        text = normal(len(CONFIGS), NUM_TEXT, 768).to(dtype)
        uncond = decoder.condition(torch.zeros_like(text[:1]), torch.zeros(1, 3, device=DEVICE))[0]
        box = torch.zeros(len(text), 3, device=DEVICE)
        self.prompts = [Conditioning(cond=c, uncond=uncond) for c in decoder.condition(text, box)]
        self.spec = decoder.cache_spec(NUM_TEXT, NUM_STEPS)
        self.runner = CubeRunner(decoder, self.spec, num_slots=len(CONFIGS))
        self.state = SamplingState.empty(len(CONFIGS), 2, NUM_STEPS, [(0, WIDTH)], DEVICE)
        weights = cube_weights(
            decoder.state_dict(), decoder.places(NUM_STEPS).rotary, num_heads=CONFIG.n_head, prefix_slots=NUM_TEXT + 1
        )
        cache = self.runner.cache
        self.step = DecodeStep(weights, cache.keys, cache.values, self.state, max_width=WIDTH)
        self.reset()

    def reset(self) -> None:
        for slot, (prompt, config) in enumerate(zip(self.prompts, CONFIGS, strict=True)):
            self.state.start(
                slot,
                self.runner.start(slot, prompt),
                NUM_STEPS,
                guidance=config.guidance_scale,
                temperature=config.temperature,
                top_p=config.top_p,
                key=int(request_keys([config])),
            )


@torch.inference_mode()
def test_float32_ids_are_those_of_the_engine(decoder: CubeDecoder) -> None:
    case = Case(decoder, torch.float32)
    runner = CubeRunner(decoder, case.spec, num_slots=len(CONFIGS))
    engine = Engine(HostRunner(runner, IdPlan(ranges=((0, WIDTH),) * NUM_STEPS), device=DEVICE))
    requests = [
        Request(prompt=prompt, num_tokens=NUM_STEPS, sampling=config)
        for prompt, config in zip(case.prompts, CONFIGS, strict=True)
    ]
    wanted = torch.stack([r.ids for r in engine.generate(requests).results])
    for _ in range(NUM_STEPS):
        case.step()
    assert torch.equal(case.state.ids.cpu(), wanted)


@torch.inference_mode()
def test_bfloat16_logits_are_close_to_the_plain_decoder(decoder: CubeDecoder) -> None:
    case = Case(decoder, torch.bfloat16)
    runner = CubeRunner(case.decoder, case.spec, num_slots=len(CONFIGS))
    for slot, prompt in enumerate(case.prompts):
        runner.start(slot, prompt)
    ids = torch.full((len(CONFIGS),), CONFIG.bos_id, device=DEVICE)
    wanted = runner.step(ids, [0] * len(CONFIGS))
    # Two roundings of every activation in different places, over four layers.
    assert relative_error(case.step.forward(), wanted.float()) < 3e-2


@torch.inference_mode()
def test_replays_of_a_captured_step_are_the_eager_step(decoder: CubeDecoder) -> None:
    case = Case(decoder, torch.bfloat16)
    for _ in range(NUM_STEPS):
        case.step()
    wanted = case.state.ids.clone()
    assert (wanted >= 0).all()
    case.reset()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        case.step()
    # Capturing computes nothing.
    assert (case.state.ids == -1).all()
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(NUM_STEPS):
            graph.replay()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    assert torch.equal(case.state.ids, wanted)
    # Beyond the end nothing moves.
    graph.replay()
    assert torch.equal(case.state.ids, wanted)
    assert case.state.positions.tolist() == [-1] * (2 * len(CONFIGS))


@torch.inference_mode()
def test_an_eager_step_neither_allocates_nor_waits(decoder: CubeDecoder) -> None:
    case = Case(decoder, torch.bfloat16)
    case.step()
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.cuda.set_sync_debug_mode("error")
    try:
        case.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
