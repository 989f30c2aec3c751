"""Routes of finished objects."""

from __future__ import annotations

import gzip
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from helicube.serve.answers import errors
from helicube.serve.one_at_a_time import OneAtATime
from helicube.serve.routes_jobs import Id
from helicube.serve.schema import ObjectBody, ObjectList
from helicube.serve.service import Service
from helicube.serve.store import ENDINGS, file_name

__all__ = ["object_routes"]

Ending = Literal["glb", "obj", "mtl", "stl", "ply", "json", "png"]
BINARY = {"type": "string", "format": "binary"}
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            media_type: {"schema": {} if ending == "json" else BINARY} for ending, media_type in ENDINGS.items()
        },
    }
}


def object_routes(service: Service) -> APIRouter:
    """The routes under /v1/objects, but for POST."""
    router = APIRouter(prefix="/v1/objects", tags=["objects"])
    # Files before single objects: a name with an ending is no id.
    for add in (add_list, add_files, add_objects):
        add(router, service)
    return router


def add_list(router: APIRouter, service: Service) -> None:
    @router.get("", summary="Finished objects, newest first", responses=errors(422))
    def objects(
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[str, Query(pattern=r"^[0-9]{1,12}\.[0-9]{1,9}_[0-9a-f]{32}$|^$")] = "",
    ) -> ObjectList:
        at, _, key = before.partition("_")
        # One more than is shown tells whether there is a next page.
        found = service.store.database.objects(limit + 1, float(at or 1e12), key)
        rows = found[:limit]
        last = f"{rows[-1]['created_at']:.9f}_{rows[-1]['id']}" if len(found) > limit else None
        return ObjectList.model_validate({"objects": [service.view.object(row) for row in rows], "next": last})


def add_files(router: APIRouter, service: Service) -> None:
    pictures = OneAtATime("pictures", max_waiting=32)

    @router.get(
        "/{object_id}.{ending}", summary="An object as a file", response_class=Response,
        responses={**FILE, **errors(404, 410, 422, 501, 503)},
    )  # fmt: skip
    async def file(
        object_id: Id,
        ending: Annotated[Ending, Path()],
        request: Request,
        download: Annotated[bool, Query(description="Name the file after the prompt.")] = False,
    ) -> Response:
        row = await run_in_threadpool(service.store.row, object_id)
        etag = f'"{row["sha256"][:24]}-{ending}"'
        headers = {"ETag": etag, "Cache-Control": "private, max-age=31536000, immutable"}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        renders = ending == "png" and not service.store.has_picture(object_id)
        run = pictures.run if renders else run_in_threadpool
        data = await run(lambda: service.store.file(object_id, ending, named=download))
        if download:
            headers["Content-Disposition"] = f'attachment; filename="{file_name(row, ending)}"'
        if ending == "json":
            headers["Vary"] = "Accept-Encoding"
            if "gzip" in request.headers.get("accept-encoding", ""):
                data = await run_in_threadpool(gzip.compress, data, 5, mtime=0)
                headers["Content-Encoding"] = "gzip"
        return Response(data, media_type=ENDINGS[ending], headers=headers)


def add_objects(router: APIRouter, service: Service) -> None:
    @router.get("/{object_id}", summary="An object", response_model=ObjectBody, responses=errors(404, 422))
    def one(object_id: Id) -> JSONResponse:
        return JSONResponse(service.view.object(service.store.row(object_id)))

    @router.delete("/{object_id}", summary="Delete an object", status_code=204, responses=errors(404, 422))
    def delete(object_id: Id) -> Response:
        service.delete_object(object_id)
        return Response(status_code=204)
