"""Text to standard output from a thread of its own."""

from __future__ import annotations

import io
import os
import sys
import threading
from queue import SimpleQueue

__all__ = ["TextWriter"]


class TextWriter:
    """Writes beside the decode loop: a reader that is slow, or stops, must not make this rank look hung.

    Raises:
        OSError: (`write` and `close`) whoever read the output went away, or it is full.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="writer")
        sys.stdout.flush()
        self._thread.start()

    def write(self, text: str) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(text)

    def close(self) -> None:
        """Wait until all is written."""
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            while (text := self._queue.get()) is not None:
                _put(text)
        except BrokenPipeError:
            # Without a number: at EPIPE click would end the command with a status of its own.
            self._error = BrokenPipeError("whoever read the output went away")
        except OSError as error:
            self._error = error


def _put(text: str) -> None:
    try:
        number = sys.stdout.fileno()
    except (io.UnsupportedOperation, AttributeError):
        # Not a file, as in a test.
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    # Past Python's buffer, whose lock a writer that is held up would keep when the interpreter ends. A terminal that
    # cannot show × gets a question mark, not a failure.
    left = text.encode(sys.stdout.encoding or "utf-8", errors="replace")
    while left:
        left = left[os.write(number, left) :]
