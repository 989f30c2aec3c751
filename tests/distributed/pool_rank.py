"""One rank of the pools that test_launch.py starts: `python pool_rank.py MODE FOLDER`.

All ranks meet in all-reduces, until rank 1 does what MODE says. Each leaves its process id in FOLDER.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch

from helicube.errors import LayoutError
from helicube.parallel.launch import as_rank
from helicube.parallel.pool import join_pool, pool_size
from helicube.specs.layout import HelixLayout

TIMEOUT_S = 3.0


def misbehave(mode: str, folder: Path) -> None:
    (folder / "bad").touch()
    if mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif mode == "raise":
        raise RuntimeError("out of luck")
    elif mode == "refuse":
        raise LayoutError("layout 7 is not to my taste")
    elif mode == "orphan":
        time.sleep(600)


def main(mode: str, folder: Path) -> None:
    rank, size = int(os.environ["RANK"]), pool_size()
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    pool = join_pool([HelixLayout(kvp=size, tpf=size)], TIMEOUT_S)
    pool.ready("loaded")
    everyone = tuple(range(size))
    for step in range(3):
        total = pool.collectives.all_reduce(torch.ones(4) * rank, everyone)
        assert total.tolist() == [size * (size - 1) / 2] * 4
        if rank == 1 and step == 1:
            misbehave(mode, folder)
    pool.ready("done")
    pool.leave()


if __name__ == "__main__":
    as_rank(lambda: main(sys.argv[1], Path(sys.argv[2])))
