"""Starting the ranks of a pool on this machine, and ending all of them when one ends badly."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any

from helicube.errors import InputError, PoolError
from helicube.parallel.launched import ANSWER, BROKEN_PIPE, CAUSE, GIVEN, GRACE_S, LIFELINE, LOSS, WORDS, content_of

__all__ = ["launch"]

POLL_S = 0.05
# After a rank has said that it lost others, how long these may take to say why they fail: they ask each other first.
SETTLE_S = GRACE_S + 1.0
# A slip in a layout must not fill a machine with processes, about 0.3 GB each.
MOST_RANKS = 64
# Signals that end a launcher; it ends its ranks first. Ctrl-C is Python's own affair.
ENDING = ("SIGTERM", "SIGHUP")


def launch(argv: Sequence[str], num_ranks: int, env: Mapping[str, str] | None = None, given: bytes = b"") -> bytes:
    """Run a command as `num_ranks` processes, as torchrun would, until all have ended.

    Rank 0 writes to this process's output; what the others write to stderr is shown if they fail unexpectedly. The
    ranks end when one fails, when this call is interrupted, and when this process is killed.

    Args:
        given: what every rank can read with `helicube.parallel.launched.given`.

    Returns:
        What rank 0 left with `leave_answer`.

    Raises:
        InputError: more ranks than one machine can be asked for.
        PoolError: a rank died or failed; names it and says why.
        BrokenPipeError: whoever read rank 0's output went away.
        SystemExit: this process was told to end.
    """
    if num_ranks > MOST_RANKS:
        raise InputError(
            f"{num_ranks} ranks are more than the {MOST_RANKS} that are started on one machine; "
            "choose a smaller layout, or start the ranks with torchrun on several machines"
        )
    with _signals(), contextlib.ExitStack() as stack:
        pipe, files = stack.enter_context(_lifeline()), _Files.open(stack, num_ranks, given)
        # Here and not in rank 0, so that no rank depends on another's being there longer.
        store = _store()
        common = {**os.environ, **(env or {}), **_environment(num_ranks, store.port, pipe)}
        ended = _run(argv, common, pipe, files)
        failure = _failure(ended, files)
        answer = content_of(files.answer.fileno())
    if ended[0] == BROKEN_PIPE:
        raise BrokenPipeError
    if failure:
        raise PoolError(failure)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """Files without names that ranks inherit: whatever ends the processes, nothing stays behind."""

    # For all ranks, and by rank 0.
    given: IO[bytes]
    answer: IO[bytes]
    # By rank.
    words: list[IO[bytes]]
    stderr: list[IO[bytes]]

    @classmethod
    def open(cls, stack: contextlib.ExitStack, num_ranks: int, given: bytes) -> _Files:
        def new() -> IO[bytes]:
            return stack.enter_context(tempfile.TemporaryFile())

        files = cls(
            given=new(),
            answer=new(),
            words=[new() for _ in range(num_ranks)],
            stderr=[new() for _ in range(num_ranks)],
        )
        files.given.write(given)
        files.given.flush()
        return files

    def said(self, rank: int) -> tuple[str, str]:
        """(kind, text) of a rank's last words; empty if it left none."""
        kind, _, text = content_of(self.words[rank].fileno()).decode(errors="replace").partition("\n")
        return kind, text


def _run(argv: Sequence[str], common: Mapping[str, str], pipe: int, files: _Files) -> list[int | None]:
    """Start the ranks, wait, end what is left; exit statuses of those that ended by themselves."""
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(len(files.words)):
            # One by one: those that were started must be known when the next cannot be.
            ranks.append(_start(argv, common, rank, pipe, files))  # noqa: PERF401
        while any(rank.poll() is None for rank in ranks):
            if any(rank.poll() for rank in ranks):
                _settle(ranks, files)
                break
            time.sleep(POLL_S)
        # Taken before the rest are killed below, so that a rank that died by itself can be told from them.
        return [rank.poll() for rank in ranks]
    finally:
        for process in ranks:
            # Not terminate: a rank that is stopped or hangs in a collective does not hear it.
            process.kill()
        for process in ranks:
            process.wait()


def _environment(num_ranks: int, port: int, pipe: int) -> dict[str, str]:
    threads = max(1, (os.cpu_count() or 1) // num_ranks)
    return {
        "WORLD_SIZE": str(num_ranks),
        "LOCAL_WORLD_SIZE": str(num_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        # torchrun's word for a store that the launcher holds.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        LIFELINE: str(pipe),
    }


def _store() -> Any:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    # Port 0 is any that is free.
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe whose writing end only this process has; nothing is ever written."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(read)
        os.close(write)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Let signals that end this process unwind it, so that it ends its ranks first."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may say what signals do.
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        os.write(2, f"ended by {signal.Signals(number).name}\n".encode())
        sys.exit(128 + number)

    before = {name: signal.signal(getattr(signal, name), end) for name in ENDING if hasattr(signal, name)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _start(
    argv: Sequence[str], common: Mapping[str, str], rank: int, pipe: int, files: _Files
) -> subprocess.Popen[bytes]:
    numbers = {GIVEN: files.given.fileno(), ANSWER: files.answer.fileno(), WORDS: files.words[rank].fileno()}
    env = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank), **{name: str(n) for name, n in numbers.items()}}
    quiet: dict[str, Any] = {} if rank == 0 else {"stdout": subprocess.DEVNULL, "stderr": files.stderr[rank]}
    # A session of its own: Ctrl-C reaches the launcher alone, which then ends the ranks.
    return subprocess.Popen(argv, env=env, pass_fds=(pipe, *numbers.values()), start_new_session=True, **quiet)


def _settle(ranks: Sequence[subprocess.Popen[bytes]], files: _Files) -> None:
    """Let the other ranks speak, unless the end is explained already."""
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline and any(rank.poll() is None for rank in ranks):
        for rank, process in enumerate(ranks):
            status, kind = process.poll(), files.said(rank)[0]
            if status and status != -signal.SIGABRT and kind != LOSS:
                return
        time.sleep(POLL_S)


def _failure(ended: Sequence[int | None], files: _Files) -> str:
    """Why the run failed: a rank that was killed, or else crashed, explains what the others say.

    Args:
        ended: exit statuses, negative for a signal; None for a rank that had not ended.
    """
    size = len(ended)
    said = {rank: words for rank in range(size) if any(words := files.said(rank))}
    for rank, status in enumerate(ended):
        # A rank whose peer has left may abort inside the collective: a consequence, where another rank said the cause.
        if status is not None and status < 0 and not (said and status == -signal.SIGABRT):
            name = signal.Signals(-status).name
            return f"rank {rank} of {size} died (killed by {name}); the run is over, and its other ranks were ended"
    for rank, status in enumerate(ended):
        if status and rank not in said:
            return f"rank {rank} of {size} failed with status {status}{_last_words(files.stderr[rank], rank)}"
    for kind, text in said.values():
        if kind == CAUSE:
            return text
    # A loss that names ranks begins with them; who was the last to look around names the fewest.
    losses = [text for _, text in said.values()]
    return min(losses, key=lambda text: (not text.startswith("rank "), len(text)), default="")


def _last_words(stderr: IO[bytes], rank: int) -> str:
    lines = content_of(stderr.fileno()).decode(errors="replace").strip().splitlines()
    # PyTorch puts the rank before each line of a traceback.
    return ": " + lines[-1].removeprefix(f"[rank{rank}]: ") if lines else ""
