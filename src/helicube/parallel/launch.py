"""Starting the ranks of a pool on this machine, and ending all of them when one ends badly."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from helicube.errors import HelicubeError, InputError, PoolError

__all__ = ["as_rank", "launch", "watch_lifeline"]

# Environment of a rank: a pipe that closes when the launcher ends, and the folder for its last words.
LIFELINE, REPORTS = "HELICUBE_LIFELINE", "HELICUBE_REPORTS"
# Last words of a rank: what it met itself, or that it lost others, which explains nothing where one of them speaks.
CAUSE, LOSS = "error", "lost"

# Status of a rank whose reader went away, see helicube.cli.main.
BROKEN_PIPE = 141
POLL_S = 0.05
# After the first rank has failed, how long the others may take to say why they fail too.
SETTLE_S = 1.0
# A slip in a layout must not fill a machine with processes, about 0.3 GB each.
MOST_RANKS = 64


def launch(argv: Sequence[str], num_ranks: int, env: Mapping[str, str] | None = None) -> None:
    """Run a command as `num_ranks` processes, as torchrun would, until all have ended.

    Rank 0 writes to this process's output; what the others write to stderr is shown if they fail unexpectedly. The
    ranks end when one fails, when this call is interrupted, and when this process is killed.

    Raises:
        InputError: more ranks than one machine can be asked for.
        PoolError: a rank died or failed; names it and says why.
        BrokenPipeError: whoever read rank 0's output went away.
    """
    if num_ranks > MOST_RANKS:
        raise InputError(
            f"{num_ranks} ranks are more than the {MOST_RANKS} that are started on one machine; "
            "choose a smaller layout, or start the ranks with torchrun on several machines"
        )
    with tempfile.TemporaryDirectory(prefix="helicube-") as folder, _lifeline() as pipe:
        ranks: list[subprocess.Popen[bytes]] = []
        ended: list[int | None] = []
        try:
            common = {**os.environ, **(env or {}), **_pool_environment(num_ranks, folder, pipe)}
            ranks = [_start(argv, {**common, "RANK": str(r), "LOCAL_RANK": str(r)}, pipe, r) for r in range(num_ranks)]
            while any(rank.poll() is None for rank in ranks):
                if any(rank.poll() for rank in ranks):
                    _settle(ranks)
                    break
                time.sleep(POLL_S)
            # Taken before the rest are killed below, so that a rank that died by itself can be told from them.
            ended = [rank.poll() for rank in ranks]
        finally:
            for rank in ranks:
                # Not terminate: a rank that is stopped or hangs in a collective does not hear it.
                rank.kill()
            for rank in ranks:
                rank.wait()
        failure = _failure(ended, Path(folder))
    if ended[0] == BROKEN_PIPE:
        raise BrokenPipeError
    if failure:
        raise PoolError(failure)


def as_rank(body: Callable[[], None]) -> None:
    """Run a rank's share; an error that users may see goes to the launcher, which prints one for all ranks.

    Raises:
        HelicubeError: of the body, where something else started this process.
    """
    watch_lifeline()
    try:
        body()
    except HelicubeError as error:
        folder = os.environ.get(REPORTS)
        if folder is None:
            raise
        kind = LOSS if isinstance(error, PoolError) else CAUSE
        Path(folder, f"{os.environ['RANK']}.{kind}").write_text(str(error), encoding="utf-8")
        sys.exit(1)


def watch_lifeline() -> None:
    """End this process when its launcher is gone, whatever it is waiting for."""
    number = os.environ.pop(LIFELINE, None)
    if number is None:
        return

    def watch() -> None:
        os.read(int(number), 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()


def _pool_environment(num_ranks: int, folder: str, pipe: int) -> dict[str, str]:
    threads = max(1, (os.cpu_count() or 1) // num_ranks)
    return {
        "WORLD_SIZE": str(num_ranks),
        "LOCAL_WORLD_SIZE": str(num_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        LIFELINE: str(pipe),
        REPORTS: folder,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe whose writing end only this process has; nothing is ever written."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(read)
        os.close(write)


def _start(argv: Sequence[str], env: Mapping[str, str], pipe: int, rank: int) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C reaches the launcher alone, which then ends the ranks.
    if rank == 0:
        return subprocess.Popen(argv, env=env, pass_fds=(pipe,), start_new_session=True)
    with Path(env[REPORTS], f"{rank}.stderr").open("wb") as stderr:
        return subprocess.Popen(
            argv, env=env, pass_fds=(pipe,), start_new_session=True, stdout=subprocess.DEVNULL, stderr=stderr
        )


def _settle(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline and any(rank.poll() is None for rank in ranks):
        time.sleep(POLL_S)


def _failure(ended: Sequence[int | None], folder: Path) -> str:
    """Why the run failed: a rank that was killed, or else crashed, explains what the others say.

    Args:
        ended: exit statuses, negative for a signal; None for a rank that had not ended.
    """
    size, said = len(ended), _said(folder, len(ended))
    for rank, status in enumerate(ended):
        # A rank whose peer has left may abort inside the collective: a consequence, where another rank said the cause.
        if status is not None and status < 0 and not (said and status == -signal.SIGABRT):
            name = signal.Signals(-status).name
            return f"rank {rank} of {size} died (killed by {name}); the run is over, and its other ranks were ended"
    for rank, status in enumerate(ended):
        if status and rank not in said:
            return f"rank {rank} of {size} failed with status {status}{_last_words(folder, rank)}"
    return next(iter(said.values()), "")


def _said(folder: Path, size: int) -> dict[int, str]:
    """Last words by rank, causes before losses."""
    paths = [(rank, folder / f"{rank}.{kind}") for kind in (CAUSE, LOSS) for rank in range(size)]
    return {rank: path.read_text(encoding="utf-8") for rank, path in paths if path.is_file()}


def _last_words(folder: Path, rank: int) -> str:
    path = folder / f"{rank}.stderr"
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.is_file() else []
    # PyTorch puts the rank before each line of a traceback.
    return ": " + lines[-1].removeprefix(f"[rank{rank}]: ") if lines else ""
