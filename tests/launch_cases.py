"""Engines that choose ids where the model runs, beside the plain one."""

from __future__ import annotations

import torch

from helicube.engine.device_steps import make_launch_runner
from helicube.engine.engine import Engine
from helicube.engine.host_runner import HostRunner
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.options import EngineOptions, Resolved
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig
from helicube.kernels.choose import Choice, Implementation
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig

MAX_TOKENS, NUM_TEXT, VOCAB = 24, 3, 40
PLAN = IdPlan(ranges=((0, VOCAB),) * 4 + ((10, 30),))
SAMPLINGS = (
    SamplingConfig(),
    SamplingConfig(guidance_scale=0),
    SamplingConfig(temperature=1, seed=1),
    SamplingConfig(temperature=0.7, top_p=0.5, seed=2**40 + 2),
)


def make_decoder(n_head: int = 2) -> CubeDecoder:
    torch.manual_seed(0)
    config = DecoderConfig(n_layer=1, n_single_layer=1, n_head=n_head, n_embd=32, shape_model_vocab_size=VOCAB,
                           shape_model_embed_dim=4, text_model_embed_dim=8, num_positions=MAX_TOKENS)  # fmt: skip
    return CubeDecoder(config).eval().requires_grad_(False)


def make_requests(decoder: CubeDecoder, lengths: tuple[int, ...]) -> list[Request]:
    """Each with a sampling of its own; the third has ids that are given."""
    states = torch.randn(len(lengths) + 1, NUM_TEXT, 8, generator=torch.Generator().manual_seed(7)).to(
        decoder.text_proj.weight
    )
    box = torch.rand(len(states), 3, generator=torch.Generator().manual_seed(8))
    cond = decoder.condition(states, box)
    requests = []
    for i, num_tokens in enumerate(lengths):
        forced = torch.full((num_tokens,), -1)
        if i == 2:
            forced[::2] = 11
        requests.append(
            Request(
                prompt=Conditioning(cond=cond[i], uncond=cond[-1]),
                num_tokens=num_tokens,
                sampling=SAMPLINGS[i % len(SAMPLINGS)],
                forced=forced if i == 2 else None,
            )
        )
    return requests


def plain_engine(decoder: CubeDecoder, slots: int = 1, *, guided: bool = True) -> Engine:
    runner = CubeRunner(decoder, decoder.cache_spec(NUM_TEXT, MAX_TOKENS), num_slots=slots, guided=guided)
    return Engine(HostRunner(runner, PLAN, device=runner.decoder.device))


def launching_engine(
    decoder: CubeDecoder,
    slots: int,
    *,
    implementation: Implementation = "torch",
    steps_per_launch: int = 3,
    guided: bool = True,
    weights: str = "auto",
) -> Engine:
    """Graph or not is CUDA's affair: on a CPU the same launches call the step."""
    runner = CubeRunner(decoder, decoder.cache_spec(NUM_TEXT, MAX_TOKENS), num_slots=slots, guided=guided)
    resolved = Resolved(kernels=Choice(implementation=implementation, reason=""), graph=True, graph_reason="")
    options = EngineOptions(steps_per_launch=steps_per_launch, weights=weights)
    return Engine(make_launch_runner(runner, PLAN, options, resolved))


def runner_of(engine: Engine) -> LaunchRunner:
    assert isinstance(engine.runner, LaunchRunner)
    return engine.runner


def ids_of(engine: Engine, requests: list[Request]) -> list[list[int]]:
    return [r.ids.tolist() for r in engine.generate(requests).results]
