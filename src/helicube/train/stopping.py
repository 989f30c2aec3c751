"""Being asked to stop: Ctrl-C and SIGTERM are noted, and heard between two steps."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stop", "stopping_between_steps"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether a signal asked for an end."""

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Note the first signal; a second one ends the process at once, in the middle of whatever it does."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


@contextmanager
def stopping_between_steps() -> Iterator[Stop]:
    """Take Ctrl-C and SIGTERM; an exception instead would stop a step half done, one of its two optimisers stepped."""
    stop = Stop()
    # A job started in the background of a script ignores Ctrl-C, which is meant for others: so it stays.
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop.ask) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
