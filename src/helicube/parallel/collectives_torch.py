"""The collectives over torch.distributed: gloo between processes on CPUs, NCCL between GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from helicube.errors import PoolError
from helicube.parallel.collectives import Done, Group, Pending, Traffic

__all__ = ["GRACE_S", "Board", "TorchCollectives", "absent_ranks", "listed"]

# How long a rank that met an error waits for the others to say that they met one too.
GRACE_S = 2.0

# The newer name of a function that the oldest supported version has under the older one only.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class Board(Protocol):
    """The part of a torch.distributed store that is used: a board where every rank reads and writes."""

    def set(self, key: str, value: str, /) -> None: ...

    def check(self, keys: list[str], /) -> bool: ...


class TorchCollectives:
    """One rank of the default process group.

    Args:
        groups: every group of every rank, as all ranks must create all groups in the same order. One of a single rank
            has nothing to send, but where that rank is the whole pool the backend is asked all the same: NCCL can be
            tried on one GPU.
        store: where a rank leaves word when it meets an error, so that the one that does not can be named.
        timeout_s: after which a collective that does not end is an error.
    """

    def __init__(self, groups: Iterable[Group], store: Board, timeout_s: float) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.traffic, self.timeout_s = Traffic(), timeout_s
        self._store = store
        self._groups: dict[Group, dist.ProcessGroup] = {}
        for group in dict.fromkeys(groups):
            if len(group) == 1 and self.size > 1:
                continue
            made = dist.new_group(list(group), timeout=timedelta(seconds=timeout_s))
            if self.rank in group:
                assert made is not None, f"no process group for {group}"
                self._groups[group] = made

    def all_reduce(self, x: Tensor, group: Group) -> Tensor:
        n = len(group)
        if group not in self._groups:
            return x
        x = x.contiguous()
        self.traffic.add("all_reduce", 2 * (n - 1) * x.nbytes // n)
        start = lambda: dist.all_reduce(x, group=self._groups[group], async_op=True)  # noqa: E731
        return self._start("all-reduce", group, start, x).wait()

    def all_gather(self, x: Tensor, group: Group) -> Tensor:
        n = len(group)
        if group not in self._groups:
            return x[None]
        self.traffic.add("all_gather", (n - 1) * x.nbytes)
        flat, source = x.new_empty(n * x.numel()), x.contiguous().view(-1)
        start = lambda: _all_gather(flat, source, group=self._groups[group], async_op=True)  # noqa: E731
        return self._start("all-gather", group, start, flat).wait().view(n, *x.shape)

    def all_to_all(self, x: Tensor, group: Group) -> Pending:
        n = len(group)
        if group not in self._groups:
            return Done(x)
        x = x.contiguous()
        self.traffic.add("all_to_all", (n - 1) * x.nbytes // n)
        received = torch.empty_like(x)
        start = lambda: dist.all_to_all_single(received, x, group=self._groups[group], async_op=True)  # noqa: E731
        return self._start("all-to-all", group, start, received)

    def _start(self, kind: str, group: Group, start: Callable[[], dist.Work | None], result: Tensor) -> Pending:
        """Begin a collective; errors, now or at the wait, become a `PoolError` that names who is missing."""

        def blame(error: Exception) -> PoolError:
            return self._explain(kind, group, error)

        try:
            work = start()
        except RuntimeError as error:
            raise blame(error) from error
        assert work is not None, f"{kind}: this rank is not in {group}"
        return _Work(work, result, blame)

    def _explain(self, kind: str, group: Group, error: Exception) -> PoolError:
        absent = absent_ranks(self._store, "alarm", self.rank, group, GRACE_S)
        if not absent:
            return PoolError(f"{kind} between ranks {listed(group)} of {self.size} failed on all of them: {error}")
        return PoolError(
            f"rank {listed(absent)} of {self.size} did not take part in an {kind}: it died, or hung for longer than "
            f"{self.timeout_s:g} s; the run is over"
        )


class _Work:
    """A collective under way in torch.distributed."""

    def __init__(self, work: dist.Work, result: Tensor, blame: Callable[[Exception], PoolError]) -> None:
        self._work, self._result, self._blame = work, result, blame

    def wait(self) -> Tensor:
        try:
            self._work.wait()
        except RuntimeError as error:
            raise self._blame(error) from error
        return self._result


def absent_ranks(store: Board, word: str, rank: int, group: Iterable[int], wait_s: float) -> list[int]:
    """Say `word`, wait for the group to say it too, and return the ranks that did not.

    If the store does not answer, rank 0, which holds it, is the one.
    """
    absent = [r for r in group if r != rank]
    deadline = time.monotonic() + wait_s
    try:
        store.set(f"{word}/{rank}", "")
        while absent and time.monotonic() < deadline:
            absent = [r for r in absent if not store.check([f"{word}/{r}"])]
            time.sleep(0.02)
    except RuntimeError:
        return [0]
    return absent


def listed(ranks: Iterable[int]) -> str:
    return ", ".join(map(str, ranks))
