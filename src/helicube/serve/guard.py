"""What every request passes first: host, key, rate, size and time of the body; and what every answer carries."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import time
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from helicube.serve.address import household
from helicube.serve.buckets import Buckets
from helicube.serve.config import Limits, ServeConfig, host_of
from helicube.serve.problem import ApiError
from helicube.serve.stats import Stats

__all__ = ["COOKIE", "Guard", "Keys"]

COOKIE = "helicube_session"
SESSION_S = 30 * 24 * 3600
OPEN = ("/page/", "/roblox/")
OPEN_EXACT = {"/", "/healthz", "/v1/session", "/favicon.ico"}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "X-Frame-Options": "DENY",
    # Routes that serve pages set their own.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class Keys:
    """Checks API keys and browser sessions; keeps only hashes of the key."""

    def __init__(self, api_key: str | None) -> None:
        self.needed = api_key is not None
        # Wrong keys only: who has the right one is never kept out by those who guess.
        self.failures = Buckets(0.5, 20)
        raw = (api_key or "").encode()
        self.digest = hashlib.sha256(b"helicube key " + raw).digest()
        # Sessions are signed, not stored, so that they outlive a restart and end when the key changes.
        self.secret = hashlib.sha256(b"helicube session " + raw).digest()

    def is_key(self, given: str) -> bool:
        digest = hashlib.sha256(b"helicube key " + given.encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(digest, self.digest)

    def refusal(self, client: str, text: str) -> ApiError:
        """What to answer to a wrong key or none, booked against the client."""
        if wait_s := self.failures.take(client):
            return ApiError(429, f"too many wrong keys; try again in {math.ceil(wait_s)} s", retry_after_s=wait_s)
        return ApiError(401, text)

    def session(self) -> str:
        until = str(int(time.time()) + SESSION_S)
        return f"{until}.{self._sign(until)}"

    def is_session(self, given: str) -> bool:
        until, _, signature = given.partition(".")
        sound = hmac.compare_digest(self._sign(until).encode(), signature.encode("utf-8", "surrogateescape"))
        return sound and int(until) > time.time()

    def _sign(self, until: str) -> str:
        return hmac.new(self.secret, until.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()

    def admits(self, headers: Headers) -> bool:
        if not self.needed:
            return True
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_key(key.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self.is_session(cookie.value)


class Guard:
    """ASGI middleware around the whole service."""

    def __init__(self, app: ASGIApp, config: ServeConfig, keys: Keys, stats: Stats) -> None:
        self.app, self.keys, self.stats, self.limits = app, keys, stats, config.limits
        named = (config.host, *config.hosts, urlsplit(config.public_url).netloc)
        self.hosts = None if keys.needed else {"localhost", "127.0.0.1", "::1", *map(host_of, filter(None, named))}
        self.cors = bool(config.cors)
        self.requests = Buckets(config.limits.requests_per_s, 2 * config.limits.requests_per_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                self.stats.answers.labels(method_of(scope), str(message["status"])).inc()
            await send(message)

        try:
            self._check(scope)
            replay = await read_body(receive, Headers(scope=scope), self.limits)
        except ApiError as error:
            await answer(error, send_guarded)
            return
        except ClientGone:
            return
        if scope["method"] == "HEAD":
            await as_head(self.app, scope, replay, send_guarded)
        else:
            await self.app(scope, replay, send_guarded)

    def _check(self, scope: Scope) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        client = household(scope["client"][0]) if scope.get("client") else "unknown"
        if self.hosts is not None and host_of(headers.get("host", "")) not in self.hosts:
            # A page of another site may point a name of its own at this machine (DNS rebinding).
            raise ApiError(421, "this name is not served; use 127.0.0.1, or allow the name with --allow-host")
        if is_foreign(headers, path, cors=self.cors):
            raise ApiError(403, "a page of another site asks for this; open the studio itself, or see --cors")
        if wait_s := self.requests.take(client):
            raise ApiError(429, f"too many requests; try again in {math.ceil(wait_s)} s", retry_after_s=wait_s)
        is_open = path in OPEN_EXACT or path.startswith(OPEN)
        if not is_open and not self.keys.admits(headers):
            raise self.keys.refusal(client, "an API key is needed; send it as 'Authorization: Bearer KEY'")
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Also keeps pages of other sites out: they cannot send this type without asking first.
        if scope["method"] == "POST" and media_type != "application/json":
            raise ApiError(415, "the body must be JSON; send Content-Type: application/json")


async def as_head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer HEAD as GET without its body. Source: RFC 9110, 9.3.2."""
    ended = False

    async def receive_until_ended() -> Message:
        # What would go on and on, such as events, ends as for a client that has gone.
        return {"type": "http.disconnect"} if ended else await receive()

    async def send_head(message: Message) -> None:
        nonlocal ended
        if message["type"] == "http.response.start":
            await send(message)
        elif not ended:
            ended = True
            await send({"type": "http.response.body", "body": b""})

    await app({**scope, "method": "GET"}, receive_until_ended, send_head)


class ClientGone(Exception):  # noqa: N818 - no error: nobody is left to be told
    """The client went away before its request was complete."""


def method_of(scope: Scope) -> str:
    """A method's name, or "other" for what is not one: labels must stay few."""
    known = {"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"}
    return scope["method"] if scope["method"] in known else "other"


def is_foreign(headers: Headers, path: str, *, cors: bool) -> bool:
    """Whether a page of another site makes a browser ask; a link that is followed is the user's own doing.

    Source: W3C, Fetch Metadata Request Headers.
    """
    if headers.get("sec-fetch-site") != "cross-site":
        return False
    if cors and headers.get("sec-fetch-mode") == "cors":
        return False
    # These cost seconds of work: not even for a link.
    return headers.get("sec-fetch-dest") != "document" or path == "/plan" or path.endswith(".png")


def length_of(headers: Headers) -> int:
    """Bytes that a body says to have; 0 if it does not say.

    Raises:
        ApiError: that is no number (400).
    """
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise ApiError(400, f"Content-Length {length[:20]!r} is not a number; give the body's bytes")
    # Python takes no more than thousands of digits, and none of these is a length.
    return int(length[:20])


async def read_body(receive: Receive, headers: Headers, limits: Limits) -> Receive:
    """Take the whole body within its bounds of size and time; a `receive` that gives it again.

    Raises:
        ApiError: too large (413), too slow (408), or a length that is none (400).
        ClientGone: the client went away.
    """
    too_large = ApiError(413, f"the body exceeds {limits.body_bytes} bytes; send fewer or shorter prompts")
    if length_of(headers) > limits.body_bytes:
        raise too_large
    parts = bytearray()

    async def take() -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.extend(message.get("body", b""))
            if len(parts) > limits.body_bytes:
                raise too_large
            more = message.get("more_body", False)

    try:
        await asyncio.wait_for(take(), limits.body_s)
    except TimeoutError:
        raise ApiError(408, f"the body took longer than {limits.body_s:.0f} s; send it faster") from None
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": bytes(parts), "more_body": False}

    return replay


async def answer(error: ApiError, send: Any) -> None:
    """Send an error without the application's help."""
    body = json.dumps(error.body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **error.headers}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in {408, 413}:
        # What is still on its way is not waited for.
        headers["Connection"] = "close"
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
