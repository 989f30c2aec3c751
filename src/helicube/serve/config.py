"""How the service is run, and what it takes."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from helicube.errors import InputError

__all__ = [
    "MOST_CANDIDATES",
    "MOST_PROMPTS",
    "MOST_TRIANGLES",
    "MOST_VARIANTS",
    "QUALITIES",
    "Limits",
    "ServeConfig",
    "host_of",
]

# Cells along the longest side.
QUALITIES = {"draft": 64, "standard": 128, "fine": 256}
MIN_KEY_CHARS = 16
# What the description of the API allows; a service may be told to take less.
MOST_PROMPTS, MOST_VARIANTS, MOST_CANDIDATES, MOST_TRIANGLES = 16, 8, 8, 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what clients may ask for and on what is kept.

    Raises:
        InputError: a bound is looser than the description of the API.
    """

    # Per job: prompts, variants of each, and objects in all.
    prompts: int = MOST_PROMPTS
    variants: int = MOST_VARIANTS
    objects: int = 16
    # Per object.
    candidates: int = MOST_CANDIDATES
    # Most triangles of a mesh.
    triangles: int = MOST_TRIANGLES
    # Objects that wait for a slot, or for their mesh; a job that would exceed it is refused.
    queue: int = 64
    # Objects of jobs that have not ended, one that several wait for counted for each.
    waiting: int = 4096
    # Bytes of a request's body, and seconds it may take to arrive.
    body_bytes: int = 65_536
    body_s: float = 10.0
    # Longest answer to ?wait=true.
    wait_s: float = 120.0
    # Per client address: objects asked for per minute, and requests per second of any kind; 0 is no limit, and of the
    # latter says that addresses are not those of clients, as behind a proxy: none then has a share of its own either.
    objects_per_minute: float = 120.0
    requests_per_s: float = 100.0
    # Event streams and waiting answers open at a time.
    streams: int = 256
    # Bytes of finished objects that are kept, and ended jobs.
    cache_bytes: int = 2 << 30
    jobs: int = 1000

    def __post_init__(self) -> None:
        for name, most in (
            ("prompts", MOST_PROMPTS), ("variants", MOST_VARIANTS), ("candidates", MOST_CANDIDATES),
            ("triangles", MOST_TRIANGLES),
        ):  # fmt: skip
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name}={getattr(self, name)} is out of range; choose from 1 to {most}")

    @property
    def most_objects(self) -> int:
        """The most objects of a job: more than the queue takes would be refused for ever."""
        return min(self.objects, self.queue)

    @property
    def tells_clients_apart(self) -> bool:
        return self.requests_per_s > 0

    @property
    def queue_share(self) -> int:
        """The most of the queue that one client address may have."""
        return max(self.most_objects, 3 * self.queue // 4) if self.tells_clients_apart else self.queue

    @property
    def streams_share(self) -> int:
        """The most event streams that one client address may have."""
        return max(1, self.streams // 2) if self.tells_clients_apart else self.streams


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
    api_key: str | None = field(default=None, repr=False)
    # Address under which a proxy serves it to others; https makes the session's cookie secure.
    public_url: str = ""
    # Origins of other sites whose pages may call; none by default.
    cors: tuple[str, ...] = ()
    # Names, besides the address itself, under which browsers may reach a service without an API key.
    hosts: tuple[str, ...] = ()
    # Candidates of objects decoded side by side, and threads that build meshes.
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
        # HTTP headers carry nothing else, so that such a key would always be refused.
        key = self.api_key or ""
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            raise InputError("the API key has characters that headers cannot carry; choose printable ASCII")
        self._check_sites()
        for name, low, high in (("slots", 1, 256), ("mesh_threads", 1, 64), ("port", 0, 65535), ("grace_s", 0, 3600)):
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name}={getattr(self, name)} is out of range; choose from {low} to {high}")
        for name, option, value in (
            ("queue", "--queue", self.limits.queue), ("cache_bytes", "--cache-gb", self.limits.cache_bytes),
        ):  # fmt: skip
            if value < 1:
                raise InputError(f"{name}={value} leaves no room for one object; choose a larger {option}")

    def _check_sites(self) -> None:
        if self.public_url and not is_site(self.public_url):
            raise InputError(
                f"public_url {self.public_url!r} is no address; give for example https://objects.example.com"
            )
        if self.public_url and self.api_key is None and not is_loopback(urlsplit(self.public_url).hostname or ""):
            raise InputError(
                f"public_url {self.public_url} can be reached by others; give --api-key-file or HELICUBE_API_KEY"
            )
        for origin in self.cors:
            if origin == "*" and self.api_key is None:
                raise InputError("cors '*' lets every site use a service without an API key; name sites, or set a key")
            if origin != "*" and not (re.fullmatch(r"https?://[^/\s]+", origin) and is_site(origin)):
                raise InputError(f"cors {origin!r} is not an origin; give for example https://objects.example.com")
        for name in self.hosts:
            is_name = re.fullmatch(r"[a-z0-9._-]+|\[?[0-9a-f:]+\]?", host_of(name))
            # A colon more is an address of IPv6, which has no port outside brackets.
            if "/" in name or not is_name or not (name.count(":") > 1 or is_site(f"http://{name}")):
                raise InputError(f"allow-host {name!r} is not a host name; give for example studio.local")


def host_of(header: str) -> str:
    """The name in a Host header or an option, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.lower() if header.count(":") > 1 else header.partition(":")[0].lower()


def is_site(address: str) -> bool:
    """Whether an address has a scheme of the web, a name, and a port that can be one if any."""
    try:
        parts = urlsplit(address)
        # Reading the port checks it.
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
