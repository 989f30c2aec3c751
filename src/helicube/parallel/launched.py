"""A rank's side of a pool that `helicube.parallel.launch` started: its lifeline, what it is given, its last words.

All of it goes through files without a name, inherited from the launcher, so that nothing is left behind however the
processes end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable

from helicube.errors import HelicubeError, PoolError

__all__ = [
    "ANSWER",
    "BROKEN_PIPE",
    "CAUSE",
    "GIVEN",
    "GRACE_S",
    "LIFELINE",
    "LOSS",
    "WORDS",
    "as_rank",
    "content_of",
    "given",
    "leave_answer",
    "watch_lifeline",
]

# Environment of a rank, numbers of open files: a pipe that closes when the launcher ends, what the launcher gives to
# all ranks, what rank 0 gives back, and where a rank leaves its last words.
LIFELINE, GIVEN, ANSWER, WORDS = "HELICUBE_LIFELINE", "HELICUBE_GIVEN", "HELICUBE_ANSWER", "HELICUBE_WORDS"
# Last words of a rank: what it met itself, or that it lost others, which explains nothing where one of them speaks.
CAUSE, LOSS = "error", "lost"
# Status of a rank whose reader went away, see helicube.cli.main.
BROKEN_PIPE = 141
# How long a rank that met an error waits for the others to say that they met one too.
GRACE_S = 2.0

# prctl(2): the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def as_rank(body: Callable[[], None]) -> None:
    """Run a rank's share; an error that users may see goes to the launcher, which prints one for all ranks.

    Raises:
        HelicubeError, OSError: of the body, where something else started this process.
    """
    watch_lifeline()
    try:
        body()
    except HelicubeError as error:
        if WORDS not in os.environ:
            raise
        _end(LOSS if isinstance(error, PoolError) else CAUSE, str(error))
    except BrokenPipeError:
        if WORDS not in os.environ:
            raise
        _silence()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        # Everything else that a user may cause comes as an error of helicube: this is standard output.
        if WORDS not in os.environ or error.errno not in {errno.ENOSPC, errno.EIO, errno.EBADF}:
            raise
        _silence()
        _end(CAUSE, f"the output cannot be written ({error.strerror}); free some space or name another")
    except Exception:
        if WORDS not in os.environ:
            raise
        # At once, as nothing after it may have the last word: at an orderly exit, threads of the collectives that wait
        # for other ranks can end the process by SIGABRT.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def given() -> bytes:
    """What the launcher gave to all ranks."""
    return content_of(int(os.environ[GIVEN]))


def content_of(number: int) -> bytes:
    """All of an open file, not through its position, which the processes share."""
    size, found = os.fstat(number).st_size, bytearray()
    while len(found) < size and (piece := os.pread(number, size - len(found), len(found))):
        found += piece
    return bytes(found)


def leave_answer(content: bytes) -> None:
    """Give something back to the launcher; for rank 0."""
    with os.fdopen(int(os.environ[ANSWER]), "wb", closefd=False) as file:
        file.write(content)


def watch_lifeline() -> None:
    """End this process when its launcher is gone, whatever it is waiting for."""
    number = os.environ.pop(LIFELINE, None)
    if number is None:
        return

    def watch() -> None:
        os.read(int(number), 1)
        os._exit(1)

    if sys.platform.startswith("linux"):
        # A rank that is stopped goes on when its launcher ends, to see that it did.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    threading.Thread(target=watch, daemon=True, name="lifeline").start()


def _end(kind: str, text: str) -> None:
    os.write(int(os.environ[WORDS]), f"{kind}\n{text}".encode())
    sys.exit(1)


def _silence() -> None:
    """Keep Python from complaining at exit that what is buffered cannot be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
