"""Joining the pool that torchrun or `helicube.parallel.launch` started: who am I, and who are the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from helicube.errors import LayoutError, PoolError
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.collectives_torch import Board, TorchCollectives, absent_ranks, listed
from helicube.parallel.grid import RankGrid
from helicube.specs.layout import HelixLayout

__all__ = ["Pool", "join_pool", "num_gpus", "pool_rank", "pool_size", "rank_device"]

# Ranks start and load at different speeds: reading a large model from a cold disk takes minutes.
START_TIMEOUT_S = 1800.0
STORE_TIMEOUT_S = 10.0


def pool_size() -> int:
    """Ranks that the launcher says there are; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def pool_rank() -> int:
    """This process's rank; 0 without a launcher."""
    return int(os.environ.get("RANK", "0"))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A rank's membership."""

    collectives: Collectives
    device: torch.device
    # None for a pool of one.
    store: Board | None = None
    start_timeout_s: float = START_TIMEOUT_S

    def ready(self, word: str) -> None:
        """Wait until every rank has said the word; for steps that may take minutes, unlike a collective.

        Raises:
            PoolError: names the ranks that have not.
        """
        if self.store is None:
            return
        size, rank = self.collectives.size, self.collectives.rank
        absent = absent_ranks(self.store, word, rank, range(size), self.start_timeout_s)
        if absent:
            raise PoolError(
                f"rank {listed(absent)} of {size} did not get to {word!r} within {self.start_timeout_s:g} s"
            )

    def leave(self) -> None:
        """Give up the membership; no collective may follow."""
        if self.store is not None:
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
    store = _store(rank, size, start_timeout_s)
    board: Board = PrefixStore("helicube", store)
    absent = absent_ranks(board, "started", rank, range(size), start_timeout_s)
    if absent:
        raise PoolError(f"rank {listed(absent)} of {size} did not start within {start_timeout_s:g} s")
    # From here on a store that is silent for long is an error of its own.
    store.set_timeout(timedelta(seconds=STORE_TIMEOUT_S))
    wait = timedelta(seconds=timeout_s)
    groups = PrefixStore("groups", store)
    dist.init_process_group(backend, store=groups, rank=rank, world_size=size, timeout=wait)
    grids = [RankGrid(layout=layout, rank=r) for layout in layouts for r in range(size)]
    collectives = TorchCollectives((g for grid in grids for g in grid.groups), board, timeout_s)
    return Pool(collectives=collectives, device=device, store=board, start_timeout_s=start_timeout_s)


def _store(rank: int, size: int, start_timeout_s: float) -> TCPStore:
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
    # torchrun's agent holds the store itself; rank 0 does otherwise.
    holds = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        wait = timedelta(seconds=start_timeout_s)
        return TCPStore(host, port, size, is_master=holds, wait_for_workers=False, timeout=wait)
    except RuntimeError as error:
        raise PoolError(f"rank {rank} of {size} cannot reach rank 0 at {host}:{port}: {error}") from error
