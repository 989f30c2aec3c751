"""N ranks inside one process and on one device, a thread each: every layout can be run without a pool."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from helicube.errors import PoolError
from helicube.parallel.collectives import Group, Pending, Traffic

__all__ = ["ThreadCollectives", "ThreadPool"]

Result = TypeVar("Result")


# Group and number of a collective in it, its kind, and shape and type of what each rank brings: ranks that disagree
# must not meet, as they would not anywhere else.
_Place = tuple[Group, int, str, tuple[int, ...], torch.dtype]


class _Meeting:
    """One collective of one group: what each rank brought."""

    def __init__(self, size: int) -> None:
        self.brought: list[Tensor | None] = [None] * size
        self.missing = size
        self.complete = threading.Event()
        self.leaving = size


class ThreadPool:
    """The ranks of a process and the place where they meet.

    Args:
        size: N
        timeout_s: after which a rank that others wait for is named in a `PoolError`.
    """

    def __init__(self, size: int, timeout_s: float = 60.0) -> None:
        self.size, self.timeout_s = size, timeout_s
        self._lock = threading.Lock()
        self._meetings: dict[_Place, _Meeting] = {}
        self._failed = False

    def run(self, target: Callable[[ThreadCollectives], Result]) -> list[Result]:
        """Run the same function on every rank and return the results in order.

        Raises:
            Exception: whatever a rank raised first; the other ranks are ended.
        """
        results: list[Result | None] = [None] * self.size
        errors: list[BaseException] = []

        def body(rank: int) -> None:
            try:
                results[rank] = target(ThreadCollectives(self, rank))
            except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
                errors.append(error)
                self.fail()

        threads = [threading.Thread(target=body, args=(rank,), daemon=True) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results  # type: ignore[return-value]

    def fail(self) -> None:
        """Wake all who wait; they end with a `PoolError`."""
        with self._lock:
            self._failed = True
            for meeting in self._meetings.values():
                meeting.complete.set()

    def bring(self, place: _Place, rank: int, x: Tensor) -> _Meeting:
        """Hand over a rank's tensor without waiting."""
        group = place[0]
        with self._lock:
            meeting = self._meetings.setdefault(place, _Meeting(len(group)))
            meeting.brought[group.index(rank)] = x
            meeting.missing -= 1
            if meeting.missing == 0 or self._failed:
                meeting.complete.set()
            return meeting

    def collect(self, place: _Place, meeting: _Meeting) -> list[Tensor]:
        """Wait until every rank of the group has brought its tensor."""
        group, _, kind, *_ = place
        in_time = meeting.complete.wait(self.timeout_s)
        with self._lock:
            absent = [str(rank) for rank, x in zip(group, meeting.brought, strict=True) if x is None]
            if absent:
                why = "ended early" if in_time else f"did not answer within {self.timeout_s:g} s"
                raise PoolError(f"rank {', '.join(absent)} of {self.size} {why} in an {kind}; the run is over")
            meeting.leaving -= 1
            if meeting.leaving == 0:
                del self._meetings[place]
        return [x for x in meeting.brought if x is not None]


class ThreadCollectives:
    """One rank of a `ThreadPool`. Sums are taken in the order of the ranks."""

    def __init__(self, pool: ThreadPool, rank: int) -> None:
        self.pool, self.rank, self.size = pool, rank, pool.size
        self.traffic = Traffic()
        self._count: dict[Group, int] = {}

    def all_reduce(self, x: Tensor, group: Group) -> Tensor:
        n = len(group)
        if n == 1:
            return x
        self.traffic.add("all_reduce", 2 * (n - 1) * x.nbytes // n)
        parts = self._start("all-reduce", x, group)()
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def all_gather(self, x: Tensor, group: Group) -> Tensor:
        self.traffic.add("all_gather", (len(group) - 1) * x.nbytes)
        return torch.stack(self._start("all-gather", x, group)())

    def all_to_all(self, x: Tensor, group: Group) -> Pending:
        n, place = len(group), group.index(self.rank)
        self.traffic.add("all_to_all", (n - 1) * x.nbytes // n)
        collect = self._start("all-to-all", x, group)
        return _Later(lambda: torch.stack([part[place] for part in collect()]))

    def _start(self, kind: str, x: Tensor, group: Group) -> Callable[[], list[Tensor]]:
        number = self._count[group] = self._count.get(group, 0) + 1
        place = (group, number, kind, tuple(x.shape), x.dtype)
        meeting = self.pool.bring(place, self.rank, x)
        return lambda: self.pool.collect(place, meeting)


class _Later:
    def __init__(self, finish: Callable[[], Tensor]) -> None:
        self.wait = finish
