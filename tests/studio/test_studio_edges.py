"""Edges of the protocol and of the options: HEAD, preflights, names of files, waits, limits, odd numbers."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from own_loop import run_async
from starlette.testclient import TestClient
from studio_start import Start
from test_studio_service import post, until
from test_studio_store import put

from helicube.engine.sampling import SamplingConfig
from helicube.errors import InputError
from helicube.serve.answers import first_problem
from helicube.serve.config import ServeConfig
from helicube.serve.cors import Cors
from helicube.serve.events import Hub
from helicube.serve.file_limit import RESERVED, connections_within
from helicube.serve.guard import HEADERS, Keys, as_head
from helicube.serve.object_request import ObjectRequest, specs_of
from helicube.serve.problem import ApiError
from helicube.serve.routes_jobs import wait_for_end
from helicube.serve.server import bind
from helicube.serve.start import KEY_VARIABLE, StartOptions, say
from helicube.serve.store import Store

KEY = "a key of sixteen characters and more"
OPTIONS: dict[str, Any] = {
    "host": "127.0.0.1", "port": 0, "data_dir": Path("data"), "api_key": None, "api_key_file": None, "allow_host": (),
    "cors": (), "public_url": "", "slots": 8, "queue": 64, "cache_gb": 2.0, "objects_per_minute": 120.0,
    "requests_per_s": 100.0, "mesh_threads": 1, "grace_s": 20.0, "weights": None, "version": None,
    "reload_page": False, "device": "cpu", "graph": True, "cache": True, "weight_format": "float32",
    "kernels": "auto", "steps_per_launch": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"api_key": ""}, "0 characters"),
        ({"cache_gb": 1e300}, "--cache-gb 1e+300"),
        ({"cache_gb": math.nan}, "--cache-gb nan"),
        ({"requests_per_s": -1.0}, "--requests-per-s -1"),
        ({"public_url": "http://[x"}, "no address"),
        ({"public_url": "https://"}, "no address"),
        ({"public_url": "https://a.b:99999"}, "no address"),
        ({"cors": ("http://[a",)}, "not an origin"),
        ({"allow_host": ("a.b:99999",)}, "not a host name"),
        ({"version": "v9"}, "--weights"),
    ],
)
def test_odd_options_are_one_line(given: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(InputError, match=re.escape(words)) as raised:
        _ = StartOptions(**OPTIONS | given).config
    assert "\n" not in str(raised.value)


def test_an_empty_key_in_the_environment_is_not_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "")
    with pytest.raises(InputError, match="0 characters"):
        _ = StartOptions(**OPTIONS).config
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert StartOptions(**OPTIONS).config.api_key == KEY


@pytest.mark.parametrize("host", ["LOCALHOST", "[::1]", "::ffff:127.0.0.1"])
def test_other_spellings_of_this_machine_need_no_key(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert StartOptions(**OPTIONS | {"host": host, "allow_host": ("a.b:80", "[::1]:80")}).config.api_key is None


@pytest.mark.parametrize("host", ["。", "ü" * 100])
def test_a_host_that_is_no_name_is_one_line(host: str, tmp_path: Path) -> None:
    config = ServeConfig(data_dir=tmp_path, host=host, api_key=KEY)
    with pytest.raises(InputError, match=r"choose another --(host|port)"):
        bind(config.host, 0)


def test_what_nobody_reads_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, _: str) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Closed())
    say("ready")


def test_the_right_key_is_taken_whatever_others_guess(start: Start) -> None:
    client = start(api_key=KEY)
    codes = [client.post("/v1/session", json={"api_key": f"{i}"}).status_code for i in range(24)]
    assert codes[:20] == [401] * 20
    refused = client.post("/v1/session", json={"api_key": "x"})
    assert refused.status_code == 429
    # The wait that is named is the one that is asked for.
    assert f"in {refused.headers['Retry-After']} s" in refused.json()["error"]["message"]
    assert client.get("/v1/jobs").status_code == 429
    assert client.post("/v1/session", json={"api_key": KEY}).status_code == 204
    assert client.get("/v1/jobs").status_code == 200


def test_waits_are_never_named_too_short() -> None:
    assert [ApiError(429, "", retry_after_s=s).headers["Retry-After"] for s in (0.2, 1.4, 2.0)] == ["1", "2", "2"]
    keys = Keys(KEY)
    answers = [keys.refusal("a", "wrong") for _ in range(21)]
    assert [answer.status for answer in answers] == [401] * 20 + [429]


def test_head_is_get_without_a_body_and_objects_of_any_name_hold_together(start: Start) -> None:
    client = start()
    job = post(client, prompt="a blue car")
    made = job["objects"][0]
    address = f"/v1/objects/{made['id']}"
    for path in ("/", "/healthz", f"{address}.glb", f"{address}.obj", job["events_url"], "/v1/jobs", "/nothing"):
        head, got = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.get("content-length") == got.headers.get("content-length"), path
        assert head.headers["x-content-type-options"] == "nosniff"
    assert client.service.hub.num_streams == 0  # type: ignore[attr-defined]
    # The file that is named for download is the one that its partner names.
    for query in ("", "?download=true"):
        obj, mtl = (client.get(f"{address}.{ending}{query}") for ending in ("obj", "mtl"))
        named = mtl.headers.get("content-disposition", f'filename="{made["id"]}.mtl"')
        assert named.endswith(f'filename="{re.findall("mtllib (.+)", obj.text)[0]}"')
    # Deleted, nothing of it is left to be had: no preview either.
    client.service.previews.put((made["id"], 1), b"glTF")  # type: ignore[attr-defined]
    preview = f"/v1/jobs/{job['id']}/previews/0/1.glb"
    assert client.get(preview).status_code == 200
    assert client.delete(address).status_code == 204
    assert client.get(preview).status_code == 404


def test_head_of_what_never_ends_ends() -> None:
    sent = []

    async def forever(_: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            await send({"type": "http.response.body", "body": b"more", "more_body": True})

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    run_async(asyncio.wait_for(as_head(forever, {"type": "http", "method": "HEAD"}, receive, send), 10))
    assert [message.get("body") for message in sent] == [None, b""]


def test_a_refused_preflight_is_an_answer_like_all_others() -> None:
    cors = Cors(lambda *_: None, allow_origins=["https://a.b"], allow_methods=["GET"])  # type: ignore[arg-type]
    client = TestClient(cors)
    for origin, status in (("https://evil.x", 400), ("https://a.b", 200)):
        answer = client.options("/v1/jobs", headers={"Origin": origin, "Access-Control-Request-Method": "GET"})
        assert answer.status_code == status
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        if status == 400:
            assert answer.json()["error"]["code"] == "invalid_request"
            assert "origin" in answer.json()["error"]["message"]
            assert "access-control-allow-origin" not in answer.headers


def test_names_for_download_change_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    put(store, "a" * 32)
    assert store.file("a" * 32, "glb", named=True) == store.file("a" * 32, "glb")
    store.close()


@pytest.mark.parametrize("talks", [False, True])
def test_a_client_that_has_gone_holds_no_place(talks: bool) -> None:
    hub = Hub()
    view = {"ended_at": None}

    class Service:
        class config:  # noqa: N801
            class limits:  # noqa: N801
                wait_s = 120.0

    Service.hub = hub  # type: ignore[attr-defined]
    Service.view = type("View", (), {"job": staticmethod(lambda _: view)})  # type: ignore[attr-defined]
    looked = []

    async def has_gone() -> bool:
        looked.append(hub.num_streams)
        return len(looked) == 2

    async def wait() -> Any:
        hub.attach(asyncio.get_running_loop())
        stream = hub.open("j", "c")
        waiting = asyncio.create_task(wait_for_end(Service, "j", stream, has_gone))  # type: ignore[arg-type]
        async with asyncio.timeout(30):
            while not waiting.done():
                # Tokens come, as they do while an object is made.
                if talks:
                    hub.publish("j", "progress", {})
                await asyncio.sleep(0.05)
        return waiting.result()

    assert run_async(wait()) == view
    assert looked == [1, 1]


def test_listeners_that_come_at_once_are_held_to_the_bound(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(limits={"streams": 4, "wait_s": 2.0, "requests_per_s": 1000.0})
    service: Any = client.service  # type: ignore[attr-defined]
    real, go = service.submit, threading.Event()

    def submit(*arguments: Any) -> None:
        go.wait(60)
        real(*arguments)

    monkeypatch.setattr(service, "submit", submit)
    body = {"prompt": "a chair", "quality": "draft"}
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(client.post, "/v1/objects?wait=true", json=body) for _ in range(6)]
        try:
            # Half of four for one address.
            until(lambda: sum(one.done() for one in asked) == 4)
        finally:
            go.set()
        codes = sorted(one.result().status_code for one in asked)
    assert codes[2:] == [503] * 4
    assert set(codes[:2]) <= {200, 202}
    assert service.hub.num_streams == 0


def test_what_is_refused_costs_nothing(start: Start) -> None:
    client = start(limits={"objects_per_minute": 8.0, "queue": 1}, step_s=0.5, slots=1, grace_s=0.0)
    ask = {"prompt": "a chair", "quality": "draft", "temperature": 1.0, "best_of": 1}
    for _ in range(10):
        answer = client.post("/v1/objects", json={**ask, "prompt": "one two three four five six seven eight nine"})
        assert answer.status_code == 422
    codes = [client.post("/v1/objects", json={**ask, "seed": seed}).json() for seed in range(12)]
    # The queue is what is full, however often it is tried: four objects could be had at once.
    assert {code["error"]["code"] for code in codes if "error" in code} == {"queue_full"}


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "fits"), [(256, 256, 256 - RESERVED), (256, 4096, 512), (10, 10, 8), (-1, -1, 512)]
)
def test_connections_leave_room_for_files(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, fits: int) -> None:
    import resource

    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.append(new))
    assert connections_within(512) == fits
    if hard == 4096:
        assert limits[-1] == (512 + RESERVED, 4096)


@pytest.mark.parametrize("temperature", [1e-40, 1e-42, 1e-300, 5e-324, 1e-30, 0.0])
def test_a_temperature_below_all_numbers_is_none(temperature: float) -> None:
    request = ObjectRequest.model_validate({"prompt": "a table", "temperature": temperature})
    (spec,) = specs_of(request, SamplingConfig())
    assert spec.temperature == (1e-30 if temperature == 1e-30 else 0.0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 30_000, "nested too deeply"),
        (b'{"prompt": "a", "seed": ' + b"1" * 5000 + b"}", "too long a number"),
        (b"{", "the body is not JSON"),
        (b"\xff\xfe", "body"),
        (b'{"prompt": []}', "prompt []: has 0 entries; give at least 1;"),
        (b'{"prompt": null}', "prompt null: Input should be a valid string"),
        (b'{"prompt": ""}', 'prompt "": has 0 characters; give at least 1;'),
        (b'{"prompt": "a", "box": [1, 2]}', "box [1, 2]: has 2 entries; give at least 3;"),
        (b'{"prompt": "a", "colour": "red"}', 'colour "red": is no setting that is taken; remove it;'),
        (b'{"seed": 1}', "prompt: is missing; send it;"),
        (b'{"prompt": "a", "pivot": "\\ud800"}', 'pivot "\\ud800": '),
        ('{"prompt": "a", "pivot": "élan"}'.encode(), 'pivot "élan": '),
        (b'{"prompt": 5}', "prompt 5: Input should be a valid string"),
        (b'{"prompt": "a", "variants": 9}', "variants 9: Input should be less than or equal to 8"),
        (b'{"prompt": "a", "box": [5e-324, 1, 1]}', "box.0 5e-324"),
    ],
)
def test_messages_name_the_value_and_the_rule(start: Start, body: bytes, words: str) -> None:
    answer = start().post("/v1/objects", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}
    assert words in answer.json()["error"]["message"]
    assert "\n" not in answer.json()["error"]["message"]


def test_other_fields_that_are_wrong_are_counted() -> None:
    problems = [
        {"type": "string_type", "loc": ("body", "prompt", "constrained-str"), "msg": "A", "input": []},
        {"type": "too_short", "loc": ("body", "prompt", "list[x]"), "msg": "B", "input": [], "ctx": {"min_length": 1}},
        {"type": "less_than_equal", "loc": ("body", "variants"), "msg": "C", "input": 9},
    ]
    assert first_problem(problems) == "prompt []: has 0 entries; give at least 1 (and 1 more); see /openapi.json"


def test_a_job_larger_than_the_queue_is_told_so_and_not_to_come_again(start: Start) -> None:
    client = start(limits={"queue": 4}, step_s=0.2, slots=1, grace_s=0.0)
    assert client.get("/v1/settings").json()["limits"]["max_objects_per_job"] == 4
    ask = {"prompt": "a chair", "quality": "draft"}
    answer = client.post("/v1/objects", json={**ask, "variants": 5})
    assert answer.status_code == 422
    assert "5 is too many; at most 4" in answer.json()["error"]["message"]
    assert client.post("/v1/objects", json={**ask, "variants": 4}).status_code == 202


def test_what_is_not_there_is_named_with_what_is(start: Start) -> None:
    client = start()
    for method, path, words in (
        ("GET", "/nothing/here", ("'/nothing/here'", "/openapi.json")),
        ("PUT", "/v1/jobs", ("PUT", "'/v1/jobs'", "use GET")),
    ):
        message = client.request(method, path).json()["error"]["message"]
        assert all(word in message for word in words), message
    bad = client.post("/v1/objects", content=b"{}", headers={"Content-Type": "application/json", "Content-Length": "x"})
    assert "'x' is not a number; give" in bad.json()["error"]["message"]


def test_files_that_run_out_say_nothing_of_the_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    service: Any = client.service  # type: ignore[attr-defined]

    def fail(number: int) -> None:
        raise OSError(number, os.strerror(number))

    for path, number, code, sound in (
        ("/v1/engine", errno.EMFILE, "busy", True),
        # In a folder for temporary files.
        ("/plan", errno.ENOSPC, "busy", True),
        ("/v1/engine", errno.EROFS, "broken", False),
    ):
        monkeypatch.setattr(service.view, "engine", lambda number=number: fail(number))
        monkeypatch.setattr("helicube.serve.plan_page.search", lambda *_, number=number: fail(number))
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, code)
        assert os.strerror(number) in answer.json()["error"]["message"]
        assert "Retry-After" in answer.headers
        assert service.store.disk.is_sound is sound


def test_a_search_for_a_plan_costs_as_much_as_an_object(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helicube.serve.plan_page.search", lambda *_: b"<p>plan</p>")
    client = start(limits={"objects_per_minute": 6.0})
    codes = [client.get("/plan", params={"context": context}).status_code for context in (1, 2, 2, 2, 3, 4, 2)]
    # Those that are kept cost nothing, nor do names that are unknown.
    assert codes == [200, 200, 200, 200, 200, 429, 200]
    assert client.get("/plan?model=nonsense").status_code == 422


def test_two_services_that_start_at_once_do_not_get_one_port() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} cannot be used"):
            bind("127.0.0.1", port)
        with bind("127.0.0.1", port, or_any=True) as second:
            assert second.getsockname()[1] != port
