"""The JSON route, and the Luau module run in a Lua with Roblox's services played by Python."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import lupa.lua51
import numpy as np
import pytest
from small import small_pipeline
from starlette.testclient import TestClient
from studio_start import Start

import helicube.serve.mesh_json
from helicube.engine.sampling import SamplingConfig
from helicube.geometry.mesh import Mesh
from helicube.pipelines.meshing import MeshOptions
from helicube.serve.mesh_json import encode_json

MODULE = Path(helicube.serve.mesh_json.__file__).with_name("Helicube.luau")
# What Roblox has and a plain Lua does not.
ROBLOX = """
local services = ...
game = { GetService = function(_, name) return services[name] end }
task = { wait = function(seconds) services.waited(seconds) end }
Vector3 = { new = function(x, y, z) return { x, y, z } end }
Color3 = { fromRGB = function(r, g, b) return { r, g, b } end }
Content = { fromObject = function(mesh) return { mesh = mesh } end }
"""


def small_mesh(**options: Any) -> Mesh:
    sampling = SamplingConfig(top_p=0.9)
    return small_pipeline().generate_many(["a chair"], [sampling], options=MeshOptions(**options))[0].mesh


def decoded(data: dict[str, Any]) -> Mesh:
    places = np.array(data["vertices"]).reshape(-1, 3) * data["step"] + data["origin"]
    return Mesh(
        vertices=places.astype(np.float32),
        faces=np.array(data["faces"], dtype=np.int32).reshape(-1, 3),
        vertex_normals=np.array(data["normals"], dtype=np.float32).reshape(-1, 3) / np.float32(127),
        vertex_colors=np.array([[c >> 16, c >> 8 & 255, c & 255] for c in data["colors"]], dtype=np.uint8),
    )


def test_json_gives_the_mesh_back() -> None:
    mesh = small_mesh(cells=64, size_m=3.0, pivot="center")
    data = encode_json(mesh)
    found = decoded(json.loads(data))
    assert np.array_equal(found.faces, mesh.faces)
    assert np.array_equal(found.vertex_colors, mesh.vertex_colors)  # type: ignore[arg-type]
    assert np.abs(found.vertices - mesh.vertices).max() <= 0.5001 * 3 / 65535
    assert mesh.vertex_normals is not None
    assert found.vertex_normals is not None
    assert np.abs(found.vertex_normals - mesh.vertex_normals).max() <= 0.5001 / 127
    # Compact: a fifth of what one float a number takes as text, and half of that zipped.
    assert len(data) < 50 * mesh.num_faces
    assert len(gzip.compress(data)) < 25 * mesh.num_faces


class Services:
    """HttpService over the test client, AssetService as a recorder."""

    def __init__(self, client: TestClient, lua: Any) -> None:
        self.client, self.lua = client, lua
        self.waits: list[float] = []
        self.vertices: list[list[float]] = []
        self.normals: list[list[float]] = []
        self.colors: list[list[float]] = []
        self.faces: list[tuple[int, int, int]] = []
        self.face_colors: dict[int, list[int]] = {}
        self.face_normals: dict[int, list[int]] = {}

    def table(self) -> Any:
        http = self.lua.table_from({
            "JSONEncode": lambda _, value: json.dumps(self.plain(value)),
            "JSONDecode": lambda _, text: self.lua.table_from(json.loads(text), recursive=True),
            "RequestAsync": lambda _, request: self.request(request),
        })  # fmt: skip
        assets = self.lua.table_from({
            "CreateEditableMesh": lambda _: self.mesh(),
            "CreateMeshPartAsync": lambda _, content: content,
        })  # fmt: skip
        return self.lua.table_from({"HttpService": http, "AssetService": assets, "waited": self.waits.append})

    def plain(self, value: Any) -> Any:
        """As HttpService encodes: a table with a first entry is a list."""
        if lupa.lua51.lua_type(value) != "table":
            return value
        found = {key: self.plain(item) for key, item in value.items()}
        return list(found.values()) if 1 in found else found

    def request(self, request: Any) -> Any:
        answer = self.client.request(
            request["Method"],
            request["Url"].removeprefix("http://here"),
            content=request["Body"],
            headers=dict(request["Headers"].items()),
        )
        return self.lua.table_from(
            {"Success": answer.is_success, "StatusCode": answer.status_code, "StatusMessage": answer.reason_phrase,
             "Body": answer.text, "Headers": dict(answer.headers)}, recursive=True,
        )  # fmt: skip

    def mesh(self) -> Any:
        def add(into: list[Any], value: Any) -> int:
            into.append(value)
            return len(into)

        return self.lua.table_from({
            "AddVertex": lambda _, p: add(self.vertices, list(p.values())),
            "AddNormal": lambda _, n: add(self.normals, list(n.values())),
            "AddColor": lambda _, c, alpha: add(self.colors, [*c.values(), alpha]),
            "AddTriangle": lambda _, a, b, c: add(self.faces, (a, b, c)),
            "SetFaceColors": lambda _, face, ids: self.face_colors.__setitem__(face, list(ids.values())),
            "SetFaceNormals": lambda _, face, ids: self.face_normals.__setitem__(face, list(ids.values())),
        })  # fmt: skip


@pytest.fixture
def roblox(start: Start) -> tuple[Any, Services]:
    lua = lupa.lua51.LuaRuntime()
    services = Services(start(), lua)
    lua.execute(ROBLOX, services.table())
    return lua.execute(MODULE.read_text()), services


def test_luau_module_makes_the_mesh_part(roblox: tuple[Any, Services]) -> None:
    module, made = roblox
    service = module.new("http://here/")
    options = made.lua.table_from({"size": 6, "maxTriangles": 1500, "quality": "draft", "seed": 0, "bestOf": 2})
    part, about = service.generate(service, "a chair", options)
    assert part["mesh"] is not None
    assert made.client.get("/v1/jobs").json()["jobs"][0]["request"]["best_of"] == 2
    mesh = small_mesh(cells=64, max_triangles=1500, size_m=6 * 0.28, pivot="center")
    assert about["num_triangles"] == mesh.num_faces == len(made.faces) <= 1500
    assert np.allclose(np.array(made.vertices), mesh.vertices / 0.28, atol=6 / 65535)
    assert np.array_equal(np.array(made.faces) - 1, mesh.faces)
    assert mesh.vertex_colors is not None
    assert mesh.vertex_normals is not None
    colors = np.array(made.colors)[:, :3]
    for face in (1, len(made.faces) // 2, len(made.faces)):
        corners = mesh.faces[face - 1]
        assert np.array_equal(colors[np.array(made.face_colors[face]) - 1], mesh.vertex_colors[corners])
        normals = np.array(made.normals)[np.array(made.face_normals[face]) - 1]
        assert np.allclose(normals, mesh.vertex_normals[corners], atol=0.005)
    assert len(made.colors) == len(np.unique(mesh.vertex_colors, axis=0))


def test_luau_module_says_what_is_wrong(roblox: tuple[Any, Services]) -> None:
    module, made = roblox
    service = module.new("http://here")
    with pytest.raises(lupa.lua51.LuaError, match="shorten it"):
        service.generate(service, "one two three four five six seven eight nine", None)
    huge = made.lua.table_from({"num_faces": 20_001, "num_vertices": 3})
    with pytest.raises(lupa.lua51.LuaError, match="too many"):
        service.editableMesh(service, huge)


def test_luau_module_outlives_a_broken_connection(roblox: tuple[Any, Services]) -> None:
    module, made = roblox
    service = module.new("http://here")
    real, broken, is_full = made.request, [2], [False]
    busy = {"Success": False, "StatusCode": 429, "StatusMessage": "", "Body": "", "Headers": {"retry-after": "3"}}

    def request(asked: Any) -> Any:
        assert "wait=" not in asked["Url"]
        if broken[0]:
            broken[0] -= 1
            raise ConnectionError("HttpError: ConnectFail")
        return made.lua.table_from(busy, recursive=True) if is_full[0] else real(asked)

    made.request = request  # type: ignore[method-assign, assignment]
    options = made.lua.table_from({"maxTriangles": 500, "quality": "draft"})
    assert service.generate(service, "a chair", options)[0]["mesh"] is not None
    broken[0] = 99
    with pytest.raises(lupa.lua51.LuaError, match=r"cannot be reached.*ConnectFail"):
        service.generate(service, "a chair", options)
    # No wait is begun that ends too late.
    made.waits.clear()
    with pytest.raises(lupa.lua51.LuaError, match=r"cannot be reached"):
        service.generate(service, "a chair", made.lua.table_from({"timeout": 1}))
    assert made.waits == []
    # What was wrong last is what is told.
    broken[0], is_full[0] = 1, True
    with pytest.raises(lupa.lua51.LuaError, match="stays busy"):
        service.generate(service, "a chair", options)
    assert made.waits == [2, 3, 3, 3]


def test_luau_module_waits_when_the_queue_is_full(start: Start) -> None:
    lua = lupa.lua51.LuaRuntime()
    client = start(step_s=0.2, slots=1, limits={"queue": 1}, grace_s=0.0)
    for seed in range(2):
        assert client.post("/v1/objects", json={"prompt": "a table", "seed": seed, "temperature": 1}).is_success
        while client.get("/v1/engine").json()["running"] == 0:
            time.sleep(0.01)
    services = Services(client, lua)
    lua.execute(ROBLOX, services.table())
    service = lua.execute(MODULE.read_text()).new("http://here")
    with pytest.raises(lupa.lua51.LuaError, match="stays busy"):
        service.generate(service, "a chair", None)
    # Between five tries.
    assert len(services.waits) == 4
    assert all(1 <= seconds <= 60 for seconds in services.waits)
