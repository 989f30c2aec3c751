"""The engine on a GPU: graphs and kernels in every combination, requests that come and go, what the host waits for."""

from __future__ import annotations

import dataclasses
import gc

import pytest
import torch

from helicube.engine.build import make_engine
from helicube.engine.engine import Engine
from helicube.engine.graphs import GraphSteps, batch_sizes
from helicube.engine.options import EngineOptions
from helicube.engine.request import Result
from helicube.errors import DeviceError
from helicube.models.cube.decoder import CubeDecoder
from launch_cases import MAX_TOKENS, NUM_TEXT, PLAN, ids_of, make_decoder, make_requests, plain_engine, runner_of
from triton_cases import DEVICE, GPU_ONLY

pytestmark = GPU_ONLY

LENGTHS = (3, 12, 7, 20, 1, 2, 24)


@pytest.fixture(scope="module")
def decoder() -> CubeDecoder:
    return make_decoder().to(DEVICE)


def engine_of(decoder: CubeDecoder, slots: int, options: EngineOptions) -> Engine:
    return make_engine(decoder, decoder.cache_spec(NUM_TEXT, MAX_TOKENS), PLAN, num_slots=slots, options=options)


@pytest.mark.parametrize("steps_per_launch", [1, 8])
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("kernels", ["plain", "triton"])
def test_float32_ids_of_the_plain_engine(
    decoder: CubeDecoder, kernels: str, graph: bool, steps_per_launch: int
) -> None:
    requests = make_requests(decoder, LENGTHS)
    expected = ids_of(plain_engine(decoder), requests)
    options = EngineOptions(graph=graph, kernels=kernels, steps_per_launch=steps_per_launch)  # type: ignore[arg-type]
    for slots in (1, 3, 5):
        engine = engine_of(decoder, slots, options)
        assert ids_of(engine, requests) == expected
        assert ids_of(engine, requests[::-1]) == expected[::-1]


def test_requests_join_and_leave_between_launches(decoder: CubeDecoder) -> None:
    requests = make_requests(decoder, (12, 20, 9, 14))
    expected = ids_of(plain_engine(decoder), requests)
    engine = engine_of(decoder, 3, EngineOptions(steps_per_launch=2))
    handles = [engine.join(request) for request in requests[:3]]
    engine.step()
    engine.leave(handles[0])
    engine.step()
    handles.append(engine.join(requests[3]))
    done: dict[int, Result] = {}
    while engine.slots:
        done |= engine.step()
    assert [done[h].ids.tolist() for h in handles[1:]] == expected[1:]


def test_launches_neither_wait_nor_allocate(decoder: CubeDecoder) -> None:
    engine = engine_of(decoder, 2, EngineOptions(steps_per_launch=4))
    for request in make_requests(decoder, (24, 24)):
        engine.join(request)
    engine.step()
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            assert not engine.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    while engine.slots:
        engine.step()


def test_graphs_of_all_sizes_share_one_pool(decoder: CubeDecoder) -> None:
    def reserved(slots: int) -> int:
        gc.collect()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        engine = engine_of(decoder, slots, EngineOptions(kernels="plain"))
        torch.cuda.empty_cache()
        steps = runner_of(engine).steps
        assert isinstance(steps, GraphSteps)
        assert steps.sizes == batch_sizes(slots)
        return torch.cuda.memory_reserved() - before

    # Eleven slots take four graphs more than one; each pool of its own would take 2 MiB blocks of its own.
    assert reserved(11) <= reserved(1) + (16 << 20)


def test_a_failing_request_is_told_and_its_neighbour_is_not_touched(decoder: CubeDecoder) -> None:
    good, other = make_requests(decoder, (15, 15))
    expected = ids_of(plain_engine(decoder), [good, other])
    bad = dataclasses.replace(good, prompt=dataclasses.replace(good.prompt, cond=good.prompt.cond * torch.nan))
    engine = engine_of(decoder, 2, EngineOptions(steps_per_launch=2))
    handles = [engine.join(r) for r in (bad, other)]
    done: dict[int, Result] = {}
    while engine.slots:
        done |= engine.step()
    assert done[handles[0]].finish == "error"
    assert "step 0" in done[handles[0]].error
    assert done[handles[1]].ids.tolist() == expected[1]
    assert ids_of(engine, [good, other]) == expected


def test_out_of_memory_is_one_line_and_what_was_there_goes_on(decoder: CubeDecoder) -> None:
    requests = make_requests(decoder, (9, 5))
    expected = ids_of(plain_engine(decoder), requests)
    engine = engine_of(decoder, 2, EngineOptions())
    free, _ = torch.cuda.mem_get_info()
    hog = torch.empty(max(0, free - (64 << 20)), dtype=torch.uint8, device=DEVICE)
    try:
        spec = decoder.cache_spec(NUM_TEXT, 1 << 20)
        with pytest.raises(DeviceError, match="out of memory") as caught:
            make_engine(decoder, spec, PLAN, num_slots=4096, options=EngineOptions())
        assert "\n" not in str(caught.value)
        assert ids_of(engine, requests) == expected
    finally:
        del hog
        torch.cuda.empty_cache()
