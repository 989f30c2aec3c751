"""A real process: killed, told to stop, asked twice for one folder; and the client that talks to it."""

from __future__ import annotations

import itertools
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trimesh
from small import small_pipeline

import helicube
from helicube.engine.sampling import SamplingConfig
from helicube.errors import DecodeError, DeviceError, InputError, PromptError
from helicube.pipelines.meshing import MeshOptions
from helicube.serve.store import Store

SERVER = Path(__file__).with_name("small_server.py")
SETTINGS = {"quality": "draft", "max_triangles": 2000}


class Process:
    """A server of the small model in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.command = [sys.executable, str(SERVER), str(folder), *arguments]
        self.start()

    def start(self) -> None:
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().strip()
        # Lines of its log; a pipe that nobody empties would stop it.
        self.said: list[str] = []
        self.reader = threading.Thread(target=self.said.extend, args=(self.child.stderr or (),), daemon=True)
        self.reader.start()

    def end(self, sig: signal.Signals) -> int:
        self.child.send_signal(sig)
        return self.child.wait(30)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "data", "0", "0.01", "2")
    yield process
    if process.child.poll() is None:
        process.child.kill()
        process.child.wait()


def health(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/healthz", timeout=10) as answer:
            return answer.status, json.load(answer)["status"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["status"]


def wait_until(check: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def expected(seed: int) -> bytes:
    sampling = SamplingConfig(temperature=1.0, top_p=0.9, seed=seed)
    options = MeshOptions(cells=64, max_triangles=2000)
    made = small_pipeline().generate_many(["a chair"], [sampling], options=options)[0]
    from helicube.geometry.export import encode

    return encode(made.mesh, "glb", name="a chair")[""]


def test_killed_under_load_nothing_accepted_is_lost_and_nothing_half_is_served(server: Process, tmp_path: Path) -> None:
    accepted = []
    for attempt in range(2):
        client = helicube.Client(server.url)
        seeds = range(4 * attempt, 4 * attempt + 4)
        accepted += [client.submit("a chair", seed=seed, temperature=1.0, **SETTINGS)["id"] for seed in seeds]
        time.sleep(0.2 + 0.3 * attempt)
        server.end(signal.SIGKILL)
        server.start()
    client = helicube.Client(server.url)
    jobs = [client.wait(job) for job in accepted]
    assert [job["status"] for job in jobs] == ["done"] * 8
    for job in (jobs[0], jobs[3], jobs[7]):
        made = job["objects"][0]
        assert client.file(made["id"]) == expected(made["seed"])
    assert len(list(client.objects())) == 8
    # Told to stop, it goes: the port is free, and no part of a file stays.
    assert server.end(signal.SIGTERM) in {0, -signal.SIGTERM}
    port = int(server.url.rstrip("/").rpartition(":")[2])
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
    files = sorted(path.name for path in (tmp_path / "data" / "objects").iterdir())
    assert len(files) == 8
    assert all(name.endswith(".npz") for name in files)


def test_told_to_stop_under_load_it_answers_until_the_batch_is_done(server: Process) -> None:
    client = helicube.Client(server.url, patience_s=0)
    running = client.submit("a chair", seed=1, temperature=1.0, **SETTINGS)["id"]
    waiting = [client.submit("a chair", seed=seed, temperature=1.0, **SETTINGS)["id"] for seed in range(2, 8)]
    wait_until(lambda: client.job(running)["status"] == "running")
    server.child.send_signal(signal.SIGTERM)
    wait_until(lambda: health(server.url) == (503, "stopping"))
    with pytest.raises(DeviceError, match="stopping"):
        client.submit("a lamp", **SETTINGS)
    assert server.child.wait(30) in {0, -signal.SIGTERM}
    server.start()
    client = helicube.Client(server.url)
    # What was in a slot was finished by the first process, before it went.
    assert client.job(running)["status"] == "done"
    assert [client.wait(job)["status"] for job in waiting] == ["done"] * 6


def test_told_twice_to_stop_it_goes_at_once(tmp_path: Path) -> None:
    server = Process(tmp_path / "data", "0", "0.5", "2")
    try:
        client = helicube.Client(server.url)
        job = client.submit("a chair", **SETTINGS)["id"]
        wait_until(lambda: client.job(job)["status"] == "running")
        # 40 steps of half a second, and ten seconds of grace.
        server.child.send_signal(signal.SIGTERM)
        wait_until(lambda: health(server.url) == (503, "stopping"))
        began = time.monotonic()
        assert server.end(signal.SIGTERM) != 1
        assert time.monotonic() - began < 6
    finally:
        server.child.kill()
        server.child.wait()


def test_half_open_connections_lock_nobody_out(tmp_path: Path) -> None:
    server = Process(tmp_path / "data", "0", "0", "2", "64", "4")
    address = ("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2]))
    try:
        # Room for 260; each of these says half of a request's head, and no more.
        half = [socket.create_connection(address) for _ in range(300)]
        for one in half:
            one.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert health(server.url) == (200, "ok")
        began = time.monotonic()
        half[-1].settimeout(30)
        assert half[-1].recv(100) == b""
        assert time.monotonic() - began < 20
        for one in half:
            one.close()
        # What is no HTTP is answered like everything else.
        with socket.create_connection(address) as strange:
            strange.sendall(b"nonsense\r\n\r\n")
            answer = b"".join(iter(lambda: strange.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"X-Content-Type-Options: nosniff" in answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_request"
        # Whose library wants more for an upgrade is not told about.
        upgrade = urllib.request.Request(f"{server.url}healthz", headers={"Upgrade": "websocket"})
        with urllib.request.urlopen(upgrade, timeout=10) as told:
            assert told.status == 200
    finally:
        server.child.kill()
        server.child.wait()
        server.reader.join(10)
    lines = [line.strip() for line in server.said]
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \S", line) for line in lines), lines
    assert re.fullmatch(r".* WARNING 127\.0\.0\.1:\d+ sent what is no HTTP", lines[-1])
    assert len([line for line in lines if "WARNING" in line]) == 1


def test_the_client_generates_saves_cancels_and_reports(server: Process, tmp_path: Path) -> None:
    client = helicube.Client(server.url + "/")
    path = tmp_path / "chair.obj"
    job = client.generate("a chair", path, seed=1, temperature=1.0, **SETTINGS)
    assert job["status"] == "done"
    loaded: Any = trimesh.load(path, force="mesh")
    assert len(loaded.faces) == job["objects"][0]["object"]["num_triangles"]
    assert path.read_text().splitlines().count(f"mtllib {job['objects'][0]['id']}.mtl") == 1
    client.generate(["a chair", "a lamp"], tmp_path / "many", **SETTINGS)
    assert len(list((tmp_path / "many").glob("*.glb"))) == 2
    names = [name for name, _ in client.events(client.submit("a table", **SETTINGS)["id"])]
    assert names[0] == "job"
    assert "preview" in names
    assert names[-1] == "end"
    slow = client.submit("a bed", variants=8, **SETTINGS)
    client.cancel(slow["id"])
    assert client.job(slow["id"])["status"] == "cancelled"
    with pytest.raises(PromptError, match="shorten"):
        client.generate("one two three four five six seven eight nine")
    with pytest.raises(InputError, match="variants"):
        client.submit("a chair", variants=100)
    with pytest.raises(InputError, match="no job"):
        client.job("0" * 32)
    with pytest.raises(DeviceError, match="helicube serve"):
        helicube.Client("http://127.0.0.1:9", patience_s=0).objects().__next__()
    with pytest.raises(InputError, match="address"):
        helicube.Client("ftp://x")
    assert issubclass(DecodeError, helicube.HelicubeError)


def test_one_folder_serves_one_process(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000)
    with pytest.raises(InputError, match="another helicube serves from this folder"):
        Store(tmp_path, 1000)
    store.close()
    Store(tmp_path, 1000).close()
    (tmp_path / "jobs.sqlite3").write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match="data-dir"):
        Store(tmp_path, 1000)


def test_the_command_refuses_what_is_unsafe_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "helicube", "serve", "--data-dir", str(tmp_path / "d")]
    for arguments, words in (
        (["--host", "0.0.0.0"], "HELICUBE_API_KEY"),
        (["--api-key", "short"], "16 or more"),
        (["--api-key-file", str(tmp_path / "none")], "cannot be read"),
        (["--queue", "0"], "queue"),
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "d").exists()


def test_without_the_extra_the_command_says_what_to_install_and_the_client_works(tmp_path: Path) -> None:
    hide = "import sys; [sys.modules.__setitem__(n, None) for n in ('fastapi', 'uvicorn', 'starlette', 'pydantic')]"
    argv = ["helicube", "serve", "--data-dir", str(tmp_path)]
    code = f"{hide}; sys.argv = {argv}; from helicube.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("pip install 'helicube[serve]'")
    assert "Traceback" not in done.stderr
    subprocess.run([sys.executable, "-c", f"{hide}; import helicube; helicube.Client()"], check=True, timeout=60)


def replies(*answers: bytes) -> str:
    """The address of a server that gives these answers, one to each connection, and the last of them for ever."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        for data in itertools.chain(answers, itertools.repeat(answers[-1])):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(data)

    threading.Thread(target=answer, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def page_of(body: str, head: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def test_the_client_waits_for_no_one_for_ever() -> None:
    # Proxies write the header as a date.
    busy = page_of("{}", "503 Busy\r\nRetry-After: Fri, 31 Dec 2027 23:59:59 GMT")
    with pytest.raises(DeviceError, match="503"):
        helicube.Client(replies(busy), patience_s=1).job("x")
    with pytest.raises(DeviceError, match="tells nothing"):
        list(helicube.Client(replies(page_of("")), patience_s=1).events("x"))


def test_the_client_keeps_what_was_made_and_refuses_a_bad_name_before_asking(tmp_path: Path) -> None:
    client = helicube.Client("http://127.0.0.1:9", patience_s=0)
    for path, settings in (("chair.exe", {}), ("chair.glb", {"variants": 2})):
        with pytest.raises(InputError, match="folder"):
            client.generate("a chair", tmp_path / path, **settings)
    with pytest.raises(InputError, match="folder"):
        client.generate(["a chair", "a lamp"], tmp_path / "both.glb")
    objects = [{"id": "a", "prompt": "a chair", "status": "done", "error": None},
               {"id": "b", "prompt": "a lamp", "status": "failed", "error": {"message": "no surface"}}]  # fmt: skip
    job = json.dumps({"id": "j", "ended_at": 1, "objects": objects, "request": {"format": "stl"}})
    client = helicube.Client(replies(page_of(job), page_of("solid")))
    with pytest.raises(DecodeError, match=r"no surface.*1 of 2"):
        client.generate(["a chair", "a lamp"], tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a.stl"]


def test_answers_that_break_off_are_asked_for_again_or_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n"
        answers = [b"", head + b"{", b"nonsense\r\n\r\n", head + b'{"id": "x"}', head + b"{"]

        def answer() -> None:
            for data in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(data)

        threading.Thread(target=answer, daemon=True).start()
        client = helicube.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", patience_s=30)
        assert client.job("x") == {"id": "x"}
        with pytest.raises(DeviceError, match="broke off"):
            client.submit("a chair")


def test_the_key_goes_to_its_service_alone() -> None:
    heard: list[bytes] = []

    def answers(head: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, listener:
                heard.append(connection.recv(65536))
                connection.sendall(head + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")

        threading.Thread(target=answer, daemon=True).start()
        return int(listener.getsockname()[1])

    elsewhere = answers(b"HTTP/1.1 200 OK\r\n")
    port = answers(b"HTTP/1.1 302 Found\r\nLocation: http://localhost:%d/x\r\n" % elsewhere)
    assert helicube.Client(f"http://127.0.0.1:{port}", "a key of sixteen", patience_s=0).job("x") == {}
    assert ["Bearer a key of sixteen" in said.decode() for said in heard] == [True, False]
