"""The ASGI application: routes, guard and the service's life."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from helicube import __version__
from helicube.serve.answers import add_error_answers
from helicube.serve.cors import Cors
from helicube.serve.guard import Guard, Keys
from helicube.serve.routes_jobs import job_routes
from helicube.serve.routes_objects import object_routes
from helicube.serve.routes_site import site_routes, state_routes
from helicube.serve.service import Service

__all__ = ["create_app", "guarded"]

log = logging.getLogger(__name__)
ABOUT = "Text to 3D: ask for objects, watch them grow, take them in any format. See docs/studio.md."


def create_app(service: Service) -> FastAPI:
    """The routes, without the guard around them; starting and stopping the app starts and stops the service."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.hub.attach(asyncio.get_running_loop())
        await run_in_threadpool(service.start)
        ticking = asyncio.create_task(tick(service))
        try:
            yield
        finally:
            ticking.cancel()
            try:
                with suppress(asyncio.CancelledError):
                    await ticking
            finally:
                await run_in_threadpool(service.stop)

    # No pages of documentation: theirs load scripts from elsewhere.
    app = FastAPI(
        title="helicube", version=__version__, description=ABOUT, lifespan=life, docs_url=None, redoc_url=None
    )
    keys = app.state.keys = Keys(service.config.api_key)
    for router in (job_routes(service), object_routes(service), state_routes(service, keys), site_routes(service)):
        app.include_router(router)
    add_error_answers(app, service.store.disk)
    add_gauges(service)
    return app


def guarded(app: FastAPI, service: Service) -> ASGIApp:
    """The whole service as it faces the network."""
    guard = Guard(app, service.config, app.state.keys, service.stats)
    if service.config.cors:
        # Outside: browsers ask first without the key.
        return Cors(
            guard,
            allow_origins=list(service.config.cors),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Location", "Retry-After"],
        )
    return guard


async def tick(service: Service) -> None:
    """Once a second, sample the live view and tell those who wait how many are before them."""
    while True:
        await asyncio.sleep(1.0)
        scheduler = service.scheduler
        try:
            service.stats.sample(len(scheduler.running), scheduler.num_waiting, scheduler.num_tokens)
            service.teller.positions()
            await run_in_threadpool(service.late.tick)
        except Exception:
            # The boundary: without this task nothing would be written late.
            log.exception("a look at the service failed")


def add_gauges(service: Service) -> None:
    scheduler, database = service.scheduler, service.store.database
    service.stats.gauge("queue", "Objects that wait for a slot", lambda: scheduler.num_waiting)
    service.stats.gauge("batch", "Slots in use", lambda: len(scheduler.running))
    service.stats.gauge("slots", "Slots", lambda: service.config.slots)
    service.stats.gauge("meshing", "Meshes waiting or being built", lambda: service.meshes.num_pending)
    service.stats.gauge("streams", "Open event streams", lambda: service.hub.num_streams)
    service.stats.gauge("cache_bytes", "Bytes of finished objects", lambda: database.total_bytes()[1])
