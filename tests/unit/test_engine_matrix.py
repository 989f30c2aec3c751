"""In float32, every combination of speed features gives the plain engine's ids: batches, guidance, boxes, slots."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from cpu_libraries import library

from helicube.engine.build import make_engine, resolve_for
from helicube.engine.device_steps import make_launch_runner
from helicube.engine.engine import Engine
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.options import EngineOptions, Kernels, Resolved
from helicube.engine.request import IdPlan, Request, Result
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig
from helicube.kernels.choose import Choice
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.formats import hold_matrices
from helicube.nn.linear import QuantizedLinear

NUM_TEXT, NUM_STEPS, NUM_IDS = 5, 24, 300
# As in the default model: kinds of ids, one after the other.
PLAN = IdPlan(ranges=((270, 300),) * 3 + ((0, 200),) * 15 + ((200, 233),) * 3 + ((233, 270),) * 3)

PLAIN_AND_NATIVE: tuple[Kernels, ...] = ("plain", "native")
MATRIX = [
    EngineOptions(graph=graph, cache=cache, kernels=kernels, steps_per_launch=steps)
    for graph, cache, kernels, steps in product((False, True), (False, True), PLAIN_AND_NATIVE, (1, 7))
    if steps == 7 or (graph and cache and kernels == "native")
]


def name_of(options: EngineOptions) -> str:
    features = [name for name in ("graph", "cache") if getattr(options, name)]
    return "-".join([*features, options.kernels, str(options.steps_per_launch)])


@pytest.fixture(scope="module", autouse=True)
def _native() -> None:
    library()


class Case:
    """A decoder, prompts with or without boxes, and what the plain engine makes of them."""

    def __init__(self, decoder: CubeDecoder, prompts: list[Conditioning]) -> None:
        self.decoder = decoder
        self.greedy = {
            scale: [
                Request(prompt=p, num_tokens=NUM_STEPS, sampling=SamplingConfig(guidance_scale=scale))
                for p in prompts[:4]
            ]
            for scale in (0.0, 3.0)
        }
        self.sampled = sampled_requests(prompts)
        self.want_greedy = {scale: reference(decoder, r, guided=scale > 0) for scale, r in self.greedy.items()}
        self.want_sampled = reference(decoder, self.sampled)


def sampled_requests(prompts: list[Conditioning]) -> list[Request]:
    """Of different lengths, settings and fixed ids."""
    forced = torch.full((NUM_STEPS,), -1)
    forced[[0, 2, 5]] = torch.tensor([271, 299, 17])
    samplings = [
        SamplingConfig(),
        SamplingConfig(temperature=1.0, seed=1),
        SamplingConfig(temperature=0.8, top_p=0.6, seed=2**40 + 3, guidance_scale=1.0),
        SamplingConfig(temperature=1.5, top_p=0.95, seed=4),
        SamplingConfig(guidance_scale=0.0),
        SamplingConfig(temperature=1.0, seed=1),
    ]
    lengths = [5, NUM_STEPS, 1, 20, 9, 12]
    return [
        Request(prompt=p, num_tokens=n, sampling=s, forced=forced if i % 2 else None)
        for i, (p, n, s) in enumerate(zip(prompts, lengths, samplings, strict=True))
    ]


def make_decoder(n_head: int, n_embd: int, *, use_bbox: bool) -> CubeDecoder:
    torch.manual_seed(0)
    config = DecoderConfig(n_layer=2, n_single_layer=1, n_head=n_head, n_embd=n_embd, shape_model_vocab_size=NUM_IDS,
                           shape_model_embed_dim=4, text_model_embed_dim=12, use_bbox=use_bbox)  # fmt: skip
    return CubeDecoder(config).eval().requires_grad_(False)


def make_prompts(decoder: CubeDecoder, *, box: bool) -> list[Conditioning]:
    generator = torch.Generator().manual_seed(7)
    states = torch.randn(7, NUM_TEXT, 12, generator=generator)
    boxes = torch.rand(6, 3, generator=generator) if box else None
    cond, uncond = decoder.condition(states[:-1], boxes), decoder.condition(states[-1:])[0]
    return [Conditioning(cond=row, uncond=uncond) for row in cond]


# Heads and width: whole vectors of every instruction set, and none.
@pytest.fixture(scope="module", params=[(False, 2, 64), (True, 3, 60)], ids=["no-box", "box-3-heads-of-20"])
def case(request: pytest.FixtureRequest) -> Case:
    box, n_head, n_embd = request.param
    decoder = make_decoder(n_head, n_embd, use_bbox=box)
    return Case(decoder, make_prompts(decoder, box=box))


def engine_of(decoder: CubeDecoder, options: EngineOptions, slots: int, *, guided: bool = True) -> Engine:
    spec = decoder.cache_spec(NUM_TEXT, NUM_STEPS)
    return make_engine(decoder, spec, PLAN, num_slots=slots, guided=guided, options=options)


def ids_of(engine: Engine, requests: list[Request]) -> list[list[int]]:
    return [r.ids.tolist() for r in engine.generate(requests).results]


def reference(decoder: CubeDecoder, requests: list[Request], *, guided: bool = True) -> list[list[int]]:
    """Each alone, without any feature."""
    plain = EngineOptions(graph=False, cache=False, kernels="plain")
    found = [ids_of(engine_of(decoder, plain, 1, guided=guided), [r])[0] for r in requests]
    assert len({tuple(row) for row in found}) > len(requests) // 2, "requests are told apart"
    return found


@pytest.mark.parametrize("scale", [0.0, 3.0], ids=["unguided", "guided"])
@pytest.mark.parametrize("options", MATRIX, ids=name_of)
def test_greedy_ids(options: EngineOptions, scale: float, case: Case) -> None:
    requests, want = case.greedy[scale], case.want_greedy[scale]
    for slots in (1, 4) if options.cache else (3,):
        assert ids_of(engine_of(case.decoder, options, slots, guided=scale > 0), requests) == want
    if options.cache:
        assert ids_of(engine_of(case.decoder, options, 3), requests) == want, "guidance 0 where there is guidance"


@pytest.mark.parametrize("options", MATRIX, ids=name_of)
def test_sampled_ids_of_requests_that_join_and_leave(options: EngineOptions, case: Case) -> None:
    requests, want = case.sampled, case.want_sampled
    engine = engine_of(case.decoder, options, 3)
    assert ids_of(engine, requests) == want
    assert ids_of(engine, requests[::-1]) == want[::-1]
    # One leaves midway, another joins later.
    handles = [engine.join(r) for r in requests[1:4:2]]
    done: dict[int, Result] = dict(engine.step())
    handles.append(engine.join(requests[5]))
    engine.leave(handles[0])
    while engine.slots:
        done |= engine.step()
    assert [done[h].ids.tolist() for h in handles[1:]] == [want[3], want[5]]


@pytest.mark.parametrize("steps_per_launch", [1, 7])
def test_plain_steps_that_are_launched(steps_per_launch: int, case: Case) -> None:
    """What a graph on a GPU captures where there are no kernels."""
    spec = case.decoder.cache_spec(NUM_TEXT, NUM_STEPS)
    options = EngineOptions(steps_per_launch=steps_per_launch)
    resolved = Resolved(kernels=Choice(implementation="torch", reason=""), graph=True, graph_reason="")
    runner = CubeRunner(case.decoder, spec, num_slots=3)
    engine = Engine(make_launch_runner(runner, PLAN, options, resolved))
    assert ids_of(engine, case.greedy[3.0]) == case.want_greedy[3.0]
    assert ids_of(engine, case.sampled) == case.want_sampled


@pytest.mark.parametrize("graph", [False, True])
def test_more_keys_than_one_pass_of_attention_takes(graph: bool) -> None:
    decoder, count = make_decoder(2, 64, use_bbox=False), 560
    spec, plan = decoder.cache_spec(NUM_TEXT, count), IdPlan(ranges=((0, 200),))
    requests = [
        Request(prompt=prompt, num_tokens=count - 9 * i, sampling=SamplingConfig(temperature=1.0, seed=i))
        for i, prompt in enumerate(make_prompts(decoder, box=False)[:2])
    ]
    plain, native = (
        make_engine(decoder, spec, plan, num_slots=2, options=options)
        for options in (EngineOptions(graph=False, kernels="plain"), EngineOptions(graph=graph, kernels="native"))
    )
    assert ids_of(native, requests) == ids_of(plain, requests)


def test_no_prompt_waits_for_weights_to_be_laid_out() -> None:
    decoder = make_decoder(2, 16, use_bbox=False)
    hold_matrices(decoder, "int8", native=True)
    engine_of(decoder, EngineOptions(weights="int8"), 1)
    layers = [m for m in decoder.modules() if isinstance(m, QuantizedLinear)]
    # The condition's stream too, which no step reads.
    assert decoder.get_submodule("transformer.dual_blocks.0.attn.pre_c.c_v") in layers
    assert all(m.weight is None for m in layers), "the kernels' order is the only one"


def test_the_matrix_is_what_it_says(case: Case) -> None:
    found = [resolve_for("cpu", "float32", options) for options in MATRIX]
    assert {(r.kernels.implementation, r.graph) for r in found} == {
        ("torch", False),
        ("native", False),
        ("native", True),
    }
    for options, resolved in zip(MATRIX, found, strict=True):
        assert isinstance(engine_of(case.decoder, options, 1).runner, LaunchRunner) == resolved.graph
