"""Server-sent events: what happens on the engine's and the mesh threads, told to whoever listens.

Source: WHATWG HTML, section 9.2 "Server-sent events".
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import Any

__all__ = ["Hub", "Stream", "encode_event"]

# Messages kept for a client that reads slowly; one that falls further behind gets the state anew.
BACKLOG = 256

Message = tuple[str, Any]


def encode_event(event: str, data: object) -> bytes:
    """One event as it goes over the wire; JSON has no line ends outside strings, and escapes those inside."""
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class Stream:
    """The messages for one listener."""

    def __init__(self, client: str = "") -> None:
        self.client = client
        self.messages: asyncio.Queue[Message] = asyncio.Queue(BACKLOG)
        # Messages were dropped: the listener is to look at the state itself.
        self.lagging = False

    def put(self, message: Message) -> None:
        if self.messages.full():
            self.lagging = True
            # The end must not be what is dropped.
            self.messages.get_nowait()
        self.messages.put_nowait(message)


class Hub:
    """Passes messages from any thread to the streams of a topic, which belong to the event loop."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.streams: defaultdict[str, set[Stream]] = defaultdict(set)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    @property
    def num_streams(self) -> int:
        return sum(map(len, self.streams.values()))

    def num_of(self, client: str) -> int:
        """Streams of one client address."""
        return sum(stream.client == client for streams in self.streams.values() for stream in streams)

    def open(self, topic: str, client: str = "") -> Stream:
        stream = Stream(client)
        self.streams[topic].add(stream)
        return stream

    def close(self, topic: str, stream: Stream) -> None:
        self.streams[topic].discard(stream)
        if not self.streams[topic]:
            del self.streams[topic]

    def listens(self, topic: str) -> bool:
        """Whether anyone would hear; may be asked from any thread."""
        return topic in self.streams

    def publish(self, topic: str, event: str, data: object) -> None:
        if self.loop is not None and self.listens(topic) and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._deliver, topic, (event, data))

    def publish_all(self, event: str, data: object) -> None:
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._deliver_all, (event, data))

    def _deliver_all(self, message: Message) -> None:
        for topic in self.streams:
            self._deliver(topic, message)

    def _deliver(self, topic: str, message: Message) -> None:
        for stream in self.streams.get(topic, ()):
            stream.put(message)
