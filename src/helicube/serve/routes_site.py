"""Routes of the page, the planner, the key, and the service's own state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.concurrency import run_in_threadpool

from helicube import __version__
from helicube.models.cube.text import MAX_PROMPT_CHARS
from helicube.serve.answers import errors
from helicube.serve.config import QUALITIES
from helicube.serve.guard import COOKIE, SESSION_S, Keys
from helicube.serve.object_request import MAX_SEED, ObjectRequest
from helicube.serve.one_at_a_time import OneAtATime
from helicube.serve.page_files import PageFiles, content_policy
from helicube.serve.plan_page import Plans, plan_names
from helicube.serve.problem import ApiError
from helicube.serve.routes_jobs import charge, client_of
from helicube.serve.schema import EngineState, Health, PlanNames, SessionRequest, Settings
from helicube.serve.service import Service

__all__ = ["site_routes", "state_routes"]

ROBLOX = Path(__file__).with_name("Helicube.luau")
HTML = {"content": {"text/html": {}}, "description": "A page."}


def site_routes(service: Service) -> APIRouter:
    """The page and what it shows besides objects."""
    router = APIRouter(tags=["page"])
    add_page(router, service)
    add_plans(router, service)
    return router


def add_page(router: APIRouter, service: Service) -> None:
    pages, module = PageFiles(reload=service.config.reload_page), ROBLOX.read_bytes()

    @router.get("/", include_in_schema=False)
    def index(request: Request) -> Response:
        return page("index.html", request)

    @router.get("/page/{name:path}", include_in_schema=False)
    def page(name: str, request: Request) -> Response:
        found = pages.answer(name, request)
        if found is None:
            raise ApiError(404, f"the page has no file {name[:60]!r}; open /")
        return found

    @router.get("/favicon.ico", include_in_schema=False)
    def icon(request: Request) -> Response:
        return pages.answer("icon.svg", request) or Response(status_code=204)

    @router.get("/roblox/Helicube.luau", summary="The module for Roblox", response_class=Response,
                responses={200: {"content": {"text/plain": {}}, "description": "Luau."}, **errors()})  # fmt: skip
    def roblox() -> Response:
        return Response(module, media_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-cache"})


def add_plans(router: APIRouter, service: Service) -> None:
    plans, searches = Plans(), OneAtATime("searches", max_waiting=4)

    @router.get("/v1/plan/names", summary="Names that the planner knows", responses=errors())
    def names() -> PlanNames:
        return PlanNames.model_validate(plan_names())

    @router.get("/plan", summary="The planner's frontier as a page", response_class=Response,
                responses={200: HTML, **errors(422, 503)})  # fmt: skip
    async def plan(
        request: Request,
        model: Annotated[str, Query(max_length=100)] = "deepseek-r1",
        gpu: Annotated[str, Query(max_length=100)] = "gb200",
        max_gpus: Annotated[int, Query(ge=1, le=512)] = 64,
        context: Annotated[int, Query(ge=1, le=100_000_000)] = 1_000_000,
    ) -> HTMLResponse:
        def make() -> str:
            return plans.page(model, gpu, max_gpus, context)

        if plans.is_search(model, gpu, max_gpus, context):
            # Takes all cores for as long as an object does.
            charge(service, client_of(request), 1.0)
            text = await searches.run(make)
        else:
            text = await run_in_threadpool(make)
        headers = {"Content-Security-Policy": content_policy(text, "'self'"), "X-Frame-Options": "SAMEORIGIN",
                   "Cache-Control": "private, max-age=3600"}  # fmt: skip
        return HTMLResponse(text, headers=headers)


def state_routes(service: Service, keys: Keys) -> APIRouter:
    """Health, metrics, bounds, the live engine, and the key."""
    router = APIRouter(tags=["service"])
    add_state(router, service, keys)
    add_session(router, service, keys)
    return router


def add_state(router: APIRouter, service: Service, keys: Keys) -> None:
    @router.get("/healthz", summary="Does it work?", responses={503: {"model": Health}, **errors()})
    def health() -> JSONResponse:
        status = "stopping" if service.stopping else "ok" if service.is_sound else "broken"
        return JSONResponse({"status": status}, status_code=200 if status == "ok" else 503)

    @router.get(
        "/metrics", summary="For Prometheus", response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "Text format."}, **errors()},
    )  # fmt: skip
    def metrics() -> Response:
        return Response(service.stats.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get("/v1/engine", summary="The live engine", response_model=EngineState, responses=errors())
    def engine() -> JSONResponse:
        return JSONResponse(service.view.engine())

    @router.get("/v1/settings", summary="Bounds and defaults", responses=errors())
    def settings() -> Settings:
        return settings_of(service, keys)


def add_session(router: APIRouter, service: Service, keys: Keys) -> None:
    @router.post("/v1/session", summary="Sign a browser in", status_code=204, responses=errors(400, 422))
    def sign_in(body: SessionRequest, request: Request) -> Response:
        if not keys.needed or not keys.is_key(body.api_key):
            raise keys.refusal(client_of(request), "the API key is not the service's; ask whoever runs it")
        answer = Response(status_code=204)
        # A proxy that adds TLS speaks plain HTTP to this process.
        secure = request.url.scheme == "https" or service.config.public_url.startswith("https:")
        answer.set_cookie(COOKIE, keys.session(), max_age=SESSION_S, httponly=True, samesite="strict",
                          secure=secure)  # fmt: skip
        return answer

    @router.delete("/v1/session", summary="Sign a browser out", status_code=204, responses=errors())
    def sign_out() -> Response:
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def settings_of(service: Service, keys: Keys) -> Settings:
    limits, usual = service.config.limits, service.steps.model.sampling
    fields = ObjectRequest.model_fields
    defaults = {name: field.default for name, field in fields.items() if not field.is_required()}
    return Settings(
        model=service.model_name,
        version=__version__,
        needs_key=keys.needed,
        tokens_total=service.steps.num_tokens,
        limits={
            "prompt_chars": MAX_PROMPT_CHARS,
            "prompts": limits.prompts,
            "variants": limits.variants,
            "best_of": limits.candidates,
            "max_objects_per_job": limits.most_objects,
            "triangles": [4, limits.triangles],
            "box_ratio": 64,
            "size_m": [0.001, 1000],
            "seed": [0, MAX_SEED],
            "body_bytes": limits.body_bytes,
            "queue": limits.queue,
            "wait_limit_s": limits.wait_s,
        },
        defaults=defaults | {"guidance": usual.guidance_scale, "top_p": usual.top_p},
        qualities=QUALITIES,
        formats=["glb", "obj", "stl", "ply", "json"],
    )
