"""The collectives over torch.distributed: gloo between processes on CPUs, NCCL between GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from helicube.errors import PoolError
from helicube.parallel.collectives import Done, Group, Pending, Traffic
from helicube.parallel.launched import GRACE_S

__all__ = ["NCCL_SPARE_S", "Board", "TorchCollectives", "Work", "absent_ranks", "answering", "listed"]

# Until NCCL's own limit, which ends the process without a word: it only strikes if the one asked for does not.
NCCL_SPARE_S = 60.0

# The newer name of a function that the oldest supported version has under the older one only.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class Board(Protocol):
    """The part of a torch.distributed store that is used: a board where every rank reads and writes."""

    def set(self, key: str, value: str, /) -> None: ...

    def check(self, keys: list[str], /) -> bool: ...

    def get(self, key: str, /) -> bytes: ...


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
        # NCCL's wait holds up the stream and not the host, which would then hang where no error can be raised.
        self._asks = dist.get_backend() == "nccl"
        limit = timedelta(seconds=timeout_s + (NCCL_SPARE_S if self._asks else 0.0))
        self._groups: dict[Group, dist.ProcessGroup] = {}
        for group in dict.fromkeys(groups):
            if len(group) == 1 and self.size > 1:
                continue
            made = dist.new_group(list(group), timeout=limit)
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
        return Work(work, result, blame, self.timeout_s if self._asks else None)

    def _explain(self, kind: str, group: Group, error: Exception) -> PoolError:
        # All ranks are asked: one of the group may itself be waiting, in another group, for the rank that hangs.
        absent = absent_ranks(self._store, "alarm", self.rank, range(self.size), GRACE_S)
        if not absent:
            return PoolError(f"{kind} between ranks {listed(group)} of {self.size} failed on all of them: {error}")
        return PoolError(
            f"rank {listed(absent)} of {self.size} did not take part in an {kind}: it died, or hung for longer than "
            f"{self.timeout_s:g} s; the run is over"
        )


class Work:
    """A collective under way in torch.distributed.

    Args:
        blame: from the error of the backend to the one to raise.
        ask_s: seconds for which the collective is asked whether it is done; None where its own wait has a limit.
    """

    def __init__(
        self, work: dist.Work, result: Tensor, blame: Callable[[Exception], PoolError], ask_s: float | None = None
    ) -> None:
        self._work, self._result, self._blame, self._ask_s = work, result, blame, ask_s

    def wait(self) -> Tensor:
        try:
            if self._ask_s is not None:
                self._ask(time.monotonic() + self._ask_s)
            self._work.wait()
        except (RuntimeError, TimeoutError) as error:
            raise self._blame(error) from error
        return self._result

    def _ask(self, deadline: float) -> None:
        while not self._work.is_completed():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not done within {self._ask_s:g} s")
            # Gives way to other threads, without the rest of a sleep: most exchanges take microseconds.
            time.sleep(0)


def absent_ranks(store: Board, word: str, rank: int, ranks: Iterable[int], wait_s: float) -> list[int]:
    """Say `word`, wait for `ranks` to say it too, and return those that did not.

    Raises:
        PoolError: the store does not answer.
    """
    absent = [r for r in ranks if r != rank]
    deadline = time.monotonic() + wait_s
    with answering():
        store.set(f"{word}/{rank}", "")
        while absent and time.monotonic() < deadline:
            absent = [r for r in absent if not store.check([f"{word}/{r}"])]
            time.sleep(0.02)
    return absent


@contextmanager
def answering() -> Iterator[None]:
    """Whoever holds the store, a launcher or rank 0, takes it along when it ends."""
    try:
        yield
    except RuntimeError as error:
        raise PoolError("the launcher, or rank 0 where there is none, has ended; the run is over") from error


def listed(ranks: Iterable[int]) -> str:
    return ", ".join(map(str, ranks))
