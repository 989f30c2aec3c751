"""What the command line asks for, put together: a key, a folder, a model, a socket."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from helicube.engine.options import EngineOptions, Kernels
from helicube.errors import InputError
from helicube.serve.config import Limits, ServeConfig

__all__ = ["StartOptions", "start", "write_log"]

KEY_VARIABLE = "HELICUBE_API_KEY"
# Of any number that the command line takes: a million gigabytes, objects a minute.
MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What the command line was told; see `helicube serve --help`."""

    host: str
    port: int
    data_dir: Path
    api_key: str | None
    api_key_file: Path | None
    allow_host: tuple[str, ...]
    cors: tuple[str, ...]
    public_url: str
    slots: int
    queue: int
    cache_gb: float
    objects_per_minute: float
    requests_per_s: float
    mesh_threads: int
    grace_s: float
    weights: str | None
    version: str | None
    reload_page: bool
    device: str
    # Speed features; see `engine.options.EngineOptions`.
    graph: bool
    cache: bool
    weight_format: str
    kernels: Kernels
    steps_per_launch: int | None
    # Open a browser, and take another port if that one is in use.
    browser: bool = False

    @property
    def config(self) -> ServeConfig:
        for name in ("cache_gb", "objects_per_minute", "requests_per_s", "grace_s"):
            if not 0 <= (value := getattr(self, name)) <= MOST:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} {value} is out of range; choose a number from 0 to {MOST:,}")
        if self.version is not None and self.weights is None:
            raise InputError(f"--version {self.version} says nothing of the bundled model; give --weights with it")
        return ServeConfig(
            host=self.host.removeprefix("[").removesuffix("]"), port=self.port, data_dir=self.data_dir,
            api_key=self.key, public_url=self.public_url, hosts=self.allow_host, cors=self.cors, slots=self.slots,
            mesh_threads=self.mesh_threads, grace_s=self.grace_s, reload_page=self.reload_page,
            limits=Limits(queue=self.queue, cache_bytes=int(self.cache_gb * 1e9), requests_per_s=self.requests_per_s,
                          objects_per_minute=self.objects_per_minute),
        )  # fmt: skip

    @property
    def engine(self) -> EngineOptions:
        # A CPU's step takes far longer than launching it, so that waiting requests may as well join at every one.
        steps = self.steps_per_launch
        if steps is None:
            steps = 8 if self.device.startswith("cuda") else 1
        return EngineOptions(
            graph=self.graph, cache=self.cache, weights=self.weight_format, kernels=self.kernels, steps_per_launch=steps
        )

    @property
    def key(self) -> str | None:
        """From a file, the environment, or the command line, where other users of this machine can see it."""
        if self.api_key_file is None:
            # One that is empty was meant to be one: refused, and not taken for none.
            return self.api_key if self.api_key is not None else os.environ.get(KEY_VARIABLE)
        try:
            return self.api_key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.api_key_file} cannot be read ({error}); check --api-key-file") from None


def say(line: str) -> None:
    # Nobody may be reading any more, as in `2>&1 | head -1`; that is no reason to end.
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def write_log() -> None:
    """Tell on standard error what the service does: jobs, failures and their causes, its end."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("helicube.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(level)


def start(options: StartOptions) -> None:
    """Load the model and serve.

    Raises:
        InputError: an option breaks a rule, the port or the folder is in use.
        CheckpointError: there are no weights.
        MissingExtraError: the extra [serve] is not installed.
    """
    config, engine = options.config, options.engine
    write_log()
    from helicube.pipelines.text_to_shape import load
    from helicube.serve.server import bind, open_browser, serve
    from helicube.serve.store import Store

    # Before the model is loaded, which takes seconds.
    listener = bind(config.host, config.port, or_any=options.browser)
    store = Store(config.data_dir, config.limits.cache_bytes)
    say("loading the model …")
    pipeline = load(options.weights, version=options.version, device=options.device, options=engine)
    for remark in pipeline.model.remarks:
        say(f"note: {remark}")

    def ready(url: str) -> None:
        say(f"helicube serves at {url} (Ctrl+C ends it); data in {config.data_dir}")
        if options.browser:
            open_browser(url)

    serve(config, pipeline, listener, ready, store)
