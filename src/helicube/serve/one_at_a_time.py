"""Work that takes all cores, one piece at a time, without holding the threads that answer everyone else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from helicube.serve.problem import ApiError

__all__ = ["OneAtATime"]

T = TypeVar("T")


class OneAtATime:
    """Runs calls in a thread, one after another; who waits does so on the event loop.

    Args:
        what: for the message.
        max_waiting: calls that may wait.
    """

    def __init__(self, what: str, max_waiting: int) -> None:
        self.what, self.max_waiting, self.num_waiting = what, max_waiting, 0
        self.turn = asyncio.Semaphore(1)

    async def run(self, call: Callable[[], T]) -> T:
        """The call's result.

        Raises:
            ApiError: too many wait already (503).
        """
        if self.num_waiting >= self.max_waiting:
            text = f"{self.num_waiting} {self.what} wait already; try again in a moment"
            raise ApiError(503, text, code="busy", retry_after_s=3)
        self.num_waiting += 1
        try:
            await self.turn.acquire()
        finally:
            self.num_waiting -= 1
        try:
            return await run_in_threadpool(call)
        finally:
            self.turn.release()
