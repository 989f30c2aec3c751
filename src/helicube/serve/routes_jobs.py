"""Routes of jobs: asking, watching, cancelling."""

from __future__ import annotations

import asyncio
import math
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from helicube.errors import HelicubeError
from helicube.serve.address import household
from helicube.serve.answers import errors
from helicube.serve.events import Stream, encode_event
from helicube.serve.object_request import ObjectRequest, check_limits, specs_of
from helicube.serve.problem import ApiError, not_found
from helicube.serve.schema import JobBody, JobList
from helicube.serve.service import Service
from helicube.serve.view import Json
from helicube.serve.work import ObjectSpec

__all__ = ["Id", "job_routes"]

Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="32 hex digits.")]
Place = Annotated[int, Path(ge=0, le=999)]
Limit = Annotated[int, Query(ge=1, le=200)]
# A comment is sent this often, so that nobody between takes a quiet stream for a dead one.
KEEP_ALIVE_S = 15.0
# Who waits for an answer is looked after this often: one that has gone is not to hold a listener's place.
LOOK_S = 1.0
JOB_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": JobBody, "description": "All objects have ended."},
    202: {"model": JobBody, "description": "Accepted."},
}


def job_routes(service: Service) -> APIRouter:
    """The routes under /v1/jobs, and POST /v1/objects."""
    router = APIRouter(prefix="/v1", tags=["jobs"])
    for add in (add_asking, add_jobs, add_watching):
        add(router, service)
    return router


def add_asking(router: APIRouter, service: Service) -> None:
    @router.post(
        "/objects", summary="Make objects", response_model=JobBody, status_code=202,
        responses={**JOB_ANSWERS, **errors(400, 422, 503)},
    )  # fmt: skip
    async def create(
        request: ObjectRequest,
        http: Request,
        wait: Annotated[bool, Query(description="Answer when the job has ended.")] = False,
    ) -> JSONResponse:
        check_limits(request, service.config.limits)
        client, specs = client_of(http), specs_of(request, service.steps.model.sampling)
        job = secrets.token_hex(16)
        # Before anything is waited for, so that no other listener takes the place meanwhile.
        stream = listen(service, job, client) if wait else None
        try:
            await submit(service, job, request, specs, client)
            if stream is None:
                view = await run_in_threadpool(find, service, job)
            else:
                view = await wait_for_end(service, job, stream, http.is_disconnected)
        finally:
            if stream is not None:
                service.hub.close(job, stream)
        status = 202 if view["ended_at"] is None else 200
        return JSONResponse(view, status_code=status, headers={"Location": f"/v1/jobs/{job}"})


def add_jobs(router: APIRouter, service: Service) -> None:
    @router.get("/jobs", summary="Jobs, newest first", responses=errors(422))
    def jobs(limit: Limit = 50) -> JobList:
        found = [service.view.job(row["id"]) for row in service.store.database.jobs(limit)]
        return JobList.model_validate({"jobs": [view for view in found if view is not None]})

    @router.get("/jobs/{job}", summary="A job", response_model=JobBody, responses=errors(404, 422))
    def job(job: Id) -> JSONResponse:
        return JSONResponse(find(service, job))

    @router.delete("/jobs/{job}", summary="Cancel or forget a job", status_code=204, responses=errors(404, 422))
    def remove(
        job: Id,
        forget: Annotated[bool, Query(description="Forget the job if it has ended; false: only ever cancel.")] = True,
    ) -> Response:
        service.remove_job(job, forget=forget)
        return Response(status_code=204)


def add_watching(router: APIRouter, service: Service) -> None:
    @router.get(
        "/jobs/{job}/events", summary="A job's progress as server-sent events", response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "See docs/studio.md."},
                   **errors(404, 422, 503)},
    )  # fmt: skip
    async def events(job: Id, http: Request) -> StreamingResponse:
        # Before the state is looked at, so that nothing falls between.
        stream = listen(service, job, client_of(http))
        try:
            first = await run_in_threadpool(find, service, job)
        except BaseException:
            service.hub.close(job, stream)
            raise
        return Events(watch(service, job, stream, first), lambda: service.hub.close(job, stream))

    @router.get(
        "/jobs/{job}/previews/{place}/{level}.glb", summary="A coarse mesh", response_class=Response,
        responses={200: {"content": {"model/gltf-binary": {}}, "description": "A mesh."}, **errors(404, 422)},
    )  # fmt: skip
    def preview(job: Id, place: Place, level: Annotated[int, Path(ge=0, le=9)]) -> Response:
        items = service.store.database.items(job)
        data = service.previews.get((items[place]["object"], level)) if place < len(items) else None
        if data is None:
            raise not_found("preview", f"{place}/{level} of job {job}")
        return Response(data, media_type="model/gltf-binary", headers={"Cache-Control": "private, max-age=600"})


def client_of(request: Request) -> str:
    return household(request.client.host) if request.client else ""


def charge(service: Service, client: str, num_objects: float) -> None:
    """Book objects against a client's rate.

    Raises:
        ApiError: it asks for too many (429).
    """
    if wait_s := service.rate.take(client, num_objects):
        most = service.config.limits.objects_per_minute
        text = f"more than {most:g} objects and plans a minute; try again in {math.ceil(wait_s)} s"
        raise ApiError(429, text, retry_after_s=wait_s)


async def submit(service: Service, job: str, request: ObjectRequest, specs: Sequence[ObjectSpec], client: str) -> None:
    """Have a job accepted; one that is not costs its client nothing.

    Raises:
        ApiError, HelicubeError: see `charge` and `Service.submit`.
    """
    cost = sum(spec.cost for spec in specs)
    charge(service, client, cost)
    try:
        await run_in_threadpool(service.submit, job, request.as_dict, specs, client)
    except (ApiError, HelicubeError, sqlite3.Error):
        service.rate.give(client, cost)
        raise


def listen(service: Service, job: str, client: str) -> Stream:
    """A stream of a job's events, if there is room for one more.

    Raises:
        ApiError: too many are open, in all or of this client (503).
    """
    limits, hub = service.config.limits, service.hub
    if hub.num_streams >= limits.streams or hub.num_of(client) >= limits.streams_share:
        text = f"{hub.num_streams} streams are open, of at most {limits.streams}, {limits.streams_share} for one client"
        raise ApiError(503, f"{text}; poll the job instead", code="busy", retry_after_s=5)
    return hub.open(job, client)


def find(service: Service, job: str) -> Json:
    view = service.view.job(job)
    if view is None:
        raise not_found("job", job)
    return view


class Events(StreamingResponse):
    """Server-sent events, and what is done when nobody listens any more.

    A client that goes away before the first event ends a generator that has not begun, which runs no `finally`.
    """

    def __init__(self, events: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self.close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.close()


async def watch(service: Service, job: str, stream: Stream, first: Json) -> AsyncIterator[bytes]:
    """The events of a job until it ends, is forgotten, or the service stops."""
    yield encode_event("job", first)
    if first["ended_at"] is not None:
        yield encode_event("end", first)
        return
    status, event = first["status"], ""
    while event not in {"end", "closing", "gone"}:
        try:
            event, data = await asyncio.wait_for(stream.messages.get(), KEEP_ALIVE_S)
        except TimeoutError:
            yield b": still here\n\n"
            continue
        if stream.lagging or (event == "object" and status == "queued"):
            stream.lagging = False
            view = await run_in_threadpool(service.view.job, job)
            if view is not None:
                status = view["status"]
                yield encode_event("job", view)
        yield encode_event(event, data)


async def wait_for_end(service: Service, job: str, stream: Stream, has_gone: Callable[[], Awaitable[bool]]) -> Json:
    """The job when it has ended, or as it stands when the wait is over, the client has gone or the service stops."""
    now = time.monotonic()
    until, look = now + service.config.limits.wait_s, now + LOOK_S
    view, event = await run_in_threadpool(find, service, job), ""
    while view["ended_at"] is None and event not in {"closing", "late"}:
        try:
            # Progress comes more often than the client is looked after: by the clock, and not by silence.
            left_s = max(0.0, min(until, look) - time.monotonic())
            event, _ = await asyncio.wait_for(stream.messages.get(), left_s)
        except TimeoutError:
            event = ""
        now = time.monotonic()
        if event not in {"end", "closing", "gone"} and now >= min(until, look):
            look = now + LOOK_S
            event = "late" if now >= until or await has_gone() else ""
        if event in {"end", "closing", "gone", "late"}:
            view = await run_in_threadpool(find, service, job)
    return view
