"""Errors as JSON, whatever raised them, and how they are documented."""

from __future__ import annotations

import errno
import json
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from helicube.errors import HelicubeError, InputError, MissingExtraError, PromptError
from helicube.serve.disk_state import DiskState
from helicube.serve.problem import ApiError
from helicube.serve.schema import ErrorBody

__all__ = ["add_error_answers", "errors"]

TEXTS = {
    400: "The body is not JSON, or its length is wrong.",
    401: "An API key is needed.",
    403: "A page of another site asks.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    410: "The object's file is damaged or missing on the disk, or was deleted meanwhile; ask for it again.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "This host name is not served.",
    422: "A value breaks a rule; the message names the value, the rule and the remedy.",
    429: "Too many requests, or the queue is full; see Retry-After.",
    501: "A part of helicube that this needs is not installed.",
    503: "The service is stopping, broken or busy; see Retry-After.",
}
EXAMPLE = 'send for example {"prompt": "a red wooden chair"}'
DISK_ERRORS = {errno.ENOSPC, errno.EROFS, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}
log = logging.getLogger(__name__)
ANYWHERE = (401, 403, 408, 413, 421, 429)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of a route's errors, those of every route included."""
    return {s: {"model": ErrorBody, "description": TEXTS[s]} for s in sorted({*statuses, *ANYWHERE})}


def reply(error: ApiError) -> JSONResponse:
    return JSONResponse(error.body, status_code=error.status, headers=error.headers)


def first_problem(problems: Sequence[Any]) -> str:
    """One line on the first of pydantic's findings that fits what was sent."""
    problem = problems[0]
    if problem["type"] == "json_invalid":
        return f"the body is not JSON ({problem['ctx']['error']} at character {problem['loc'][-1]}); {EXAMPLE}"
    # A list is no string, but what is wrong with it as a list says more.
    problem = next(
        (p for p in problems if not p["type"].endswith("_type") and p["loc"][:2] == problem["loc"][:2]), problem
    )
    # "body" or "query", and names of the union's branches, mean nothing to the reader.
    place = ".".join(str(part) for part in problem["loc"][1:] if not str(part).startswith(("constrained", "list[")))
    if not place:
        return f"{problem['loc'][0]}: {problem['msg']}; {EXAMPLE}"
    more = len({p["loc"][1] for p in problems if len(p["loc"]) > 1} - {problem["loc"][1]})
    rest = f" (and {more} more)" if more else ""
    given = problem.get("input")
    # What was sent, where it is short enough to be of use; a missing field has the whole body there.
    told = problem["type"] != "missing" and len(repr(given)) <= 60
    value = f" {json.dumps(given, default=str, ensure_ascii=False)}" if told else ""
    line = f"{place}{value}: {rule_of(problem)}{rest}; see /openapi.json"
    # Half of a surrogate pair is a fine JSON string, but no answer can hold it.
    return line.encode("utf-8", "backslashreplace").decode()


def rule_of(problem: Mapping[str, Any]) -> str:
    """The rule that a value breaks, in words for people who do not know the framework."""
    about = problem.get("ctx", {})
    given = problem.get("input")
    match problem["type"]:
        case "string_too_short" | "too_short" | "string_too_long" | "too_long" as kind:
            unit = "characters" if isinstance(given, str) else "entries"
            bound = f"least {about['min_length']}" if kind.endswith("short") else f"most {about['max_length']}"
            return f"has {len(given or ())} {unit}; give at {bound}"
        case "extra_forbidden":
            return "is no setting that is taken; remove it"
        case "missing":
            return "is missing; send it"
        case _:
            return str(problem["msg"])


def detail_of(request: Request, error: HTTPException) -> str:
    """The framework's words, or better ones."""
    path = request.url.path[:60]
    if error.status_code == 404:
        return f"there is nothing at {path!r}; see /openapi.json"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "other methods")
        return f"{request.method[:20]} is not taken at {path!r}; use {allowed}, see /openapi.json"
    if error.status_code == 400 and "parsing the body" in str(error.detail):
        why = "it is no UTF-8 text, is nested too deeply, or holds too long a number"
        return f"the body cannot be read: {why}; {EXAMPLE}"
    return str(error.detail)


def add_error_answers(app: FastAPI, disk: DiskState) -> None:
    """Make every error a line in the same shape."""
    for add in (add_answers_to_clients, add_answers_to_faults):
        add(app, disk)


def add_answers_to_clients(app: FastAPI, _: DiskState) -> None:
    """What the request itself did wrong."""

    @app.exception_handler(ApiError)
    async def of_api(_: Request, error: ApiError) -> JSONResponse:
        return reply(error)

    @app.exception_handler(HelicubeError)
    async def of_helicube(_: Request, error: HelicubeError) -> JSONResponse:
        if isinstance(error, MissingExtraError):
            return reply(ApiError(501, str(error)))
        if isinstance(error, InputError):
            code = "invalid_prompt" if isinstance(error, PromptError) else None
            return reply(ApiError(422, str(error), code=code))
        return reply(ApiError(500, str(error)))

    @app.exception_handler(RequestValidationError)
    async def of_validation(_: Request, error: RequestValidationError) -> JSONResponse:
        problems = error.errors()
        status = 400 if problems[0]["type"] == "json_invalid" else 422
        return reply(ApiError(status, first_problem(problems)))

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        answer = ApiError(error.status_code, detail_of(request, error))
        return JSONResponse(answer.body, status_code=error.status_code, headers=error.headers)


def add_answers_to_faults(app: FastAPI, disk: DiskState) -> None:
    """What is wrong with the service."""

    @app.exception_handler(sqlite3.Error)
    @app.exception_handler(OSError)
    async def of_disk(_: Request, error: Exception) -> JSONResponse:
        if isinstance(error, OSError) and error.errno not in DISK_ERRORS:
            # Files that run out, for example, say nothing of the disk, and pass.
            log.error("a request failed", exc_info=error)
            text = f"the system declined ({error.strerror or type(error).__name__}); try again in a moment"
            return reply(ApiError(503, text, code="busy", retry_after_s=5))
        disk.refused(error)
        return reply(disk.answer)

    @app.exception_handler(Exception)
    async def of_anything(_: Request, error: Exception) -> JSONResponse:
        return reply(ApiError(500, f"the service failed ({type(error).__name__}); its log says more"))
