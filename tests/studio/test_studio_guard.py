"""What strangers may do: keys, hosts, sizes, rates, headers, and the page's files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from own_loop import run_async
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient
from starlette.types import Message
from studio_start import Start
from test_studio_service import until

from helicube.errors import InputError
from helicube.serve.address import household
from helicube.serve.buckets import Buckets
from helicube.serve.config import Limits, ServeConfig
from helicube.serve.guard import Keys, read_body
from helicube.serve.page_files import PageFiles, inline_hashes
from helicube.serve.problem import ApiError
from helicube.serve.routes_jobs import Events, watch

KEY = "a key of sixteen characters and more"
BODY = {"prompt": "a chair", "quality": "draft"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": "0.0.0.0"}, "api-key"),
        ({"host": "example.com"}, "api-key"),
        ({"host": "192.168.1.2"}, "api-key"),
        ({"api_key": "short"}, "16 or more"),
        ({"slots": 0}, "slots=0"),
        ({"port": 70000}, "port=70000"),
        ({"api_key": "schlüssel-schlüssel"}, "printable ASCII"),
        ({"api_key": "a key with a line\nend"}, "printable ASCII"),
        ({"cors": ("*",)}, "every site"),
        ({"cors": ("game.example",)}, "not an origin"),
        ({"hosts": ("http://studio.local",)}, "not a host name"),
        ({"public_url": "objects.example.com"}, "no address"),
        ({"public_url": "https://objects.example.com"}, "--api-key-file"),
    ],
)
def test_unsafe_settings_are_refused(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        ServeConfig(data_dir=tmp_path, **settings)


def test_limits_are_never_looser_than_the_description() -> None:
    assert Limits(variants=2).variants == 2
    for name, value in (("prompts", 17), ("variants", 9), ("triangles", 200_001), ("triangles", 0)):
        with pytest.raises(InputError, match=name):
            Limits(**{name: value})


def test_loopback_needs_no_key_and_others_do(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        assert ServeConfig(data_dir=tmp_path, host=host).api_key is None
    assert ServeConfig(data_dir=tmp_path, host="0.0.0.0", api_key=KEY).api_key == KEY
    assert KEY not in repr(ServeConfig(data_dir=tmp_path, api_key=KEY))


def test_without_the_key_nothing_but_the_page_is_shown(start: Start) -> None:
    client = start(api_key=KEY)
    for path in ("/", "/healthz", "/roblox/Helicube.luau"):
        assert client.get(path).status_code == 200
    closed = ["/v1/jobs", "/v1/objects", "/v1/engine", "/metrics", "/openapi.json", "/v1/settings", "/plan", "/nothing"]
    for path in closed:
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "unauthorized"
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert client.post("/v1/objects", json=BODY).status_code == 401
    for wrong in ("", "Bearer", "Bearer x", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer \xff"):
        assert client.get("/v1/jobs", headers={b"authorization": wrong.encode("latin-1")}).status_code == 401
    assert client.get("/v1/jobs", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_browser_signs_in_and_out(start: Start, tmp_path: Path) -> None:
    client = start(api_key=KEY)
    assert client.post("/v1/session", json={"api_key": "wrong"}).status_code == 401
    answer = client.post("/v1/session", json={"api_key": KEY})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert KEY not in cookie
    assert "secure" not in cookie
    behind = start(api_key=KEY, public_url="https://objects.example.com", data_dir=tmp_path / "behind")
    assert "secure" in behind.post("/v1/session", json={"api_key": KEY}).headers["set-cookie"].lower()
    assert client.get("/v1/settings").json()["needs_key"] is True
    assert client.delete("/v1/session").status_code == 204
    assert client.get("/v1/settings").status_code == 401


def test_sessions_are_signed_end_and_die_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(KEY)
    session = keys.session()
    assert keys.is_session(session)
    until, _, signature = session.partition(".")
    assert not keys.is_session(f"{int(until) + 1}.{signature}")
    assert not keys.is_session(f"{until}.")
    assert not keys.is_session("")
    assert not Keys(KEY + "!").is_session(session)
    monkeypatch.setattr("time.time", lambda: float(until) + 1)
    assert not keys.is_session(session)
    assert KEY not in repr(vars(keys))


def test_guessing_keys_is_slow(start: Start) -> None:
    client = start(api_key=KEY)
    codes = [client.get("/v1/jobs", headers={"Authorization": f"Bearer {i}"}).status_code for i in range(40)]
    assert codes[:20] == [401] * 20
    assert codes[-1] == 429


def test_names_of_other_sites_are_not_served_without_a_key(start: Start) -> None:
    client = start(hosts=("Studio.Local:8000",), public_url="http://localhost:9000")
    for host, status in (("evil.example", 421), ("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:80", 200),
                         ("studio.local", 200), ("", 421), ("objects.example.com", 421)):  # fmt: skip
        assert client.get("/v1/jobs", headers={"Host": host}).status_code == status, host


def test_pages_of_other_sites_get_nothing_unless_allowed(start: Start) -> None:
    origin = {"Origin": "https://evil.example"}
    ask = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    client = start()
    assert "access-control-allow-origin" not in client.get("/v1/jobs", headers=origin).headers
    assert "access-control-allow-origin" not in client.options("/v1/objects", headers=ask).headers
    # What a page can send without asking first is not taken.
    simple = client.post(
        "/v1/objects", content=b'{"prompt": "a chair"}', headers={**origin, "Content-Type": "text/plain"}
    )
    assert simple.status_code == 415
    assert not client.get("/v1/jobs").json()["jobs"]


def test_allowed_origins_are_told_so(start: Start) -> None:
    client = start(cors=("https://game.example",), api_key=KEY)
    found = client.get("/v1/jobs", headers={"Origin": "https://game.example"}).headers
    assert found["access-control-allow-origin"] == "https://game.example"
    ask = {"Origin": "https://game.example", "Access-Control-Request-Method": "POST"}
    assert client.options("/v1/objects", headers=ask).status_code == 200
    assert (
        "access-control-allow-origin" not in client.get("/v1/jobs", headers={"Origin": "https://evil.example"}).headers
    )


def test_bodies_have_a_bound(start: Start) -> None:
    client = start(limits={"body_bytes": 1000})
    assert client.post("/v1/objects", json={"prompt": "x" * 2000}).status_code == 413

    def chunks() -> Any:
        for _ in range(100):
            yield b" " * 100

    answer = client.post("/v1/objects", content=chunks(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"[" * 30_000, 400),
        (b'{"prompt": "a chair", "prompt2": 1}', 422),
        (b'{"prompt": ""}', 422),
        (b'{"prompt": "  "}', 422),
        (b'{"prompt": "\\ud800"}', 422),
        (b'{"prompt": "a\\u0000b"}', 422),
        (b'{"prompt": []}', 422),
        (b'{"prompt": "a chair", "seed": -1}', 422),
        (b'{"prompt": "a chair", "seed": 1e400}', 422),
        (b'{"prompt": "a chair", "seed": 9007199254740991, "variants": 2}', 422),
        (b'{"prompt": "a chair", "box": [1, 2]}', 422),
        (b'{"prompt": "a chair", "box": [1, 2, NaN]}', 422),
        (b'{"prompt": "a chair", "box": [1, 1, 1000]}', 422),
        (b'{"prompt": "a chair", "max_triangles": 3}', 422),
        (b'{"prompt": "a chair", "max_triangles": 10000000}', 422),
        (b'{"prompt": "a chair", "variants": 1000}', 422),
        (b'{"prompt": ["a", "b", "c", "d"], "variants": 8}', 422),
        (b'{"prompt": "a chair", "format": "../../etc/passwd"}', 422),
        (b'{"prompt": "' + b"a" * 1001 + b'"}', 422),
        (b'{"prompt": ' + json.dumps(["a chair"] * 17).encode() + b"}", 422),
        (b'{"prompt": "a chair", "size_m": 0}', 422),
        (b'{"prompt": "one two three four five six seven eight nine"}', 422),
        (b"\xff\xfe", 400),
    ],
)
def test_mistakes_are_one_plain_line(start: Start, body: bytes, status: int) -> None:
    client = start()
    answer = client.post("/v1/objects", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] in {"invalid_request", "invalid_prompt"}
    assert error["message"]
    assert "\n" not in error["message"]
    assert not client.get("/v1/jobs").json()["jobs"]


def test_rates_are_limited_per_client(start: Start) -> None:
    client = start(limits={"objects_per_minute": 4.0}, step_s=0.0)
    codes = [client.post("/v1/objects", json={**BODY, "seed": i}).status_code for i in range(3)]
    assert codes == [202, 202, 429]
    answer = client.post("/v1/objects", json=BODY)
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_job_costs_as_much_as_its_objects(start: Start) -> None:
    client = start(limits={"objects_per_minute": 6.0})
    assert client.post("/v1/objects", json={**BODY, "variants": 8}).status_code == 202
    refused = client.post("/v1/objects", json={**BODY, "prompt": "a table"})
    # Eight of the three in the bucket: five to pay back, and one for the next, at ten seconds each.
    assert 55 <= int(refused.headers["Retry-After"]) <= 60


def test_pages_of_other_sites_cannot_make_it_work(start: Start, tmp_path: Path) -> None:
    client = start()
    site = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for path in ("/plan", f"/v1/objects/{'0' * 32}.png", "/v1/jobs", "/"):
        assert client.get(path, headers=site).json()["error"]["code"] == "forbidden", path
    for path, status in (("/", 200), ("/v1/jobs", 200), ("/plan", 403), (f"/v1/objects/{'0' * 32}.png", 403)):
        assert client.get(path, headers=link).status_code == status, path
    allowed = start(cors=("https://game.example",), api_key=KEY, data_dir=tmp_path / "allowed")
    ask = {"Authorization": f"Bearer {KEY}", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    assert allowed.get("/v1/jobs", headers=ask).status_code == 200


def test_plans_that_wait_hold_no_one_else_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    go = threading.Event()

    def search(*_: Any) -> bytes:
        go.wait(60)
        return b"<p>plan</p>"

    monkeypatch.setattr("helicube.serve.plan_page.search", search)
    with ThreadPoolExecutor(48) as pool:
        plans = [pool.submit(client.get, "/plan", params={"max_gpus": i + 1}) for i in range(48)]
        try:
            # 5 fit: one under way, four in the list. The others are told at once, and the rest of the service goes on.
            until(lambda: sum(plan.done() for plan in plans) == 43)
            assert client.get("/healthz").status_code == 200
        finally:
            go.set()
    answers = [plan.result() for plan in plans]
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [503] * 43
    assert all("Retry-After" in answer.headers for answer in answers if answer.status_code == 503)


def test_a_refused_plan_says_why_like_every_route(start: Start) -> None:
    client = start()
    asked: list[tuple[dict[str, str | int], str]] = [
        ({"max_gpus": 100_000}, 'max_gpus "100000"'),
        ({"model": "nonsense"}, "did you mean"),
        # A choice that the page offers: no eight of these hold it.
        ({"model": "deepseek-r1", "gpu": "h100", "max_gpus": 8}, "does not fit 8"),
    ]
    for query, words in asked:
        answer = client.get("/plan", params=query)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
        assert words in answer.json()["error"]["message"]
        assert answer.headers["cache-control"] == "no-store"


def test_small_rates_let_something_through_and_strange_ones_are_refused(tmp_path: Path) -> None:
    assert Buckets(0.3, 0.6).take("a") == 0.0
    serve = [sys.executable, "-m", "helicube", "serve", "--data-dir", str(tmp_path / "d")]
    for option, value in (("--cache-gb", "nan"), ("--cache-gb", "inf"), ("--steps-per-launch", "0")):
        done = subprocess.run([*serve, option, value], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        assert done.stderr.startswith("error: "), done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_buckets_fill_again_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    buckets = Buckets(2.0, 2, max_clients=3)
    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    now[0] = 0.5
    assert buckets.take("a") == 0.0
    assert buckets.take("b") == 0.0
    for i in range(10):
        buckets.take(str(i))
    assert len(buckets.left) == 3
    assert all(Buckets(0, 1).take("a") == 0 for _ in range(100))


def test_every_answer_carries_the_headers(start: Start) -> None:
    client = start()
    for path in ("/", "/healthz", "/v1/jobs", "/nothing", "/plan?model=nonsense"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize(
    "path",
    ["/page/../service.py", "/page/%2e%2e/service.py", "/page//etc/passwd", "/page/..%2f..%2ferrors.py", "/page/",
     "/page", "/v1/objects/..%2f..%2fjobs.sqlite3", "/v1/objects/%2e%2e.glb", "/v1/objects/0123.glb",
     "/v1/jobs/../../x/events"],
)  # fmt: skip
def test_no_path_leads_to_the_file_system(start: Start, path: str) -> None:
    answer = start().get(path)
    assert answer.status_code in {404, 422}, answer.text
    assert "error" in answer.json()


def test_page_files_have_types_tags_and_hashes(tmp_path: Path, start: Start) -> None:
    (tmp_path / "vendor" / "three-1").mkdir(parents=True)
    script = '{"imports": {"three": "./three.js"}}'
    (tmp_path / "index.html").write_text(f'<script type="importmap">{script}</script><script src="a.js"></script>')
    (tmp_path / "app.js").write_text("let a = 1;\n" * 500)
    (tmp_path / "vendor" / "three-1" / "three.js").write_text("x")
    (tmp_path / "secret.py").write_text("x")
    files = PageFiles(tmp_path).files
    assert set(files) == {"index.html", "app.js", "vendor/three-1/three.js"}
    assert files["app.js"].media_type == "text/javascript; charset=utf-8"
    assert files["app.js"].zipped is not None
    assert "immutable" in files["vendor/three-1/three.js"].cache_control
    assert files["app.js"].cache_control == "no-cache"
    assert len(inline_hashes((tmp_path / "index.html").read_text())["script"]) == 1
    client = start()
    first = client.get("/")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_planner_has_its_page_and_reads_no_files(start: Start, tmp_path: Path) -> None:
    client = start()
    names = client.get("/v1/plan/names").json()
    assert "deepseek-r1" in names["models"]
    assert "gb200" in names["gpus"]
    page = client.get("/plan", params={"model": "llama-3.1-70b", "gpu": "h200", "max_gpus": 8, "context": 100_000})
    assert page.status_code == 200
    assert "<svg" in page.text
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert page.headers["content-security-policy"].count("sha256-") >= 2
    (tmp_path / "config.json").write_text("{}")
    for model in (str(tmp_path), str(tmp_path / "config.json"), "<script>"):
        answer = client.get("/plan", params={"model": model, "gpu": "h200"})
        assert answer.status_code == 422
        # With nosniff, no browser takes it for a page.
        assert answer.headers["content-type"] == "application/json"


def test_metrics_health_and_engine(start: Start) -> None:
    client: TestClient = start()
    client.post("/v1/objects?wait=true", json=BODY)
    client.post("/v1/objects?wait=true", json=BODY)
    text = client.get("/metrics").text
    assert 'helicube_objects_total{outcome="done"} 1.0' in text
    assert 'helicube_objects_total{outcome="cached"} 1.0' in text
    assert "helicube_ttft_seconds_count 1.0" in text
    assert "helicube_queue 0.0" in text
    assert "helicube_batch 0.0" in text
    assert "helicube_tpot_seconds_count 1.0" in text
    assert "helicube_first_preview_seconds_count 1.0" in text
    assert 'helicube_http_answers_total{method="POST",status="200"} 2.0' in text
    engine = client.get("/v1/engine").json()
    assert engine["num_done"] == 1
    assert engine["num_cached"] == 1
    assert engine["tpot_s"] > 0
    settings = client.get("/v1/settings").json()
    assert settings["defaults"]["max_triangles"] == 20_000
    assert settings["limits"]["max_objects_per_job"] == 16


def test_a_broken_engine_shows_in_health(start: Start) -> None:
    client = start()
    service = client.service  # type: ignore[attr-defined]
    service.scheduler.thread = type("Dead", (), {"is_alive": staticmethod(lambda: False), "join": lambda *_: None})()
    assert client.get("/healthz").status_code == 503
    assert client.get("/healthz").json() == {"status": "broken"}


def test_a_body_that_never_ends_is_not_waited_for() -> None:
    limits = Limits(body_s=0.05)

    async def drip() -> Message:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(ApiError, match="longer than") as caught:
        run_async(read_body(drip, Headers({}), limits))
    assert caught.value.status == 408
    assert caught.value.body["error"]["code"] == "timeout"


def test_listeners_are_counted_and_let_go(start: Start) -> None:
    client = start(limits={"streams": 1})
    job = client.post("/v1/objects?wait=true", json=BODY).json()["id"]
    hub = client.service.hub  # type: ignore[attr-defined]
    other = hub.open("another job")
    refused = client.get(f"/v1/jobs/{job}/events")
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "5"
    assert "poll" in refused.json()["error"]["message"]
    hub.close("another job", other)
    assert "event: end" in client.get(f"/v1/jobs/{job}/events").text
    assert client.get(f"/v1/jobs/{'0' * 32}/events").status_code == 404
    assert hub.num_streams == 0


def test_one_client_cannot_have_all_streams(start: Start) -> None:
    client = start(limits={"streams": 4, "requests_per_s": 1000.0})
    hub = client.service.hub  # type: ignore[attr-defined]
    assert client.post("/v1/objects?wait=true", json=BODY).status_code == 200
    for _ in range(2):
        hub.open("a job", "testclient")
    assert client.post("/v1/objects?wait=true", json=BODY).json()["error"]["code"] == "busy"
    assert len(client.get("/v1/jobs").json()["jobs"]) == 1
    other = TestClient(client.app, base_url="http://127.0.0.1", client=("10.0.0.7", 1))
    assert other.post("/v1/objects?wait=true", json=BODY).status_code == 200


def test_a_wait_that_is_over_tells_the_state_of_its_end(start: Start) -> None:
    client = start(limits={"wait_s": 1.0}, step_s=0.1)
    view = client.post("/v1/objects?wait=true", json=BODY).json()
    assert view["status"] == "running"
    assert view["objects"][0]["tokens_done"] >= 1


def test_a_listener_of_a_forgotten_job_is_let_go(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(step_s=0.1)
    begun = threading.Event()

    # Who comes too late to find the job is told so (404), which is not what is meant here.
    async def watch_and_tell(*arguments: Any) -> AsyncIterator[bytes]:
        begun.set()
        async for event in watch(*arguments):
            yield event

    monkeypatch.setattr("helicube.serve.routes_jobs.watch", watch_and_tell)
    service = client.service  # type: ignore[attr-defined]
    job = client.post("/v1/objects", json=BODY).json()["id"]
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(client.get, f"/v1/jobs/{job}/events")
        assert begun.wait(60)
        # Both under one lock: the listener sees no state in between.
        with service.lock:
            service.remove_job(job)
            service.remove_job(job)
        assert listening.result(10).text.rstrip().endswith("{}") or "event: end" in listening.result(1).text
    # To cancel what has just ended is not to forget it.
    done = client.post("/v1/objects?wait=true", json={**BODY, "prompt": "a table"}).json()["id"]
    assert client.delete(f"/v1/jobs/{done}?forget=false").status_code == 204
    assert client.get(f"/v1/jobs/{done}").json()["status"] == "done"


def test_a_listener_that_leaves_before_the_first_event_is_let_go() -> None:
    closed = []

    async def events() -> AsyncIterator[bytes]:
        yield b""

    async def gone(_: Message) -> None:
        raise OSError

    async def leave() -> Message:
        return {"type": "http.disconnect"}

    answer = Events(events(), lambda: closed.append(True))
    with pytest.raises(ClientDisconnect):
        run_async(answer({"type": "http", "asgi": {"spec_version": "2.4"}}, leave, gone))
    assert closed == [True]


@pytest.mark.parametrize(
    ("address", "held"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_limits_hold_a_host_whatever_its_addresses(address: str, held: str) -> None:
    assert household(address) == held
