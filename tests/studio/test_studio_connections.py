"""Connections that hold what they should not: clients that read nothing, and more of them than there is room for."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from own_loop import run_async
from uvicorn.server import ServerState

from helicube.serve.connections import connection_type

# More than systems keep for a socket.
BODY = bytes(32 << 20)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(_: Any, __: Any, send: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    head = [(b"content-length", b"%d" % len(BODY))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": BODY})


@asynccontextmanager
async def listening(**bounds: Any) -> AsyncIterator[tuple[int, ServerState]]:
    config, state = uvicorn.Config(app, lifespan="off"), ServerState()
    config.load()
    kind = connection_type(**bounds)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], state
        for connection in [*state.connections]:
            connection.transport.abort()


def connect(port: int, source: str = "127.0.0.1", *, reads: bool = True) -> socket.socket:
    client = socket.socket()
    if not reads:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.bind((source, 0))
    client.connect(("127.0.0.1", port))
    return client


def read(client: socket.socket, *, pause_s: float = 0.0) -> bytes:
    """What comes until the body is complete."""
    found = bytearray()
    while len(found) < len(BODY):
        part = client.recv(1 << 20)
        if not part:
            break
        found += part
        time.sleep(pause_s)
    return bytes(found)


async def until(check: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.02)


def test_who_reads_nothing_is_let_go_of_and_who_reads_is_not() -> None:
    async def talk() -> None:
        async with listening(max_connections=10, most_per_address=10, write_s=0.5) as (port, state):
            connections: set[Any] = state.connections
            with connect(port, reads=False) as silent, connect(port, reads=False) as last:
                for client in (silent, last):
                    client.sendall(GET)
                # Asks to be closed: what it does not read would be waited for.
                last.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                await until(lambda: state.total_requests == 2)
                await until(lambda: not connections)
            with connect(port) as reader:
                reader.sendall(GET)
                assert len(await asyncio.to_thread(read, reader, pause_s=0.0002)) > len(BODY)

    run_async(talk())


def test_one_address_takes_its_share_of_the_places_and_its_own_give_way() -> None:
    async def talk() -> None:
        async with listening(max_connections=4, most_per_address=2, write_s=60.0) as (port, state):
            connections: set[Any] = state.connections
            silent = []
            for number in range(6):
                silent.append(connect(port, reads=False))
                silent[-1].sendall(GET)
                await until(lambda number=number: state.total_requests == number + 1)  # type: ignore[misc]
                assert len(connections) == min(number + 1, 2)
            # Others find room, and take none from each other while there is any.
            others = [connect(port, f"127.0.0.{n}") for n in (2, 3)]
            await until(lambda: len(connections) == 4)
            for other in others:
                other.sendall(GET)
                assert len(await asyncio.to_thread(read, other)) > len(BODY)
            # All places taken: the newest gets that of one between two requests before that of one who reads.
            newest = connect(port, "127.0.0.4")
            await until(lambda: "127.0.0.4" in {one.client[0] for one in connections} and len(connections) == 4)
            assert sum(one.client[0] == "127.0.0.1" for one in connections) == 2
            for client in (*silent, *others, newest):
                client.close()

    run_async(talk())


def test_with_requests_on_all_places_the_newest_goes() -> None:
    async def talk() -> None:
        async with listening(max_connections=1, most_per_address=1, write_s=60.0) as (port, state):
            connections: set[Any] = state.connections
            with connect(port) as first:
                first.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
                await until(lambda: len(connections) == 1)
                (one,) = connections
                # A request that takes its time.
                await until(lambda: one.cycle is not None)
                one.cycle.response_complete = False
                with connect(port) as newest:
                    assert await asyncio.to_thread(newest.recv, 10) == b""
                assert connections == {one}

    run_async(talk())


def test_the_end_of_the_service_waits_for_no_reader_for_long() -> None:
    async def talk() -> None:
        async with listening(max_connections=4, most_per_address=2, write_s=60.0) as (port, state):
            connections: set[Any] = state.connections
            with connect(port, reads=False) as silent:
                silent.sendall(GET)
                await until(lambda: any(one.writing for one in connections))
                began = time.monotonic()
                for one in [*connections]:
                    one.shutdown()
                await until(lambda: not connections)
                assert time.monotonic() - began < 10

    run_async(talk())
