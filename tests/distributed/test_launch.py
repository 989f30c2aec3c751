"""A rank that dies, hangs or fails ends the run in time, is named, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pool_rank
import pytest
import torch

from helicube.errors import InputError, LayoutError, PoolError
from helicube.parallel.collectives_threads import ThreadCollectives, ThreadPool
from helicube.parallel.collectives_torch import Work
from helicube.parallel.environment import is_rank
from helicube.parallel.environment import pool_rank as rank_of_environment
from helicube.parallel.launch import launch
from helicube.parallel.pool import join_pool, rank_device
from helicube.specs.layout import HelixLayout
from processes import alive

RANK = Path(pool_rank.__file__)
NUM_RANKS = 2
# What is promised: the timeout of a collective, and 4 s for the ranks and the launcher to find out who it was. The rest
# is for a machine that does other things; a rank that nobody missed would hold the run up for ten minutes.
END_S = pool_rank.TIMEOUT_S + 4 + 30
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and prctl")


def start(mode: str, folder: Path, num_ranks: int = NUM_RANKS) -> bytes:
    return launch([sys.executable, str(RANK), mode, str(folder)], num_ranks, {"OMP_NUM_THREADS": "1"}, b"abc")


def pids(folder: Path) -> list[int]:
    return [int(p.read_text()) for p in folder.glob("*.pid")]


def test_ranks_that_behave_end_quietly(tmp_path: Path) -> None:
    assert start("behave", tmp_path) == b"cba"
    assert len(pids(tmp_path)) == NUM_RANKS
    assert not any(map(alive, pids(tmp_path)))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("die", r"rank 1 of 2 died \(killed by SIGKILL\)"),
        ("stop", r"rank 1 of 2 did not take part in an all-reduce: it died, or hung for longer than 3 s"),
        ("loading", r"rank 1 of 2 did not get to 'loaded': it died, or hung for longer than 3 s"),
        ("raise", r"rank 1 of 2 failed with status 1: RuntimeError: out of luck"),
        ("refuse", r"^layout 7 is not to my taste$"),
    ],
)
def test_a_bad_rank_is_named_and_the_rest_are_ended(mode: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=words):
        start(mode, tmp_path)
    ended_s = time.time() - (tmp_path / "bad").stat().st_mtime
    assert len(pids(tmp_path)) == NUM_RANKS
    assert not any(map(alive, pids(tmp_path)))
    assert ended_s < END_S


def test_a_hung_rank_is_named_where_groups_wait_for_each_other(tmp_path: Path) -> None:
    """Rank 3 hangs, rank 2 waits for it in their TPF group, and rank 0 for rank 2 in theirs of EP."""
    with pytest.raises(PoolError, match=r"^rank 3 of 4 did not take part"):
        start("grid", tmp_path, 4)
    assert not any(map(alive, pids(tmp_path)))


def test_a_rank_that_loads_for_long_is_waited_for(tmp_path: Path) -> None:
    start("slow", tmp_path)


def test_a_rank_that_is_late_at_the_end_finds_the_store(tmp_path: Path) -> None:
    """With a launcher, which holds the store, and without one, where rank 0 does."""
    start("late", tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    env = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    argv = [sys.executable, str(RANK), "late", str(tmp_path)]
    ranks = [subprocess.Popen(argv, env=env | {"RANK": str(r)}) for r in range(2)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]


def test_the_cause_is_told_and_not_who_missed_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 notices first that rank 1 is gone; what rank 1 says explains it."""
    monkeypatch.setattr("helicube.parallel.launch.SETTLE_S", 60.0)
    code = """
import os, time
from helicube.errors import LayoutError, PoolError
from helicube.parallel.launched import as_rank

def body():
    if os.environ["RANK"] == "0":
        raise PoolError("rank 1 did not take part")
    time.sleep(0.5)
    raise LayoutError("the cause")

as_rank(body)
"""
    with pytest.raises(PoolError, match=r"^the cause$"):
        launch([sys.executable, "-c", code], 2)


@LINUX
@pytest.mark.parametrize(("mode", "number"), [("orphan", "SIGKILL"), ("stop", "SIGKILL"), ("stop", "SIGTERM")])
def test_ranks_and_files_end_with_their_launcher(mode: str, number: str, tmp_path: Path) -> None:
    """A rank that is stopped must end too; the timeout of collectives is too long to do it."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    argv = [sys.executable, str(RANK), mode, str(tmp_path), "600"]
    code = f"from helicube.parallel.launch import launch; launch({argv}, {NUM_RANKS})"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    launcher = subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "bad").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    launcher.send_signal(getattr(signal, number))
    _, stderr = launcher.communicate(timeout=60)
    while any(map(alive, pids(tmp_path))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(pids(tmp_path)) == NUM_RANKS
    assert not any(map(alive, pids(tmp_path)))
    assert list(temporary.iterdir()) == []
    if number == "SIGTERM":
        assert (launcher.returncode, stderr) == (143, "ended by SIGTERM\n")


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"RANK": "0"}, "WORLD_SIZE is not set"),
        ({"RANK": "zero", "WORLD_SIZE": "2"}, "RANK is 'zero', which is no whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK is 2, but WORLD_SIZE is 2"),
    ],
)
def test_an_environment_that_names_half_a_pool(
    env: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=words):
        is_rank()


def test_without_a_launcher_this_is_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "7")
    assert (is_rank(), rank_of_environment()) == (False, 0)


class HungWork:
    """NCCL's kind of work: its wait returns at once, whatever the device does."""

    def wait(self) -> bool:
        return True

    def is_completed(self) -> bool:
        return False


def test_a_collective_that_hangs_on_a_device_is_noticed_by_the_host() -> None:
    work = Work(HungWork(), torch.ones(1), lambda error: PoolError(f"blamed: {error}"), 0.2)  # type: ignore[arg-type]
    with pytest.raises(PoolError, match=r"blamed: not done within 0\.2 s"):
        work.wait()


def test_a_pool_of_another_size_than_the_layout() -> None:
    with pytest.raises(LayoutError, match="needs 4 ranks, but there are 1"):
        join_pool([HelixLayout(kvp=4, tpf=4)], 1.0)


def test_every_rank_has_a_gpu_of_its_own_or_none_has() -> None:
    assert [str(rank_device(4, local, 4)) for local in range(4)] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert {str(rank_device(1, local, 3)) for local in range(3)} == {"cpu"}
    assert str(rank_device(0, 0, 1)) == "cpu"


def test_threads_name_a_rank_that_stays_away() -> None:
    def rank(collectives: ThreadCollectives) -> None:
        if collectives.rank != 2:
            collectives.all_reduce(torch.ones(1), (0, 1, 2))
        else:
            time.sleep(1.0)

    with pytest.raises(PoolError, match=r"rank 2 of 3 did not answer within 0\.2 s in an all-reduce"):
        ThreadPool(3, timeout_s=0.2).run(rank)


def test_a_thread_that_fails_ends_the_others_with_its_own_error() -> None:
    def rank(collectives: ThreadCollectives) -> None:
        if collectives.rank == 1:
            raise LayoutError("not to my taste")
        collectives.all_reduce(torch.ones(1), (0, 1, 2))

    with pytest.raises(LayoutError, match="not to my taste"):
        ThreadPool(3).run(rank)


def test_a_slip_in_a_layout_starts_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    with pytest.raises(InputError, match="99999999999 ranks"):
        launch([sys.executable, "-c", ""], 99999999999)
