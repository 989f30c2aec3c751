"""What goes wrong is one clear error, and the engine decodes on afterwards."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from cpu_libraries import library

from helicube.engine.build import make_engine
from helicube.engine.engine import Engine
from helicube.engine.host_runner import HostRunner
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan, Request, Result
from helicube.engine.runner import CubeRunner
from helicube.errors import DecodeError, DeviceError, InputError
from helicube.kernels.cpu import library as native
from helicube.models.cube.decoder import CubeDecoder
from helicube.nn.cache import CacheSpec, LayerSpec
from launch_cases import MAX_TOKENS, NUM_TEXT, VOCAB, ids_of, make_decoder, make_requests

OPTIONS = {
    "plain": EngineOptions(graph=False, kernels="plain"),
    "native": EngineOptions(graph=False, kernels="native"),
    "graph": EngineOptions(steps_per_launch=3),
}


@pytest.fixture(params=OPTIONS, autouse=True)
def options(request: pytest.FixtureRequest) -> EngineOptions:
    library()
    return OPTIONS[request.param]


def engine_of(decoder: CubeDecoder, options: EngineOptions, slots: int = 2) -> Engine:
    spec, plan = decoder.cache_spec(NUM_TEXT, MAX_TOKENS), IdPlan(ranges=((0, VOCAB),))
    return make_engine(decoder, spec, plan, num_slots=slots, options=options)


def test_more_slots_than_memory(options: EngineOptions) -> None:
    decoder = make_decoder()
    layer = LayerSpec(num_heads=2, head_dim=16, num_prefix=NUM_TEXT + 1)
    huge = CacheSpec(layers=(layer,) * 2, max_tokens=1 << 34)
    plan = IdPlan(ranges=((0, VOCAB),))
    with pytest.raises(DeviceError, match=r"out of memory during the set-up of 4000 slots; ask for less") as caught:
        make_engine(decoder, huge, plan, num_slots=4000, options=options)
    assert "\n" not in str(caught.value)
    for slots in (0, -1, 5000):
        with pytest.raises(InputError, match="choose 1 to 4096"):
            engine_of(decoder, options, slots)
    requests = make_requests(decoder, (4,))
    assert len(ids_of(engine_of(decoder, options), requests)[0]) == 4


@pytest.mark.parametrize("reason", ["DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes", ""])
def test_memory_that_runs_out_in_a_step(options: EngineOptions, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (6, 4, 5))
    engine = engine_of(decoder, options)
    want = ids_of(engine, requests)
    stepper = engine.runner if options.graph else CubeRunner
    name, calls = ("steps" if options.graph else "step"), 0
    whole = getattr(stepper, name)

    def fail_second(*values: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError(reason) if reason else MemoryError
        return whole(*values)

    with monkeypatch.context() as patch:
        patch.setattr(stepper, name, fail_second)
        with pytest.raises(DeviceError, match="out of memory during a decode step"):
            engine.generate(requests)
    assert not engine.slots
    assert ids_of(engine, requests) == want


def test_more_requests_than_slots_and_ids_that_do_not_exist(options: EngineOptions) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (3, 3, 3))
    engine = engine_of(decoder, options)
    for request in requests[:2]:
        engine.join(request)
    with pytest.raises(InputError, match="all 2 slots are in use; wait for one"):
        engine.join(requests[2])
    while engine.slots:
        engine.step()
    prompt = requests[0].prompt
    with pytest.raises(InputError, match="id 40 cannot be fixed; the ids of this model end at 39"):
        engine.join(Request(prompt=prompt, num_tokens=3, forced=torch.tensor([-1, 40, -1])))
    for forced in ([4], []):
        with pytest.raises(InputError, match=f"{len(forced)} fixed ids for 3 tokens"):
            engine.join(Request(prompt=prompt, num_tokens=3, forced=torch.tensor(forced, dtype=torch.int64)))
    for count in (0, -1, MAX_TOKENS + 1):
        with pytest.raises(InputError, match=f"{count} tokens are out of range; choose 1 to {MAX_TOKENS}"):
            engine.join(Request(prompt=prompt, num_tokens=count))
    handle = engine.join(requests[0])
    with pytest.raises(InputError, match="1 requests have joined already"):
        engine.generate(requests)
    engine.leave(handle)
    engine.leave(handle)
    assert ids_of(engine, requests) == ids_of(engine_of(decoder, options), requests)


@pytest.mark.parametrize("at", [0, 4])
def test_logits_that_are_not_finite_name_the_step(options: EngineOptions, at: int) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (8, 8))
    want = ids_of(engine_of(decoder, options), requests)
    # The id of the first request at a step is poison, and no other request takes it.
    poisoned = want[0][at - 1] if at else decoder.config.bos_id
    damaged = make_decoder()
    with torch.no_grad():
        damaged.transformer.wte.weight[poisoned] = torch.nan
    first = want[0].index(poisoned) + 1 if at else 0
    engine = engine_of(damaged, options)
    with pytest.raises(DecodeError, match=f"not finite at step {first};"):
        engine.generate([requests[0]])
    if at and poisoned not in want[1]:
        assert ids_of(engine, [requests[1]]) == [want[1]]


def test_what_is_not_finite_reaches_no_later_request_in_that_slot(options: EngineOptions) -> None:
    decoder = make_decoder()
    failing, long, late = make_requests(decoder, (20, MAX_TOKENS, 12))
    want = ids_of(engine_of(decoder, options, 1), [failing, long, late])
    # The first request feeds it at its sixth step and dies of it; no other feeds it.
    poison = next(i for i in range(VOCAB) if i not in {*want[0], *want[1], *want[2]})
    forced = torch.full((20,), -1)
    forced[5] = poison
    with torch.no_grad():
        decoder.transformer.wte.weight[poison] = torch.nan
    engine = engine_of(decoder, options, 2)
    handles = [engine.join(long)]
    engine.step()
    handles.append(engine.join(dataclasses.replace(failing, forced=forced)))
    done: dict[int, Result] = {}
    while handles[1] not in done:
        done |= engine.step()
    assert "not finite at step 6;" in done[handles[1]].error
    # Its keys there are masked, because the neighbour is further along, and are read all the same.
    handles.append(engine.join(late))
    while engine.slots:
        done |= engine.step()
    assert [done[handles[i]].ids.tolist() for i in (0, 2)] == want[1:]


def test_a_device_that_fails_when_a_slot_is_freed_leaves_none_in_use(
    options: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (6, 6))
    engine = engine_of(decoder, options)
    want = ids_of(engine, requests)
    handles = [engine.join(request) for request in requests]

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "move", fail)
        with pytest.raises(DeviceError, match="out of memory during a decode step"):
            engine.leave(handles[0])
    assert not engine.slots
    engine.leave(handles[1])
    assert ids_of(engine, requests) == want


def test_without_a_compiler_the_plain_path_takes_over(options: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (5, 7))
    want = ids_of(engine_of(decoder, options), requests)
    monkeypatch.setenv(native.SWITCH, "0")
    native.load.cache_clear()
    try:
        if options.kernels == "native":
            with pytest.raises(DeviceError, match="native kernels cannot run on cpu"):
                engine_of(decoder, options)
        else:
            engine = engine_of(decoder, options)
            assert isinstance(engine.runner, HostRunner)
            assert ids_of(engine, requests) == want
    finally:
        native.load.cache_clear()


def test_native_indices_are_checked(options: EngineOptions) -> None:
    """Not a promise to users: memory of others is never written."""
    decoder = make_decoder()
    engine = engine_of(decoder, options)
    engine.join(make_requests(decoder, (24,))[0])
    runner = engine.runner
    if isinstance(runner, LaunchRunner):
        runner.state.positions.fill_(10_000)
        with pytest.raises(IndexError, match="beyond the tensor"):
            engine.step()
        return
    assert isinstance(runner, HostRunner)
    with pytest.raises(IndexError if options.kernels == "native" else AssertionError):
        runner.model.step(torch.tensor([1]), [10_000])
