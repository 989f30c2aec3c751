"""Requests whose ids are chosen without the host get the ids of the plain engine, whoever their neighbours are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch

from helicube.engine.request import Request, Result
from helicube.engine.runner import Conditioning
from helicube.errors import DecodeError, DeviceError
from launch_cases import (
    SAMPLINGS,
    ids_of,
    launching_engine,
    make_decoder,
    make_requests,
    plain_engine,
    runner_of,
)

LENGTHS = (3, 9, 5, 12, 1, 2, 7)


@pytest.mark.parametrize(("slots", "steps_per_launch"), [(1, 3), (3, 1), (3, 8), (5, 3)])
def test_ids_of_the_plain_engine(slots: int, steps_per_launch: int) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, LENGTHS)
    expected = ids_of(plain_engine(decoder), requests)
    assert len({tuple(row) for row in expected}) == len(LENGTHS)
    engine = launching_engine(decoder, slots, steps_per_launch=steps_per_launch)
    for order in (requests, requests[::-1]):
        wanted = expected if order[0] is requests[0] else expected[::-1]
        assert ids_of(engine, order) == wanted


def test_without_rows_for_guidance() -> None:
    decoder = make_decoder()
    requests = [
        dataclasses.replace(r, sampling=dataclasses.replace(r.sampling, guidance_scale=0))
        for r in make_requests(decoder, LENGTHS[:4])
    ]
    expected = ids_of(plain_engine(decoder), requests)
    assert ids_of(launching_engine(decoder, 2, guided=False), requests) == expected


def test_requests_join_and_leave_between_launches() -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (12, 20, 9, 14))
    expected = ids_of(plain_engine(decoder), requests)
    engine = launching_engine(decoder, 3, steps_per_launch=2)
    handles = [engine.join(request) for request in requests[:3]]
    assert not engine.step()
    # The first slot is freed midway, the last takes its place, and a new request takes the last.
    engine.leave(handles[0])
    assert not engine.step()
    handles.append(engine.join(requests[3]))
    done: dict[int, Result] = {}
    while engine.slots:
        done |= engine.step()
    assert [done[h].ids.tolist() for h in handles[1:]] == expected[1:]
    assert runner_of(engine).state.positions.tolist() == [-1] * 6


def test_the_host_counts_and_reads_nothing_until_a_request_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (20, 20))
    engine = launching_engine(decoder, 2, steps_per_launch=4)
    reads: list[int] = []
    read = runner_of(engine).read

    def reading(slot: int, since: int) -> object:
        reads.append(engine.num_steps)
        return read(slot, since)

    monkeypatch.setattr(runner_of(engine), "read", reading)
    seen: list[tuple[int, int]] = []
    batch = engine.generate(requests, lambda done, total: seen.append((done, total)))
    assert reads == [20, 20]
    assert seen == [(8, 40), (16, 40), (24, 40), (32, 40), (40, 40)]
    assert (batch.num_steps, batch.num_tokens) == (20, 40)


def test_the_host_waits_only_where_it_is_far_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_decoder()
    engine = launching_engine(decoder, 1, steps_per_launch=1)
    log: list[str] = []

    class Mark:
        def __init__(self) -> None:
            self.name = f"{sum('mark' in line for line in log)}"
            log.append(f"mark {self.name}")

        def synchronize(self) -> None:
            log.append(f"wait {self.name}")

    monkeypatch.setattr(runner_of(engine), "_mark", Mark)
    engine.join(make_requests(decoder, (24,))[0])
    for _ in range(6):
        engine.step()
    assert log == ["mark 0", "mark 1", "mark 2", "mark 3", "mark 4", "wait 0", "mark 5", "wait 1"]


def test_stop_ids() -> None:
    decoder = make_decoder()
    request = make_requests(decoder, (20,))[0]
    free = ids_of(plain_engine(decoder), [request])[0]
    stopping = dataclasses.replace(request, stop_ids=frozenset({free[9]}))
    wanted = plain_engine(decoder).generate([stopping]).results[0]
    for steps_per_launch in (1, 4, 7):
        engine = launching_engine(decoder, 2, steps_per_launch=steps_per_launch)
        result = engine.generate([stopping, request]).results
        assert (result[0].finish, result[0].ids.tolist()) == ("stop", wanted.ids.tolist())
        assert result[1].ids.tolist() == free


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_logits_that_are_not_finite_end_that_request_only(poison: float) -> None:
    decoder = make_decoder()
    good, other, late = make_requests(decoder, (15, 15, 15))
    expected = ids_of(plain_engine(decoder), [good, other, late])
    assert isinstance(good.prompt, Conditioning)
    bad = dataclasses.replace(good, prompt=dataclasses.replace(good.prompt, cond=good.prompt.cond * poison))
    engine = launching_engine(decoder, 2, steps_per_launch=2)
    handles = [engine.join(r) for r in (bad, other)]
    done = engine.step()
    # Told at once, not at the end of the request.
    assert done[handles[0]].finish == "error"
    assert "step 0" in done[handles[0]].error
    # The freed slot holds nothing that could reach the next request.
    handles.append(engine.join(late))
    while engine.slots:
        done |= engine.step()
    assert [done[h].ids.tolist() for h in handles[1:]] == expected[1:]
    with pytest.raises(DecodeError, match="step 0"):
        engine.generate([bad])
    assert ids_of(engine, [good]) == expected[:1]


def test_a_failure_midway_is_named_by_its_step() -> None:
    decoder = make_decoder()
    request = make_requests(decoder, (15,))[0]
    expected = ids_of(plain_engine(decoder), [request])[0]
    damaged = make_decoder()
    # The id chosen at step 5 is poison when it is fed.
    damaged.transformer.wte.weight[expected[5]] = torch.nan
    first = expected.index(expected[5])
    for engine in (plain_engine(damaged), launching_engine(damaged, 1, steps_per_launch=4)):
        with pytest.raises(DecodeError, match=f"step {first + 1};"):
            engine.generate([request])
        engine.join(request)
        done: dict[int, Result] = {}
        while engine.slots:
            done |= engine.step()
        assert [r.ids.tolist() for r in done.values()] == [expected[: first + 1]]


FAULTS: list[tuple[Callable[[], Exception], str]] = [
    (lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "out of memory .*ask for less"),
    (lambda: RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors"), "device failed .*launch fail"),
    (lambda: torch.AcceleratorError("CUDA error: the device is lost"), "device failed during a decode step"),
]


@pytest.mark.parametrize(("fault", "told"), FAULTS)
def test_a_fault_of_the_device_is_one_clear_line_and_the_engine_is_usable_afterwards(
    fault: Callable[[], Exception], told: str
) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (15, 9))
    expected = ids_of(plain_engine(decoder), requests)
    engine = launching_engine(decoder, 2, steps_per_launch=2)
    runner = runner_of(engine)
    sound, calls = runner.steps, []

    def steps(num_slots: int, count: int) -> None:
        calls.append(count)
        if len(calls) == 3:
            raise fault()
        sound(num_slots, count)

    runner.steps = steps
    with pytest.raises(DeviceError, match=told) as caught:
        engine.generate(requests)
    assert "\n" not in str(caught.value)
    assert not engine.slots
    assert ids_of(engine, requests) == expected


def test_a_mistake_of_ours_is_not_blamed_on_the_device() -> None:
    decoder = make_decoder()
    engine = launching_engine(decoder, 1)

    def steps(num_slots: int, count: int) -> None:
        raise RuntimeError("shapes (2, 3) and (4, 5) do not fit")

    runner_of(engine).steps = steps
    with pytest.raises(RuntimeError, match="do not fit") as caught:
        engine.generate(make_requests(decoder, (3,)))
    assert not isinstance(caught.value, DeviceError)


def test_a_prompt_that_memory_does_not_hold_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (15, 9))
    expected = ids_of(plain_engine(decoder), requests)
    engine = launching_engine(decoder, 2)
    handle = engine.join(requests[0])
    engine.step()
    with monkeypatch.context() as patched:

        def full(*_: object) -> int:
            raise torch.OutOfMemoryError("CUDA out of memory")

        patched.setattr(runner_of(engine).runner, "start", full)
        with pytest.raises(DeviceError, match="taking in a prompt"):
            engine.join(requests[1])
    second = engine.join(requests[1])
    done: dict[int, Result] = {}
    while engine.slots:
        done |= engine.step()
    assert [done[handle].ids.tolist(), done[second].ids.tolist()] == expected


def test_an_interrupted_batch_leaves_the_engine_usable() -> None:
    decoder = make_decoder()
    requests = make_requests(decoder, (15, 9, 12))
    engine = launching_engine(decoder, 2)
    expected = ids_of(engine, requests)

    def interrupt(done: int, total: int) -> None:
        if done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.generate(requests, interrupt)
    assert runner_of(engine).state.steps.tolist() == [-1, -1]
    assert ids_of(engine, requests) == expected


def test_every_sampling_is_covered() -> None:
    requests: list[Request] = make_requests(make_decoder(), LENGTHS)
    assert {r.sampling for r in requests} == set(SAMPLINGS)


def test_ids_can_be_looked_at_before_a_request_is_done() -> None:
    decoder = make_decoder()
    (request,) = make_requests(decoder, (20,))
    (whole,) = ids_of(launching_engine(decoder, 1, steps_per_launch=4), [request])
    engine = launching_engine(decoder, 1, steps_per_launch=4)
    handle = engine.join(request)
    engine.step()
    engine.step()
    assert engine.slots[0].chosen == []
    assert engine.chosen(handle) == whole[:8]
