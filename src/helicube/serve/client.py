"""A client of the studio's API: the standard library alone, so that a game's tool chain needs nothing else."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from helicube.errors import DecodeError, DeviceError, HelicubeError, InputError, PromptError

__all__ = ["Client"]

Json = dict[str, Any]
# Endings of files that an object can be had as.
_FILES = ("glb", "obj", "stl", "ply", "json", "png")
# Codes of errors that the request itself caused.
_MISTAKES = {"invalid_request", "invalid_prompt", "too_large", "unsupported_type", "not_found", "unauthorized"}


class Client:
    """Asks a running `helicube serve` for objects.

    Args:
        url: where it answers.
        api_key: if it wants one.
        timeout_s: for a single answer; a job may take longer.
        patience_s: how long a full queue, a rate limit or a restart is waited out, in all; 0: not at all.

    Raises:
        InputError: the URL is not one of http or https.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        *,
        timeout_s: float = 150.0,
        patience_s: float = 60.0,
    ) -> None:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise InputError(f"{url!r} is not the address of a service; give for example http://127.0.0.1:8000")
        self.url, self.timeout_s, self.patience_s = url.rstrip("/"), timeout_s, patience_s
        self.headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}

    def generate(self, prompt: str | Sequence[str], path: str | Path | None = None, **settings: object) -> Json:
        """Make objects and wait for them; the ended job.

        Args:
            prompt: one or several.
            path: where to write the object: its ending is the format. For several objects, a folder.
            settings: seed, variants, best_of, box, quality, max_triangles, size_m, format … (docs/studio.md).

        Raises:
            PromptError, InputError: the service refuses what was asked for.
            DecodeError: an object could not be made; the message says why.
            DeviceError: the service cannot be reached, stays full, or failed.
        """
        if path is not None and Path(path).suffix:
            several = not isinstance(prompt, str) and len(prompt) > 1
            settings = _for_file(Path(path), settings, several=several)
        job = self.submit(prompt, **settings)
        if job["ended_at"] is None:
            job = self.wait(job["id"])
        # What was made is kept, whatever became of the others.
        if path is not None:
            self._save(job, Path(path))
        failed = [made for made in job["objects"] if made["status"] != "done"]
        if failed:
            why = f"{failed[0]['prompt']!r}: {(failed[0]['error'] or {}).get('message', 'cancelled')}"
            rest = f" ({len(failed)} of {len(job['objects'])} failed)" if len(job["objects"]) > 1 else ""
            raise DecodeError(why + rest)
        return job

    def _save(self, job: Json, path: Path) -> None:
        made = [one for one in job["objects"] if one["status"] == "done"]
        if path.suffix:
            for one in made:
                self.download(one["id"], path)
            return
        path.mkdir(parents=True, exist_ok=True)
        for one in made:
            self.download(one["id"], path / f"{one['id']}.{job['request']['format']}")

    def submit(self, prompt: str | Sequence[str], **settings: object) -> Json:
        """Ask for objects without waiting; the job."""
        prompts = prompt if isinstance(prompt, str) else list(prompt)
        return self._json("POST", "/v1/objects", {"prompt": prompts, **settings})

    def job(self, job: str) -> Json:
        """A job as it stands."""
        return self._json("GET", f"/v1/jobs/{job}")

    def events(self, job: str) -> Iterator[tuple[str, Json]]:
        """What happens to a job, as (name, data), until it has ended; a service that restarts is waited for.

        Raises:
            InputError: there is no such job, or it was forgotten meanwhile.
            DeviceError: the service says nothing for longer than the client's patience.
        """
        until = time.monotonic() + self.patience_s
        while True:
            with self._open("GET", f"/v1/jobs/{job}/events") as answer:
                name = ""
                try:
                    for raw in answer:
                        until = time.monotonic() + self.patience_s
                        line = raw.decode().rstrip("\n")
                        if line.startswith("event: "):
                            name = line[7:]
                        elif line.startswith("data: "):
                            yield name, json.loads(line[6:])
                            if name == "end":
                                return
                except (OSError, HTTPException):
                    # Cut off; the state is told anew on the next connection.
                    pass
            if time.monotonic() > until:
                raise DeviceError(f"{self.url} tells nothing of job {job}; is there a proxy that cuts events off?")
            time.sleep(0.2)

    def wait(self, job: str) -> Json:
        """The job when it has ended."""
        ended: Json = {}
        for name, data in self.events(job):
            if name == "end":
                ended = data
        return ended

    def cancel(self, job: str) -> None:
        """Cancel a job that is under way; one that has ended stays as it is."""
        self._read("DELETE", f"/v1/jobs/{job}?forget=false")

    def forget(self, job: str) -> None:
        """Cancel a job that is under way, or forget one that has ended; its objects stay."""
        self._read("DELETE", f"/v1/jobs/{job}")

    def objects(self) -> Iterator[Json]:
        """All finished objects, newest first."""
        before: str | None = ""
        while before is not None:
            page = self._json("GET", f"/v1/objects?{urlencode({'limit': 200, 'before': before})}")
            yield from page["objects"]
            before = page["next"]

    def file(self, object_id: str, ending: str = "glb") -> bytes:
        """An object as a file: glb, obj, mtl, stl, ply, json or png."""
        return self._read("GET", f"/v1/objects/{object_id}.{ending}")

    def download(self, object_id: str, path: str | Path) -> Path:
        """Write an object to a file of the format that its ending names, an OBJ's library beside it."""
        from helicube.geometry.files import write_files

        path = Path(path)
        contents = {path: self.file(object_id, path.suffix[1:].lower())}
        if path.suffix.lower() == ".obj":
            # The library is named after the object, whatever the file is called.
            contents = {path.with_name(f"{object_id}.mtl"): self.file(object_id, "mtl"), **contents}
        write_files(contents)
        return path

    def _json(self, method: str, path: str, body: Json | None = None) -> Json:
        found: Json = json.loads(self._read(method, path, body))
        return found

    def _read(self, method: str, path: str, body: Json | None = None) -> bytes:
        """A whole answer; one that was cut off is asked for again where that changes nothing."""
        until = time.monotonic() + self.patience_s
        while True:
            with self._open(method, path, body) as answer:
                try:
                    data: bytes = answer.read()
                except (OSError, HTTPException) as error:
                    if method != "GET" or time.monotonic() > until:
                        raise DeviceError(f"{self.url} broke off in the midst of an answer ({error})") from None
                else:
                    return data

    def _open(self, method: str, path: str, body: Json | None = None) -> Any:
        """An answer; what passes by itself is waited out."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        for name, value in self.headers.items():
            # The key is for this service, wherever else it may send one.
            request.add_unredirected_header(name, value)
        until = time.monotonic() + self.patience_s
        while True:
            try:
                return urllib.request.urlopen(request, timeout=self.timeout_s)
            except urllib.error.HTTPError as error:
                again_s = _seconds(error.headers.get("Retry-After"))
                if error.code not in {429, 503} or time.monotonic() + again_s > until:
                    raise _mistake(error) from None
                # Its body is not read, so the connection must not linger.
                error.close()
            except (OSError, HTTPException) as error:
                # A job that was sent may have been accepted before the connection broke: only what changes nothing,
                # or was refused at the door, is tried again.
                again_s = 0.5
                refused = isinstance(getattr(error, "reason", error), ConnectionRefusedError)
                if time.monotonic() + again_s > until or not (refused or method == "GET"):
                    raise DeviceError(f"{self.url} cannot be reached ({error}); start it: helicube serve") from None
            time.sleep(again_s)


def _for_file(path: Path, settings: dict[str, Any], *, several: bool) -> dict[str, Any]:
    """The settings that make one object for a file; before anything is made, lest it be made in vain."""
    ending = path.suffix[1:].lower()
    if ending not in _FILES:
        raise InputError(f"{path} does not end in a format; choose one of {', '.join(_FILES)}, or name a folder")
    if several or settings.get("variants", 1) != 1:
        raise InputError(f"{path} names one file for several objects; name a folder, without an ending")
    return settings if ending == "png" else {"format": ending, **settings}


def _seconds(retry_after: str | None) -> float:
    """Of a Retry-After header, which proxies also write as a date (RFC 9110, section 10.2.3)."""
    try:
        return max(0.0, float(retry_after or 1))
    except ValueError:
        return 5.0


def _mistake(error: urllib.error.HTTPError) -> HelicubeError:
    """What the service says, as an exception of the right kind."""
    try:
        said = json.load(error)["error"]
        code, message = str(said["code"]), str(said["message"])
    except (ValueError, KeyError, TypeError):
        code, message = "internal", f"the service answered {error.code} {error.reason}; is it helicube serve?"
    if code == "invalid_prompt":
        return PromptError(message)
    return InputError(message) if code in _MISTAKES else DeviceError(message)
