"""Connections: bounded in number and in the time that a request's head may take."""

from __future__ import annotations

import asyncio
import json
import logging

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from helicube.serve.guard import HEADERS
from helicube.serve.problem import ApiError

__all__ = ["NAMELESS", "connection_type"]

# Seconds for the head of a request, from when the connection opens or its first byte comes.
HEAD_S = 10.0
# Of uvicorn, on what is no HTTP: `send_400_response` tells of it with the address.
NAMELESS = "Invalid HTTP request received."

log = logging.getLogger(__name__)


class _Connection(H11Protocol):
    """Closes when a head takes too long, and gives its place to a newer one while it has no request."""

    max_connections: int
    head_s: float
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        is_full = len(self.connections) >= self.max_connections and not self._make_room()
        super().connection_made(transport)
        if is_full:
            transport.close()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    @property
    def has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

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

    def _make_room(self) -> bool:
        """Close a connection that is waited for; False if there are requests on all of them."""
        others = (other for other in self.connections if isinstance(other, _Connection))
        idle = (other for other in others if not other.has_request and not other.transport.is_closing())
        # The one whose head has been waited for the longest; one between two requests has no timer.
        oldest = min(idle, key=lambda other: other.timer.when() if other.timer else 0.0, default=None)
        if oldest is not None:
            oldest.transport.close()
        return oldest is not None

    def send_400_response(self, msg: str) -> None:
        """The answer to what is no HTTP, in the shape of all others: the guard never sees it."""
        log.warning("%s:%s sent what is no HTTP", *(self.client or ("?", "?")))
        body = json.dumps(ApiError(400, msg).body).encode()
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


def connection_type(*, max_connections: int, head_s: float = HEAD_S) -> type[H11Protocol]:
    """A class of connections for uvicorn.

    Args:
        max_connections: beyond it, those without a request are closed for newer ones.
        head_s: seconds for a request's head.
    """
    return type("Connection", (_Connection,), {"max_connections": max_connections, "head_s": head_s})
