"""Slots, cache, guidance and sampling of the engine: nothing that changes speed may change an id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
import torch
from tiny import tiny_weights

from helicube.engine.engine import Engine
from helicube.engine.host_runner import HostRunner
from helicube.engine.request import IdPlan, Request, Result
from helicube.engine.runner import Conditioning, CubeRunner
from helicube.engine.sampling import SamplingConfig
from helicube.errors import DecodeError, InputError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig

SAMPLINGS = {
    "greedy": SamplingConfig(),
    "unguided": SamplingConfig(guidance_scale=0),
    "warm": SamplingConfig(temperature=1, seed=1),
    "nucleus": SamplingConfig(temperature=0.7, top_p=0.5, seed=2),
}


def make_decoder(seed: int = 0, *, use_bbox: bool = True, n_single_layer: int = 1) -> CubeDecoder:
    torch.manual_seed(seed)
    config = DecoderConfig(n_layer=2, n_single_layer=n_single_layer, n_head=2, n_embd=32, shape_model_vocab_size=50,
                           shape_model_embed_dim=4, text_model_embed_dim=12, use_bbox=use_bbox)  # fmt: skip
    return CubeDecoder(config).eval()


def make_prompts(decoder: CubeDecoder, count: int, *, box: bool = False) -> list[Conditioning]:
    generator = torch.Generator().manual_seed(7)
    states = torch.randn(count + 1, 5, 12, generator=generator)
    boxes = torch.rand(count, 3, generator=generator) if box else None
    with torch.no_grad():
        cond, uncond = decoder.condition(states[:-1], boxes), decoder.condition(states[-1:])
    return [Conditioning(cond=row, uncond=uncond[0]) for row in cond]


def make_engine(decoder: CubeDecoder, slots: int, *, guided: bool = True, cache: bool = True) -> Engine:
    spec = decoder.cache_spec(5, 24)
    runner = CubeRunner(decoder, spec, num_slots=slots, guided=guided, cache=cache)
    return Engine(HostRunner(runner, IdPlan(ranges=((0, 50),) * 4 + ((10, 30),))))


def ids_of(engine: Engine, requests: list[Request]) -> list[list[int]]:
    return [r.ids.tolist() for r in engine.generate(requests).results]


@pytest.mark.parametrize("box", [False, True], ids=["no-box", "box"])
@pytest.mark.parametrize("n_single_layer", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_cached_equals_uncached_and_any_number_of_slots(seed: int, n_single_layer: int, box: bool) -> None:
    decoder = make_decoder(seed, use_bbox=box, n_single_layer=n_single_layer)
    prompts = make_prompts(decoder, len(SAMPLINGS), box=box)
    requests = [Request(prompt=p, num_tokens=12, sampling=s) for p, s in zip(prompts, SAMPLINGS.values(), strict=True)]
    expected = ids_of(make_engine(decoder, 1, cache=False), requests)
    assert len({tuple(row) for row in expected}) == len(requests)
    for slots in (1, 2, 3, 8):
        assert ids_of(make_engine(decoder, slots), requests) == expected
    assert ids_of(make_engine(decoder, 3, cache=False), requests) == expected


def test_requests_of_different_lengths_join_and_leave_without_disturbing_each_other() -> None:
    decoder = make_decoder()
    prompts = make_prompts(decoder, 7)
    lengths = [3, 12, 1, 20, 7, 2, 9]
    samplings = [list(SAMPLINGS.values())[i % 4] for i in range(7)]
    requests = [
        Request(prompt=p, num_tokens=n, sampling=s) for p, n, s in zip(prompts, lengths, samplings, strict=True)
    ]
    alone = [ids_of(make_engine(decoder, 1), [request])[0] for request in requests]
    assert [len(row) for row in alone] == lengths
    assert ids_of(make_engine(decoder, 3), requests) == alone
    assert ids_of(make_engine(decoder, 3), requests[::-1]) == alone[::-1]


def test_a_request_that_leaves_midway_leaves_its_neighbours_alone() -> None:
    decoder = make_decoder()
    prompts = make_prompts(decoder, 3)
    requests = [Request(prompt=p, num_tokens=10) for p in prompts]
    expected = ids_of(make_engine(decoder, 1), requests)
    engine = make_engine(decoder, 3)
    handles = [engine.join(request) for request in requests]
    for _ in range(4):
        assert not engine.step()
    engine.leave(handles[0])
    done: dict[int, Result] = {}
    while engine.slots:
        done |= engine.step()
    assert [done[h].ids.tolist() for h in handles[1:]] == expected[1:]
    assert handles[0] not in done


def test_unguided_engine_equals_guidance_zero() -> None:
    decoder = make_decoder()
    requests = [
        Request(prompt=p, num_tokens=9, sampling=SamplingConfig(guidance_scale=0)) for p in make_prompts(decoder, 3)
    ]
    assert ids_of(make_engine(decoder, 2, guided=False), requests) == ids_of(make_engine(decoder, 2), requests)


def test_forced_and_stop_ids() -> None:
    decoder = make_decoder()
    prompt = make_prompts(decoder, 1)[0]
    forced = torch.full((10,), -1)
    forced[[0, 3]] = torch.tensor([41, 17])
    free = ids_of(make_engine(decoder, 1), [Request(prompt=prompt, num_tokens=10, forced=forced)])[0]
    assert free[0] == 41
    assert free[3] == 17
    stop = Request(prompt=prompt, num_tokens=10, forced=forced, stop_ids=frozenset({17}))
    result = make_engine(decoder, 1).generate([stop]).results[0]
    assert result.finish == "stop"
    assert result.ids.tolist() == free[:3]


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_logits_that_are_not_finite_end_that_request_only(poison: float) -> None:
    decoder = make_decoder()
    prompts = make_prompts(decoder, 2)
    expected = ids_of(make_engine(decoder, 1), [Request(prompt=prompts[1], num_tokens=6)])[0]
    engine = make_engine(decoder, 2)
    bad = Conditioning(cond=prompts[0].cond * poison, uncond=prompts[0].uncond)
    handles = [engine.join(Request(prompt=p, num_tokens=6)) for p in (bad, prompts[1])]
    done: dict[int, Result] = {}
    while engine.slots:
        done |= engine.step()
    assert done[handles[0]].finish == "error"
    assert "step 0" in done[handles[0]].error
    assert done[handles[1]].ids.tolist() == expected
    with pytest.raises(DecodeError, match="step 0"):
        engine.generate([Request(prompt=bad, num_tokens=6)])
    assert ids_of(engine, [Request(prompt=prompts[1], num_tokens=6)])[0] == expected


def test_full_slots_and_missing_guidance_are_refused() -> None:
    decoder = make_decoder()
    prompt = make_prompts(decoder, 1)[0]
    engine = make_engine(decoder, 1)
    engine.join(Request(prompt=prompt, num_tokens=3))
    with pytest.raises(InputError, match="all 1 slots are in use"):
        engine.join(Request(prompt=prompt, num_tokens=3))
    with pytest.raises(InputError, match="guidance"):
        make_engine(decoder, 1, guided=False).join(Request(prompt=prompt, num_tokens=3))


def test_an_interrupted_batch_leaves_the_engine_usable() -> None:
    decoder = make_decoder()
    requests = [Request(prompt=p, num_tokens=8) for p in make_prompts(decoder, 3)]
    engine = make_engine(decoder, 2)
    expected = ids_of(engine, requests)

    def interrupt(done: int, total: int) -> None:
        if done >= total // 2:
            raise KeyboardInterrupt

    callback: Callable[[int, int], None] = interrupt
    with pytest.raises(KeyboardInterrupt):
        engine.generate(requests, callback)
    assert ids_of(engine, requests) == expected
    # Requests that nobody could take out of their slots are gone when others take these.
    for request in requests[:2]:
        engine.join(request)
    engine.step()
    engine.slots.clear()
    assert ids_of(engine, requests) == expected


class Counting:
    """A model without a cache, whose likeliest id is the one fed plus the number of those before it."""

    num_slots, copies, weight_bytes = 2, 1, 0
    max_tokens: int | None = None
    cache = None

    def __init__(self) -> None:
        self.moved: list[tuple[int, int, int]] = []
        self.freed: list[int] = []

    def start(self, slot: int, prompt: object) -> int:  # noqa: ARG002 - the interface
        assert isinstance(prompt, int)
        return prompt

    def step(self, ids_A: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        return torch.nn.functional.one_hot((ids_A + torch.tensor(lengths)) % 50, 50).float()

    def move(self, source: int, target: int, length: int) -> None:
        self.moved.append((source, target, length))

    def free(self, slots: Sequence[int]) -> None:
        self.freed += slots

    def forget(self, slot: int) -> None:  # noqa: ARG002 - the interface
        raise AssertionError("all is finite")

    def seek(self, slot: int, step: int) -> None:
        pass


def test_the_engine_decodes_whatever_gives_logits() -> None:
    model, greedy = Counting(), SamplingConfig(guidance_scale=0)
    engine = Engine(HostRunner(model, IdPlan(ranges=((0, 50),))))
    lengths = (2, 6, 4)
    requests = [Request(prompt=10 * i, num_tokens=n, sampling=greedy) for i, n in enumerate(lengths)]
    want = [[10 * i + sum(range(k + 1)) for k in range(n)] for i, n in enumerate(lengths)]
    assert ids_of(engine, requests) == want
    # The first request ends after two steps, and the second takes its slot; then both end together.
    assert model.moved == [(1, 0, 2)]
    assert model.freed == [1, 0]
    stopping = Request(prompt=0, num_tokens=9, sampling=greedy, stop_ids=frozenset({6}))
    (result,) = engine.generate([stopping]).results
    assert (result.finish, result.ids.tolist()) == ("stop", [0, 1, 3])
    with pytest.raises(AssertionError, match="a cache of another kind"):
        assert engine.cache


def test_a_hook_is_entered_around_every_step_and_nothing_else() -> None:
    decoder = make_decoder()
    requests = [Request(prompt=p, num_tokens=n) for p, n in zip(make_prompts(decoder, 3), (2, 5, 3), strict=True)]
    engine = make_engine(decoder, 2)
    expected = ids_of(engine, requests)
    seen: list[tuple[str, int]] = []

    @contextmanager
    def around() -> Iterator[None]:
        seen.append(("enter", engine.num_steps))
        yield
        seen.append(("exit", engine.num_steps))

    engine.around_step = around
    assert ids_of(engine, requests) == expected
    assert seen == [pair for step in range(engine.num_steps) for pair in (("enter", step), ("exit", step + 1))]
    assert engine.num_steps == 5


def test_the_bundled_layout_decodes_with_many_ranges() -> None:
    weights = tiny_weights()
    spec = weights.decoder.cache_spec(5, 15)
    prompts = make_prompts(weights.decoder, 2)
    lengths = (15, 6)
    plan = IdPlan(ranges=weights.code.ranges)
    requests = [Request(prompt=p, num_tokens=n) for p, n in zip(prompts, lengths, strict=True)]
    engine = Engine(HostRunner(CubeRunner(weights.decoder, spec, num_slots=2), plan))
    engine.join(requests[0])
    engine.step()
    # The second request joins a step later, so that both stand in different ranges.
    engine.join(requests[1])
    results: dict[int, Result] = {}
    while engine.slots:
        results |= engine.step()
    for result in results.values():
        for value, (low, high) in zip(result.ids.tolist(), plan.ranges, strict=False):
            assert low <= value < high
