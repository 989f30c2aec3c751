"""The process: a socket, a server, signals."""

from __future__ import annotations

import logging
import math
import socket
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType

from helicube.errors import InputError, MissingExtraError
from helicube.pipelines.text_to_shape import TextToShape
from helicube.serve.config import ServeConfig

try:
    import uvicorn

    from helicube.serve.app import create_app, guarded
    from helicube.serve.connections import NAMELESS, connection_type
    from helicube.serve.file_limit import BACKLOG, connections_within
    from helicube.serve.service import Service
    from helicube.serve.store import Store
except ImportError as error:
    raise MissingExtraError((error.name or "fastapi").partition(".")[0], "serve") from None

__all__ = ["bind", "open_browser", "serve"]

Ready = Callable[[str], None]


class _Server(uvicorn.Server):
    """Goes on answering while the service finishes what it has begun, and tells the caller when it listens."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.service, self.on_ready = service, on_ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        leave = super().handle_exit
        if self.service.stopping:
            # Told twice: wait for nothing, and for nobody.
            self.service.hurry()
            leave(sig, frame)
            self.force_exit = True
        else:
            self.service.begin_stop(lambda: leave(sig, frame))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_ready()


def bind(host: str, port: int, *, or_any: bool = False) -> socket.socket:
    """A socket that listens on an address; who connects waits until it is served.

    Args:
        or_any: take any free port if that one is in use.

    Raises:
        InputError: the address is in use, or not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        try:
            return listen(family, host, port)
        except OSError:
            if not or_any:
                raise
            return listen(family, host, 0)
    except OSError as error:
        raise InputError(f"{host} port {port} cannot be used ({error.strerror}); choose another --port") from None
    except (TypeError, UnicodeError):
        # Names are encoded before they are looked up.
        raise InputError(f"host {host[:60]!r} is no address or name; choose another --host") from None


def listen(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # At once: of two that are bound and do not listen yet, only one can later (Linux, SO_REUSEADDR).
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def serve(
    config: ServeConfig,
    pipeline: TextToShape,
    listener: socket.socket,
    on_ready: Ready | None = None,
    store: Store | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; what is in the slots then finishes, what waits starts again the next time.

    Args:
        listener: see `bind`.
        on_ready: called with the address once it answers.
        store: the data directory of the configuration, if it is open already.

    Raises:
        InputError: the data directory is in use, or cannot be written.
    """
    service = Service(pipeline, config, store)
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.getMessage() != NAMELESS)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    connections = connections_within(config.limits.streams + 256)
    share = connections // 2 if config.limits.tells_clients_apart else connections
    settings = uvicorn.Config(
        guarded(create_app(service), service),
        # What it has to tell goes where the service's own lines go, see `start.write_log`.
        log_config=None,
        log_level="warning",
        ws="none",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=math.ceil(config.grace_s) + 5,
        http=connection_type(max_connections=connections, most_per_address=share),
        h11_max_incomplete_event_size=32_768,
    )
    server = _Server(settings, service, lambda: on_ready(f"http://{shown}:{port}/") if on_ready else None)
    server.run(sockets=[listener])


def open_browser(url: str) -> None:
    """Show a page without waiting for the browser, which some systems run in the foreground."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
