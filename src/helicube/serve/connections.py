"""Connections: bounded in number, in all and per address, and in the time that heads and unread answers may take."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from helicube.serve.address import household
from helicube.serve.guard import HEADERS
from helicube.serve.problem import ApiError

__all__ = ["NAMELESS", "connection_type"]

# Seconds for the head of a request, from when the connection opens or its first byte comes.
HEAD_S = 10.0
# Seconds in which a client must take something of what is written to it. Systems tell of room in their buffers late:
# with a megabyte of them, a client on a slow line may seem to take nothing for many seconds.
WRITE_S = 30.0
# The same once the service ends.
LAST_WRITE_S = 2.0
# Of uvicorn, on what is no HTTP: `send_400_response` tells of it with the address, and the client what to do.
NAMELESS = "Invalid HTTP request received."

NO_HTTP = "the request is no HTTP/1.1; send one, without TLS, and with a head of at most 32 KiB"

log = logging.getLogger(__name__)


class _Connection(H11Protocol):
    """Ends when a head or a reader takes too long, and gives its place to a newer one while it has no request."""

    max_connections: int
    most_per_address: int
    head_s: float
    write_s: float
    timer: asyncio.TimerHandle | None = None
    # See `address.household`.
    household: str = ""
    # While something is unsent: looks whether it becomes less.
    writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        others = [other for other in self.connections if isinstance(other, _Connection) and not other.is_gone]
        super().connection_made(transport)
        # `pause_writing` is called as soon as anything is unsent, and `resume_writing` when all of it is sent.
        transport.set_write_buffer_limits(high=0)
        self.household = household(self.client[0]) if self.client else ""
        own = [other for other in others if self.household and other.household == self.household]
        is_share_full = len(own) >= self.most_per_address
        if is_share_full or len(others) >= self.max_connections:
            crowd = own if is_share_full else others
            give_way = make_room(crowd) or self
            give_way.transport.abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()
        self._unwatch_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing(self.write_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unwatch_writing()

    def shutdown(self) -> None:
        super().shutdown()
        if self.writing is not None:
            self.write_s = min(self.write_s, LAST_WRITE_S)
            self._watch_writing(self.write_s)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    @property
    def has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_gone(self) -> bool:
        """Closing, with nothing that is unsent: it ends with this turn of the loop."""
        return self.transport.is_closing() and not self.transport.get_write_buffer_size()

    def _should_upgrade(self) -> bool:
        # Nothing here is upgraded, and who asks may go on as before (RFC 9110, 7.8): no reason for uvicorn's advice.
        return False

    def _watch(self) -> None:
        if self.has_request or self.transport.is_closing():
            self._unwatch()
        elif self.timer is None and self.conn.their_state is h11.IDLE:
            self.timer = self.loop.call_later(self.head_s, self.transport.close)

    def _unwatch(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _watch_writing(self, seconds: float) -> None:
        self._unwatch_writing()
        unsent = self.transport.get_write_buffer_size()
        self.writing = self.loop.call_later(seconds, self._look_at_writing, unsent)

    def _look_at_writing(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_writing(self.write_s)
        else:
            # To close would be to wait for who reads nothing.
            self.transport.abort()

    def _unwatch_writing(self) -> None:
        if self.writing is not None:
            self.writing.cancel()
            self.writing = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - says neither what was wrong nor what is right
        """The answer to what is no HTTP, in the shape of all others: the guard never sees it."""
        log.warning("%s:%s sent what is no HTTP", *(self.client or ("?", "?")))
        body = json.dumps(ApiError(400, NO_HTTP).body).encode()
        fields = {
            **HEADERS,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        headers = [(name.encode(), value.encode()) for name, value in fields.items()]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def make_room(connections: Sequence[_Connection]) -> _Connection | None:
    """Which connection is to go for a newer one; None if there are requests on all of them."""
    able = (one for one in connections if not one.has_request)
    # The one that has been waited for the longest; one between two requests has no timer. Readers go last.
    return min(able, key=lambda one: (one.writing is not None, waited_until(one)), default=None)


def waited_until(connection: _Connection) -> float:
    timer = connection.writing or connection.timer
    return timer.when() if timer else 0.0


def connection_type(
    *, max_connections: int, most_per_address: int, head_s: float = HEAD_S, write_s: float = WRITE_S
) -> type[H11Protocol]:
    """A class of connections for uvicorn.

    Args:
        max_connections: beyond it, those without a request go for newer ones.
        most_per_address: the same for those of one client address.
        head_s: seconds for a request's head.
        write_s: seconds in which something of what is written must be taken.
    """
    bounds = {
        "max_connections": max_connections,
        "most_per_address": most_per_address,
        "head_s": head_s,
        "write_s": write_s,
    }
    return type("Connection", (_Connection,), bounds)
