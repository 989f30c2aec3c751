"""A real process: killed, told to stop, asked twice for one folder; and the client that talks to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trimesh
from small import small_pipeline

import helicube
from helicube.engine.sampling import SamplingConfig
from helicube.errors import DecodeError, DeviceError, InputError, PromptError
from helicube.pipelines.text_to_shape import MeshOptions
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
    # Told to stop, it goes: no process is left, the port is free, and no part of a file stays.
    assert server.end(signal.SIGTERM) in {0, -signal.SIGTERM}
    files = sorted(path.name for path in (tmp_path / "data" / "objects").iterdir())
    assert len(files) == 8
    assert all(name.endswith(".npz") for name in files)
    with pytest.raises(ProcessLookupError):
        os.kill(server.child.pid, 0)


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
