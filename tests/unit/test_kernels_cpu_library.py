"""Building the kernels once, and the threads that run them."""

from __future__ import annotations

import concurrent.futures
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cpu_libraries import library

from helicube.kernels.cpu import build as building
from helicube.kernels.cpu import products
from helicube.kernels.cpu.build import BuildError, build, cache_folder, source_hash
from helicube.kernels.cpu.library import Library, describe, load
from helicube.kernels.cpu.matrix import PackedMatrix, pack


@pytest.fixture
def fresh() -> Iterator[None]:
    """`load` forgets what it found, before and after."""
    load.cache_clear()
    yield
    load.cache_clear()


def square(lib: Library) -> PackedMatrix:
    weight = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
    return pack(lib, weight, format="float32", num_inputs=512)


def fake_compiler(folder: Path, body: str) -> str:
    path = folder / "fake-cxx"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo fake 1.0; exit 0; fi\n{body}\n')
    path.chmod(0o755)
    return str(path)


def test_the_library_of_this_machine(fresh: None) -> None:
    lib = library()
    loaded = load()
    assert loaded is not None
    assert loaded.lanes == lib.lanes
    assert str(loaded.path) in describe()
    assert load() is loaded


def test_the_switch(fresh: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("HELICUBE_KERNELS", "0")
    assert load() is None
    assert describe() == "plain PyTorch"
    assert not caplog.records


def test_a_library_that_is_named(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELICUBE_KERNELS", str(library("baseline").path))
    found = load()
    assert found is not None
    assert found.lanes == 4


def test_no_compiler_is_one_notice_and_the_plain_path(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with caplog.at_level(logging.WARNING):
        assert load() is None
        assert load() is None
    assert len(caplog.records) == 1
    assert "no C++ compiler" in caplog.text


def test_a_compiler_that_fails_is_tried_once(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(
        "CXX", fake_compiler(tmp_path, f'echo run >> {tmp_path}/runs; echo "x.cpp: error: no" >&2; exit 1')
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert load() is None
    assert "x.cpp: error: no" in caplog.text
    tries = (tmp_path / "runs").read_text().count("run")
    load.cache_clear()
    assert load() is None
    assert (tmp_path / "runs").read_text().count("run") == tries == len(building.TARGETS)
    # A day later it may have passed.
    (failure,) = (tmp_path / "cache").rglob("*.failed")
    os.utime(failure, (0, 0))
    load.cache_clear()
    assert load() is None
    assert (tmp_path / "runs").read_text().count("run") == 2 * tries
    assert not list((tmp_path / "cache").rglob("*.so"))
    assert not list((tmp_path / "cache").rglob("build-*"))


def test_several_processes_compile_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = library().path
    body = f'echo run >> {tmp_path}/runs; sleep 0.3; while [ "$1" != -o ]; do shift; done; cp {real} "$2"'
    monkeypatch.setenv("CXX", fake_compiler(tmp_path, body))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: build(tmp_path), range(4)))
    assert len(set(paths)) == 1
    assert (tmp_path / "runs").read_text() == "run\n"
    assert Library(paths[0]).lanes == library().lanes


def test_flags_and_sources_have_libraries_of_their_own() -> None:
    assert library().path != library("baseline").path
    assert len(source_hash()) == 20


def test_what_is_not_our_library_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a library")
    with pytest.raises(BuildError, match=r"broken\.so"):
        Library(broken)


def test_a_damaged_library_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Loading one that was cut off would end the process."""
    copy = fake_compiler(tmp_path, f'while [ "$1" != -o ]; do shift; done; cp {library().path} "$2"')
    monkeypatch.setenv("CXX", copy)
    path = build(tmp_path)
    whole = path.read_bytes()
    assert Library(path).lanes == library().lanes
    before = path.stat().st_mtime_ns
    assert build(tmp_path).stat().st_mtime_ns == before
    path.write_bytes(whole[:5000])
    assert build(tmp_path).read_bytes() == whole
    path.with_suffix(".sha256").unlink()
    assert build(tmp_path).read_bytes() == whole


def test_without_a_compiler_what_one_has_built_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copy = fake_compiler(tmp_path, f'while [ "$1" != -o ]; do shift; done; cp {library().path} "$2"')
    monkeypatch.setenv("CXX", copy)
    path = build(tmp_path)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert build(tmp_path) == path
    with pytest.raises(building.BuildError, match=r"no C\+\+ compiler"):
        build(tmp_path, ["-O1"])
    # One that was cut off is none.
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(building.BuildError, match=r"no C\+\+ compiler"):
        build(tmp_path)


def test_old_libraries_are_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", fake_compiler(tmp_path, 'while [ "$1" != -o ]; do shift; done; echo new > "$2"'))
    for i in range(40):
        old = tmp_path / f"cpu-{i}.so"
        old.write_bytes(b"old")
        os.utime(old, (i, i))
    new = build(tmp_path)
    left = {path.name for path in tmp_path.glob("*.so")}
    assert left == {new.name} | {f"cpu-{i}.so" for i in range(40 - building.KEPT + 1, 40)}


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="XDG_CACHE_HOME"):
        cache_folder()


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_cache_that_others_may_write_is_refused(mode: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache_folder()
    folder.chmod(mode)
    with pytest.raises(BuildError, match="not writable by its user alone; chmod 700 it"):
        cache_folder()
    folder.chmod(0o755)
    assert cache_folder() == folder


def test_what_the_system_refuses_is_the_plain_path(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BuildError, match="cannot be used"):
        build(tmp_path / "gone")

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(BuildError, match="no home folder; set XDG_CACHE_HOME"):
        cache_folder()

    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(building, "find_compiler", full)
    assert load() is None
    assert "No space left on device" in caplog.text


def test_phases_of_many_threads_end() -> None:
    lib = library()
    for threads in (1, 2, 3, 8):
        for _ in range(50):
            lib.phases(20, threads)


def test_idle_threads_sleep() -> None:
    lib = library()
    lib.phases(1000, 4)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.4)
    assert time.process_time() - before < 0.1


def test_calls_from_several_threads_at_once() -> None:
    lib = library()
    matrix, x = square(lib), torch.randn(64, 2, 512, generator=torch.Generator().manual_seed(1))
    want = [products.linear(lib, row, matrix) for row in x]
    wrong: list[int] = []

    def run(start: int) -> None:
        for turn in range(100):
            i = (start + turn) % len(x)
            if not torch.equal(products.linear(lib, x[i], matrix), want[i]):
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(16 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import os, sys, torch
from helicube.kernels.cpu import products
from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import pack
from pathlib import Path
torch.set_num_threads(2)
library = Library(Path(sys.argv[1]))
matrix = pack(library, torch.ones(2048, 1024), format="float32", num_inputs=1024)
x = torch.ones(2, 1024)
assert products.linear(library, x, matrix)[0, 0] == 1024
for _ in range(5):
    child = os.fork()
    if child == 0:
        good = bool((products.linear(library, x, matrix) == 1024).all())
        os._exit(0 if good else 3)
    assert bool((products.linear(library, x, matrix) == 1024).all())
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(library().path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
