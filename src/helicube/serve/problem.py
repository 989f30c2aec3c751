"""Answers that say what went wrong."""

from __future__ import annotations

import math

__all__ = ["CODES", "ApiError", "gone", "not_found", "unreadable"]

# Code of each status where nothing more is known.
CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    410: "gone",
    413: "too_large",
    415: "unsupported_type",
    421: "forbidden_host",
    422: "invalid_request",
    429: "rate_limited",
    500: "internal",
    501: "missing_extra",
    503: "shutting_down",
}


class ApiError(Exception):
    """An answer other than success.

    Args:
        status: of HTTP.
        message: one line for the user.
        code: a word for programs.
        retry_after_s: when to come again.
    """

    def __init__(
        self, status: int, message: str, *, code: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code or CODES.get(status, "invalid_request")
        self.retry_after_s = retry_after_s

    @property
    def body(self) -> dict[str, dict[str, str]]:
        return {"error": {"code": self.code, "message": self.message}}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after_s is None else {"Retry-After": str(max(1, math.ceil(self.retry_after_s)))}


def not_found(what: str, name: str) -> ApiError:
    return ApiError(404, f"there is no {what} {name}; it may have been deleted")


def gone(name: str, why: str) -> ApiError:
    return ApiError(410, f"object {name} {why}; ask for it again")


def unreadable(name: str, error: OSError) -> ApiError:
    text = f"object {name} cannot be read now ({error.strerror or error}); try again in a moment"
    return ApiError(503, text, code="unreadable", retry_after_s=5)
