"""How the service is run, and what it takes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from helicube.errors import InputError

__all__ = ["QUALITIES", "Limits", "ServeConfig"]

# Cells along the longest side.
QUALITIES = {"draft": 64, "standard": 128, "fine": 256}
MIN_KEY_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what clients may ask for and on what is kept."""

    # Per job: prompts, variants of each, and objects in all.
    prompts: int = 16
    variants: int = 8
    objects: int = 16
    # Most triangles of a mesh.
    triangles: int = 200_000
    # Objects that wait for a slot; a job that would exceed it is refused.
    queue: int = 64
    # Bytes of a request's body, and seconds it may take to arrive.
    body_bytes: int = 65_536
    body_s: float = 10.0
    # Longest answer to ?wait=true.
    wait_s: float = 120.0
    # Per client address: jobs per minute, and requests per second of any kind; 0 is no limit.
    jobs_per_minute: float = 120.0
    requests_per_s: float = 100.0
    # Event streams open at a time.
    streams: int = 256
    # Bytes of finished objects that are kept, and ended jobs.
    cache_bytes: int = 2 << 30
    jobs: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """What `helicube serve` was told.

    Raises:
        InputError: an address that others can reach without an API key, a short key, or a number out of range.
    """

    data_dir: Path
    host: str = "127.0.0.1"
    # 0: any free one.
    port: int = 8000
    api_key: str | None = None
    # Origins of other sites whose pages may call; none by default.
    cors: tuple[str, ...] = ()
    # Names, besides the address itself, under which browsers may reach a service without an API key.
    hosts: tuple[str, ...] = ()
    # Objects decoded side by side, and threads that build meshes.
    slots: int = 8
    mesh_threads: int = 1
    # Seconds that what is in the slots has to finish when the service is told to stop.
    grace_s: float = 20.0
    # Read the page's files at each request, for work on them.
    reload_page: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.api_key is None and not is_loopback(self.host):
            raise InputError(
                f"host {self.host} can be reached by others; give --api-key-file or HELICUBE_API_KEY, or use 127.0.0.1"
            )
        if self.api_key is not None and len(self.api_key) < MIN_KEY_CHARS:
            raise InputError(f"the API key has {len(self.api_key)} characters; choose {MIN_KEY_CHARS} or more")
        for name, low, high in (("slots", 1, 256), ("mesh_threads", 1, 64), ("port", 0, 65535), ("grace_s", 0, 3600)):
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name}={getattr(self, name)} is out of range; choose from {low} to {high}")
        if self.limits.queue < 1 or self.limits.cache_bytes < 1:
            raise InputError("the queue and the cache need room for one object at least; choose larger bounds")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
