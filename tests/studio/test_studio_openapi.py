"""Whatever the description allows is answered as described; whatever it forbids is refused as described."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient
from studio_start import Start

Case = Any  # schemathesis.Case, whose parameters say nothing here
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
          response_headers_conformance, negative_data_rejection]  # fmt: skip
EXAMPLES = 8


def send(client: TestClient, case: Case) -> Any:
    """Call over ASGI, within the one life of the app."""
    asked = case.as_transport_kwargs(base_url="http://127.0.0.1")
    if "data" in asked:
        asked["content"] = asked.pop("data")
    return client.request(**{
        name: asked[name] for name in ("method", "url", "headers", "params", "json", "content") if name in asked
    })  # fmt: skip


def aim(case: Case, known: dict[str, Any]) -> None:
    """Point some of the cases at what exists, and keep meshes and searches small."""
    if case.method in {"GET", "DELETE"} and len(str(case.path_parameters)) % 2:
        case.path_parameters.update({name: known[name] for name in known if name in case.path_parameters})
    if isinstance(case.body, dict) and case.body.get("quality", "standard") in {"standard", "fine"}:
        case.body["quality"] = "draft"
    if case.path == "/plan" and isinstance(case.query.get("max_gpus", 64), int):
        case.query |= {"max_gpus": min(4, case.query.get("max_gpus", 4)), "gpu": "h200", "model": "llama-3.1-8b"}


def probe(client: TestClient, operation: Any, mode: GenerationMode, known: dict[str, Any]) -> set[int]:
    """The statuses that a route answers to random requests, each checked against the description."""
    statuses = set()

    @seed(1)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Case) -> None:
        aim(case, known)
        answer = send(client, case)
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    has_input = operation.body or operation.path_parameters or operation.query
    if mode is GenerationMode.POSITIVE or has_input:
        check()
    return statuses


def test_answers_are_as_described(start: Start) -> None:
    client = start(limits={"queue": 8, "wait_s": 1.0})
    job = client.post("/v1/objects?wait=true", json={"prompt": "a chair", "quality": "draft"}).json()
    known = {"job": job["id"], "object_id": job["objects"][0]["id"], "place": 0, "level": 0}
    # The object is done, and small: whether a preview came in time is chance.
    client.service.previews.put((known["object_id"], 0), b"glTF")  # type: ignore[attr-defined]
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    seen: dict[str, set[int]] = {}
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    # What is known is deleted last.
    for operation in sorted(operations, key=lambda operation: operation.method.upper() == "DELETE"):
        seen[operation.label] = set()
        for mode in GenerationMode:
            seen[operation.label] |= probe(client, operation, mode, known)
    assert len(seen) >= 18
    reached = {label: min(statuses) for label, statuses in seen.items() if statuses}
    # Signing in needs a key, which random requests do not have.
    assert {label for label, status in reached.items() if status >= 300} == {"POST /v1/session"}, reached
    assert client.get("/healthz").json() == {"status": "ok"}


def test_examples_in_the_description_work(start: Start) -> None:
    client = start()
    described = client.get("/openapi.json").json()
    examples = described["components"]["schemas"]["ObjectRequest"]["examples"]
    assert len(examples) >= 2
    for example in examples:
        answer = client.post("/v1/objects", json={**example, "quality": "draft"})
        assert answer.status_code in {200, 202}
        client.delete(f"/v1/jobs/{answer.json()['id']}")
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            assert route["summary"], (path, method)
