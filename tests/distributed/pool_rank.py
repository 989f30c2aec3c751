"""One rank of the pools that test_launch.py starts: `python pool_rank.py MODE FOLDER [TIMEOUT_S]`.

All ranks meet in collectives, until the last one does what MODE says. Each leaves its process id in FOLDER.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch

from helicube.errors import LayoutError
from helicube.parallel.collectives_torch import Board
from helicube.parallel.environment import pool_rank, pool_size
from helicube.parallel.grid import RankGrid
from helicube.parallel.launched import as_rank, given, leave_answer
from helicube.parallel.pool import Pool, join_pool
from helicube.specs.layout import HelixLayout

TIMEOUT_S = 3.0


class LateBoard:
    """A store whose answers take a second."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def set(self, key: str, value: str, /) -> None:
        self.board.set(key, value)

    def check(self, keys: list[str], /) -> bool:
        time.sleep(1.0)
        return self.board.check(keys)

    def get(self, key: str, /) -> bytes:
        return self.board.get(key)


def misbehave(mode: str, folder: Path) -> None:
    (folder / "bad").touch()
    if mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode in {"stop", "grid", "loading"}:
        os.kill(os.getpid(), signal.SIGSTOP)
    elif mode == "raise":
        raise RuntimeError("out of luck")
    elif mode == "refuse":
        raise LayoutError("layout 7 is not to my taste")
    elif mode == "orphan":
        time.sleep(600)


def load(pool: Pool, mode: str, folder: Path, timeout_s: float) -> None:
    """What takes long, or hangs, before the first collective."""
    if mode == "loading":
        misbehave(mode, folder)
    if mode == "slow":
        deadline = time.monotonic() + 2 * timeout_s
        while time.monotonic() < deadline:
            time.sleep(0.1)
            pool.beat()


def meet(pool: Pool, grid: RankGrid) -> None:
    """The collectives of a layer with experts; those of the EP group come last."""
    rank, size = grid.rank, grid.layout.num_ranks
    total = pool.collectives.all_reduce(torch.ones(4) * rank, grid.pool)
    assert total.tolist() == [size * (size - 1) / 2] * 4
    total = pool.collectives.all_reduce(torch.ones(4) * rank, grid.tpf_group)
    assert total.tolist() == [sum(grid.tpf_group)] * 4
    assert len(pool.collectives.all_gather(total, grid.ep_group)) == grid.layout.ep


def main(mode: str, folder: Path, timeout_s: float) -> None:
    rank, size = pool_rank(), pool_size()
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    ep = 2 if mode == "grid" else 1
    grid = RankGrid(layout=HelixLayout(kvp=size, tpf=size // ep, ep=ep), rank=rank)
    pool = join_pool([grid.layout], timeout_s)
    is_bad = rank == size - 1
    if is_bad:
        load(pool, mode, folder, timeout_s)
    pool.ready("loaded")
    for step in range(3):
        meet(pool, grid)
        if is_bad and step == 1:
            misbehave(mode, folder)
    if is_bad and mode == "late":
        assert pool.store is not None
        pool.store = LateBoard(pool.store)
    pool.ready("done")
    pool.leave()
    if rank == 0 and mode == "behave":
        leave_answer(given()[::-1])


if __name__ == "__main__":
    as_rank(lambda: main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else TIMEOUT_S))
