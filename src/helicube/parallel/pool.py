"""Joining the pool that torchrun or `helicube.parallel.launch` started: who am I, and who are the others."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from helicube.errors import LayoutError, PoolError
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.collectives_torch import (
    NCCL_SPARE_S,
    Board,
    TorchCollectives,
    absent_ranks,
    answering,
    listed,
)
from helicube.parallel.environment import pool_rank, pool_size
from helicube.parallel.grid import RankGrid
from helicube.specs.layout import HelixLayout

__all__ = ["Pool", "join_pool", "num_gpus", "rank_device"]

# Ranks import PyTorch, perhaps from a cold disk, at different speeds.
START_TIMEOUT_S = 180.0
STORE_TIMEOUT_S = 10.0
# Least time between two signs of life.
BEAT_S = 0.5


def num_gpus() -> int:
    """GPUs of this machine that torch can use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def rank_device(num_gpus: int, local_rank: int, local_size: int) -> torch.device:
    """A GPU of its own for every rank of a machine, or the CPU for all: NCCL does not share a GPU between ranks."""
    return torch.device("cuda", local_rank) if num_gpus >= local_size else torch.device("cpu")


def _own_device(rank: int, size: int) -> torch.device:
    # Without these words a launcher has all its ranks on one machine.
    local_rank = int(os.environ.get("LOCAL_RANK", rank))
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    return rank_device(num_gpus(), local_rank, local_size)


@dataclass(slots=True, kw_only=True)
class Pool:
    """A rank's membership."""

    collectives: Collectives
    device: torch.device
    # None for a pool of one.
    store: Board | None = None
    # Whether this rank holds the store.
    holds: bool = False
    # After which a rank that gives no sign of life is missing.
    timeout_s: float = 60.0
    _beats: int = 0
    _last_beat: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        """Tell the others that this rank gets on, in work that may take longer than a collective."""
        if self.store is None or time.monotonic() < self._last_beat + BEAT_S:
            return
        self._beats, self._last_beat = self._beats + 1, time.monotonic()
        with answering():
            self.store.set(f"beat/{self.collectives.rank}", str(self._beats))

    def ready(self, word: str) -> None:
        """Wait until every rank has said the word, as long as those that have not give signs of life.

        Raises:
            PoolError: names the ranks that gave none for `timeout_s`.
        """
        if self.store is None:
            return
        size, rank = self.collectives.size, self.collectives.rank
        heard: dict[int, tuple[bytes, float]] = {}
        absent = [r for r in range(size) if r != rank]
        with answering():
            self.store.set(f"{word}/{rank}", "")
            while absent:
                absent = [r for r in absent if not self.store.check([f"{word}/{r}"])]
                silent = [r for r in absent if self._silent(r, heard)]
                if silent:
                    raise PoolError(
                        f"rank {listed(silent)} of {size} did not get to {word!r}: it died, or hung for longer than "
                        f"{self.timeout_s:g} s; the run is over"
                    )
                time.sleep(0.02)

    def _silent(self, rank: int, heard: dict[int, tuple[bytes, float]]) -> bool:
        """Whether a rank's last sign of life is too long ago."""
        assert self.store is not None, "a pool of one waits for nobody"
        beat = self.store.get(f"beat/{rank}") if self.store.check([f"beat/{rank}"]) else b""
        if rank not in heard or heard[rank][0] != beat:
            heard[rank] = beat, time.monotonic()
        return time.monotonic() - heard[rank][1] > self.timeout_s

    def leave(self) -> None:
        """Give up the membership; no collective may follow. Who holds the store leaves last."""
        if self.store is None:
            return
        size = self.collectives.size if self.holds else 0
        absent_ranks(self.store, "left", self.collectives.rank, range(size), STORE_TIMEOUT_S)
        dist.destroy_process_group()


def join_pool(layouts: Sequence[HelixLayout], timeout_s: float, start_timeout_s: float = START_TIMEOUT_S) -> Pool:
    """Join the pool with the groups of one layout or several; without a launcher, a pool of one.

    Args:
        timeout_s: of one collective.
        start_timeout_s: for all ranks to appear.

    Raises:
        LayoutError: a layout needs another number of ranks.
        PoolError: ranks that did not appear.
    """
    size, rank = pool_size(), pool_rank()
    for layout in layouts:
        if layout.num_ranks != size:
            raise LayoutError(f"layout {layout} needs {layout.num_ranks} ranks, but there are {size}")
    device = _own_device(rank, size)
    if size == 1:
        return Pool(collectives=SoloCollectives(), device=device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # torchrun and `helicube.parallel.launch` hold the store themselves; rank 0 does otherwise.
    holds = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    store = _store(rank, size, holds, start_timeout_s)
    board: Board = PrefixStore("helicube", store)
    absent = absent_ranks(board, "started", rank, range(size), start_timeout_s)
    if absent:
        raise PoolError(f"rank {listed(absent)} of {size} did not start within {start_timeout_s:g} s")
    # From here on a store that is silent for long is an error of its own.
    store.set_timeout(timedelta(seconds=STORE_TIMEOUT_S))
    wait = timedelta(seconds=timeout_s + (NCCL_SPARE_S if backend == "nccl" else 0.0))
    groups = PrefixStore("groups", store)
    grids = [RankGrid(layout=layout, rank=r) for layout in layouts for r in range(size)]
    try:
        dist.init_process_group(backend, store=groups, rank=rank, world_size=size, timeout=wait)
        collectives = TorchCollectives((g for grid in grids for g in grid.groups), board, timeout_s)
    except RuntimeError as error:
        told = str(error).strip().splitlines()[0]
        raise PoolError(
            f"the {size} ranks were not connected within {timeout_s:g} s ({told}); allow more time"
        ) from error
    return Pool(collectives=collectives, device=device, store=board, holds=holds, timeout_s=timeout_s)


def _store(rank: int, size: int, holds: bool, start_timeout_s: float) -> TCPStore:
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
    try:
        wait = timedelta(seconds=start_timeout_s)
        return TCPStore(host, port, size, is_master=holds, wait_for_workers=False, timeout=wait)
    except RuntimeError as error:
        told = str(error).strip().splitlines()[0]
        raise PoolError(
            f"rank {rank} of {size} cannot reach its launcher, or rank 0, at {host}:{port} ({told}); check MASTER_ADDR "
            "and MASTER_PORT"
        ) from error
