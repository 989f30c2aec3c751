"""How the processes that share out long work end: with the one that started them, and without a word on Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time

__all__ = ["live_with_parent"]

POLL_S = 1.0


def live_with_parent() -> None:
    """To be called in a worker: it ends when its parent does, however that ended, and quietly on Ctrl-C.

    Workers wait for work on a pipe that each of them holds open, and would else wait for ever.
    """
    parent = os.getppid()
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os._exit(1)
