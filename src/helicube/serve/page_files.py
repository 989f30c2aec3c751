"""The page's files, from memory: no path that a client sends is ever looked up on disk."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["PageFile", "PageFiles", "content_policy", "inline_hashes"]

PAGE = Path(__file__).with_name("page")
# Named here, because what the system thinks of .js differs from machine to machine.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    "": "text/plain; charset=utf-8",
}
COMPRESSED = ("text/", "application/", "image/svg")
MISSING = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>helicube</title><h1>helicube serves</h1>"
    b"<p>The page is not installed. The API is described in <a href=/openapi.json>/openapi.json</a>.</p></html>"
)
INLINE = re.compile(r"<(script|style)(?![^>]*\bsrc=)[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file and how it is sent."""

    data: bytes
    zipped: bytes | None
    media_type: str
    etag: str
    cache_control: str


def inline_hashes(html: str) -> dict[str, list[str]]:
    """CSP sources of the inline elements of a page, by "script" and "style".

    Source: W3C, Content Security Policy Level 3, section 2.3.1 (hash-source).
    """
    found: dict[str, list[str]] = {"script": [], "style": []}
    for name, body in INLINE.findall(html):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        found[name.lower()].append(f"'sha256-{digest}'")
    return found


def content_policy(html: str, frame_ancestors: str = "'none'") -> str:
    """The Content-Security-Policy of a page: nothing from elsewhere, and inline only what it holds itself."""
    hashes = inline_hashes(html)
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(["script-src 'self'", *hashes["script"]]),
            " ".join(["style-src 'self'", *hashes["style"]]),
            "img-src 'self' data: blob:",
            "connect-src 'self' blob:",
            "font-src 'self'",
            "frame-src 'self'",
            "worker-src 'self' blob:",
            "manifest-src 'self'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            f"frame-ancestors {frame_ancestors}",
        )
    )


class PageFiles:
    """All files below a folder, read once.

    Args:
        reload: read them anew at each request.
    """

    def __init__(self, folder: Path = PAGE, *, reload: bool = False) -> None:
        self.folder, self.reload = folder, reload
        self.files = self._read()

    def _read(self) -> dict[str, PageFile]:
        found = {
            path.relative_to(self.folder).as_posix(): make_file(path.relative_to(self.folder), path.read_bytes())
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.suffix in TYPES and not path.name.startswith(".")
        }
        found.setdefault("index.html", make_file(Path("index.html"), MISSING))
        return found

    def answer(self, name: str, request: Request) -> Response | None:
        """A file by its path below the folder, or None; 304 where the client has it."""
        if self.reload:
            self.files = self._read()
        file = self.files.get(name)
        if file is None:
            return None
        headers = {"ETag": file.etag, "Cache-Control": file.cache_control, "Vary": "Accept-Encoding"}
        if name == "index.html":
            headers["Content-Security-Policy"] = content_policy(file.data.decode())
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if file.zipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.zipped, media_type=file.media_type, headers=headers | {"Content-Encoding": "gzip"})
        return Response(file.data, media_type=file.media_type, headers=headers)


def make_file(path: Path, data: bytes) -> PageFile:
    media_type = TYPES[path.suffix]
    zipped = gzip.compress(data, 6, mtime=0) if media_type.startswith(COMPRESSED) and len(data) > 1000 else None
    return PageFile(
        data=data,
        zipped=zipped if zipped and len(zipped) < len(data) else None,
        media_type=media_type,
        etag=f'"{hashlib.sha256(data).hexdigest()[:24]}"',
        # Folders of vendored libraries carry their version in the name.
        cache_control="public, max-age=31536000, immutable" if path.parts[0] == "vendor" else "no-cache",
    )
