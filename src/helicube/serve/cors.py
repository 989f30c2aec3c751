"""Pages of other sites that may call."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response

from helicube.serve.guard import HEADERS
from helicube.serve.problem import ApiError

__all__ = ["Cors"]


class Cors(CORSMiddleware):
    """Answers a browser's question before the guard sees it, in the shape of all other answers."""

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        if answer.status_code >= 400:
            # It says which of origin, method and headers it was.
            error = ApiError(answer.status_code, f"{bytes(answer.body).decode()}; see --cors")
            kept = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
            answer = JSONResponse(error.body, status_code=error.status, headers=kept)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer
