"""Random requests, some nearly right and some nonsense: no answer of 500 or above, no leak of memory or of files."""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from studio_target import Target, request

import helicube
from helicube.serve.config import Limits

# Half are what there is most to get wrong in.
ROUTES = (
    *[("POST", "/v1/objects")] * 12, *[("DELETE", "/v1/jobs/{id}"), ("GET", "/v1/objects"), ("GET", "/v1/jobs")] * 2,
    ("GET", "/"), ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/v1/settings"),
    ("GET", "/v1/engine"), ("POST", "/v1/session"), ("GET", "/v1/objects/{id}"), ("DELETE", "/v1/objects/{id}"),
    *[("GET", f"/v1/objects/{{id}}.{ending}") for ending in ("glb", "obj", "mtl", "stl", "ply", "png", "json")],
    ("GET", "/v1/plan/names"),
    ("GET", "/v1/jobs/{id}"), ("GET", "/v1/jobs/{id}/events"), ("GET", "/v1/jobs/{id}/previews/0/0.glb"),
    ("GET", "/page/{text}"), ("GET", "/plan?model={text}"), ("GET", "/{text}"),
)  # fmt: skip
UNSENT = -1
# Of the server's memory, after a fifth of the requests: caches of small objects, not a leak that grows with requests.
MOST_GROWTH_MB = 96
METHODS = ("GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS", "PATCH", "BREW")
ODD = (
    "", " ", "../../etc/passwd", "%00", "a\x00b", "\ud800", "é" * 300, "x" * 3000, "'; DROP TABLE jobs; --",
    "<script>", "NaN", "-1", "1e999", "null", "[]", "{}", "🪑", "\u202e", "%ff%fe", "..%2f..%2f",
)  # fmt: skip


class Fuzzer:
    """Makes requests from a seed."""

    def __init__(self, seed: int, known: list[str]) -> None:
        self.chance, self.known = random.Random(seed), known

    def value(self, depth: int = 0) -> Any:
        c = self.chance
        kinds = [lambda: c.choice(ODD), lambda: c.randint(-(2**70), 2**70), lambda: c.uniform(-1e9, 1e9),
                 lambda: c.choice([None, True, False, float("nan"), float("inf")])]  # fmt: skip
        if depth < 3:
            kinds += [lambda: [self.value(depth + 1) for _ in range(c.randint(0, 4))],
                      lambda: {str(self.value(3)): self.value(depth + 1) for _ in range(c.randint(0, 3))}]  # fmt: skip
        return c.choice(kinds)()

    def body(self) -> bytes:
        c = self.chance
        kind = c.random()
        if kind < 0.2:
            return c.randbytes(c.choice([0, 1, 10, 1000, 100_000]))
        if kind < 0.25:
            return b"[" * c.choice([10, 1000, 60_000])
        asked: dict[str, Any] = {**request(c.randint(0, 40)), "quality": "draft", "max_triangles": 500}
        names = [
            *asked,
            "variants",
            "best_of",
            "box",
            "size_m",
            "format",
            "guidance",
            "top_p",
            "pivot",
            "up",
            "api_key",
            "x",
        ]
        for _ in range(c.randint(0, 3)):
            asked[c.choice(names)] = self.value()
        text = json.dumps(asked)
        if c.random() < 0.1:
            cut = c.randint(0, len(text))
            text = text[:cut] + c.choice(["", "\x00", "}", '"']) + text[cut + c.randint(0, 3) :]
        return text.encode("utf-8", "surrogatepass")

    def learn(self, body: bytes) -> None:
        """Remember what the service made, to ask for it again."""
        try:
            job = json.loads(body)
            self.known = [*self.known[-20:], job["id"], job["objects"][0]["id"]]
        except (ValueError, KeyError, TypeError, IndexError):
            return

    def request(self) -> tuple[str, str, bytes | None, dict[str, str]]:
        c = self.chance
        text = c.choice(ODD).encode("utf-8", "surrogatepass")
        quoted = "".join(chr(b) if 33 <= b < 127 and c.random() < 0.7 else f"%{b:02x}" for b in text)
        name = c.choice(self.known) if c.random() < 0.6 else f"{c.getrandbits(128):032x}"
        method, path = c.choice(ROUTES)
        path = path.replace("{id}", name).replace("{text}", quoted)
        if c.random() < 0.2:
            option = c.choice(["wait", "limit", "before", "download", "y"])
            path += ("&" if "?" in path else "?") + f"{option}={quoted[:200]}"
        if c.random() < 0.1:
            method = c.choice(METHODS)
        headers = {"Content-Type": c.choice(["application/json"] * 8 + ["text/plain", "", "x"])}
        if c.random() < 0.1:
            headers[c.choice(["Host", "Cookie", "Authorization", "If-None-Match", "Origin", "Range"])] = quoted[:500]
        return method, path, self.body() if method in {"POST", "PUT", "PATCH"} else None, headers


def send(port: int, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    """The status and the start of the body; UNSENT where it cannot be asked, 0 where no answer came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        try:
            connection.request(method, path, body=body, headers=headers)
        except (http.client.InvalidURL, ValueError):
            return UNSENT, b""
        except ConnectionError:
            # Refused while it was still being sent: the answer may be there.
            connection.sock.settimeout(5)
        answer = connection.getresponse()
        # A stream of events is left in the midst of it.
        return answer.status, answer.read(4000)
    except (http.client.HTTPException, OSError):
        # A body that is far too large may be cut off before the answer is read.
        return (UNSENT if body and len(body) > Limits().body_bytes else 0), b""
    finally:
        connection.close()


def state(target: Target) -> dict[str, int]:
    """Resident bytes, and open files, of the server; −1 where the system does not tell."""
    process = Path("/proc") / str(target.pid)
    if not process.is_dir():
        return {"resident_mb": -1, "open_files": -1}
    pages = int((process / "statm").read_text().split()[1])
    return {"resident_mb": pages * 4096 >> 20, "open_files": len(list((process / "fd").iterdir()))}


def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        target = Target(options, Path(folder))
        client = helicube.Client(target.url)
        job = client.generate("a red chair", quality="draft")
        fuzzer = Fuzzer(options.seed, [job["id"], job["objects"][0]["id"]])
        statuses: collections.Counter[int] = collections.Counter()
        failures, before = [], state(target)
        for i in range(options.requests):
            asked = fuzzer.request()
            status, text = send(target.port, *asked)
            if status in {200, 202} and asked[0] == "POST":
                fuzzer.learn(text)
            statuses[status] += 1
            # 503 is an honest answer (stopping, too many listeners); neither may happen here.
            if status >= 500 or status == 0:
                failures.append({"status": status, "method": asked[0], "path": asked[1], "body": repr(asked[2])[:300]})
            if i == options.requests // 5:
                before = state(target)
        until = time.monotonic() + 120
        while (engine := client._json("GET", "/v1/engine"))["running"] + engine["queued"] + engine["meshing"]:
            if time.monotonic() > until:
                break
            time.sleep(0.2)
        drained = time.monotonic() <= until
        time.sleep(1)
        after = state(target)
        healthy = client._json("GET", "/healthz") == {"status": "ok"}
        known = {made["id"] for made in client.objects()}
        target.stop()
        files = list((Path(folder) / "objects").iterdir())
        strange = [path.name for path in files if path.suffix not in {".npz", ".png"} or path.stem not in known]
        missing = sorted(known - {path.stem for path in files if path.suffix == ".npz"})
    grown = after["resident_mb"] - before["resident_mb"]
    files_are_right = not strange and not missing and after["open_files"] <= before["open_files"] + 8
    sound = not failures and healthy and drained and files_are_right and grown < MOST_GROWTH_MB
    return {"requests": options.requests, "statuses": dict(sorted(statuses.items())), "failures": failures[:20],
            "after_a_fifth": before, "at_the_end": after, "files": len(files),
            "strange_files": strange, "missing_files": missing,
            "objects": engine["num_objects"], "healthy": healthy, "drained": drained, "sound": sound}  # fmt: skip
