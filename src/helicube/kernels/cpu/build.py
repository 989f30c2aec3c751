"""Compile the native kernels once per machine, with whatever C++ compiler is there."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["BuildError", "build", "cache_folder", "source_hash"]

NATIVE = Path(__file__).resolve().parent / "native"
# No -ffast-math: NaN must reach the caller, and each sum has one order. Products and sums are fused where the source
# says so and nowhere else: rounding to int8 adds a number, which would swallow the rounding of the product before it.
FLAGS = (
    "-std=c++17",
    "-O3",
    "-shared",
    "-fPIC",
    "-pthread",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
)
# The first that the compiler takes: x86, then Arm, then any.
TARGETS = (("-march=native",), ("-mcpu=native",), ())
TIMEOUT_S = 300
# How long a failure is believed: a full disk passes, and a compiler gets repaired.
FAILURE_KEPT_S = 24 * 3600
# Libraries that stay: of other CPUs that share the folder, and of other versions.
KEPT = 16

log = logging.getLogger("helicube.kernels")


class BuildError(Exception):
    """No library could be made; the message is the reason. Never reaches a user: the plain path takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A C++ compiler that runs here."""

    path: str
    version: str


def build(folder: Path, flags: Sequence[str] | None = None) -> Path:
    """The library in `folder`, compiled unless it is there already.

    Args:
        flags: instead of the flags for this machine's CPU.

    Raises:
        BuildError: there is no compiler and never was, it failed within the last day, or the folder cannot be used.
    """
    try:
        return _build(folder, flags)
    except OSError as error:
        raise BuildError(f"{folder} cannot be used ({error.strerror or error})") from None


def _build(folder: Path, flags: Sequence[str] | None) -> Path:
    if sys.platform == "win32":
        raise BuildError("the kernels are built with GCC or Clang, not on Windows")
    targets = TARGETS if flags is None else (tuple(flags),)
    # What decides whether a library is right for this machine, and who made it.
    machine = _key(source_hash(), FLAGS, targets, cpu_identity())
    try:
        compiler = find_compiler()
    except BuildError:
        # One that was built before the compiler went, as in an image that is made in two stages, is as good.
        if made := _newest(folder, machine):
            return made
        raise
    name = f"cpu-{machine}-{_key(compiler)}"
    library, failure = folder / f"{name}.so", folder / f"{name}.failed"
    with _locked(folder / f"{name}.lock"):
        if _is_whole(library):
            return library
        if failure.is_file() and time.time() - failure.stat().st_mtime < FAILURE_KEPT_S:
            raise BuildError(failure.read_text(encoding="utf-8"))
        log.warning("helicube: compiling CPU kernels with %s; this takes seconds, once", compiler.path)
        try:
            _compile_any(compiler, library, targets)
        except BuildError as error:
            # Not again at each start.
            failure.write_text(str(error), encoding="utf-8")
            raise
        _seal(library).write_text(_digest(library), encoding="ascii")
        _prune(folder)
    return library


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _newest(folder: Path, machine: str) -> Path | None:
    """The last whole library for this machine, whichever compiler made it."""
    found = sorted(folder.glob(f"cpu-{machine}-*.so"), key=lambda path: path.stat().st_mtime)
    return next((path for path in reversed(found) if _is_whole(path)), None)


def _seal(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _digest(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


def _is_whole(library: Path) -> bool:
    """Whether a library is as it was built: loading one that was cut off ends the process."""
    try:
        return _seal(library).read_text(encoding="ascii") == _digest(library)
    except OSError:
        return False


def _prune(folder: Path) -> None:
    """Forget libraries of older versions; processes that use one keep it."""
    try:
        found = sorted(folder.glob("cpu-*.so"), key=lambda path: path.stat().st_mtime)
        for path in found[:-KEPT]:
            path.unlink(missing_ok=True)
            _seal(path).unlink(missing_ok=True)
    except OSError:
        # Another process is at it.
        return


def find_compiler() -> Compiler:
    """$CXX, or the first of the usual names.

    Raises:
        BuildError: none runs.
    """
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        path = shutil.which(name)
        if path is None:
            continue
        try:
            told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        return Compiler(path=path, version=told.stdout)
    raise BuildError("there is no C++ compiler (c++, g++ or clang++) on the PATH")


def cache_folder() -> Path:
    """Where libraries are kept, created; private to the user, because its content is executed.

    Raises:
        BuildError: it belongs to someone else, others may write to it, or it cannot be written.
    """
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise BuildError("there is no home folder; set XDG_CACHE_HOME") from None
    folder = Path(base) / "helicube" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = folder.stat()
    except OSError as error:
        raise BuildError(f"{folder} cannot be created ({error.strerror}); set XDG_CACHE_HOME") from None
    foreign = hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022)
    if foreign or not os.access(folder, os.W_OK):
        raise BuildError(f"{folder} is not writable by its user alone; chmod 700 it, or set XDG_CACHE_HOME")
    return folder


def source_hash() -> str:
    """Hash of the sources."""
    digest = hashlib.sha256()
    for path in sorted(NATIVE.iterdir()):
        if path.suffix in {".cpp", ".h"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def cpu_identity() -> str:
    """What decides which instructions this CPU has: a cache on a network drive serves several machines."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.is_file() else []
    told = {line for line in lines if line.split(":")[0].strip() in {"flags", "Features", "CPU part"}}
    return repr((platform.machine(), platform.processor(), sorted(told)))


def _compile_any(compiler: Compiler, library: Path, targets: Sequence[Sequence[str]]) -> None:
    reasons = []
    for target in targets:
        reason = _compile(compiler, library, target)
        if reason is None:
            return
        reasons.append(reason)
    raise BuildError(f"{compiler.path} failed: {reasons[0]}")


def _compile(compiler: Compiler, library: Path, target: Sequence[str]) -> str | None:
    """None, or why it failed."""
    # The library appears whole or not at all.
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as scratch:
        partial = Path(scratch) / library.name
        source = f'-DHK_SOURCE="{source_hash()}"'
        command = [compiler.path, *FLAGS, *target, source, "-o", str(partial), str(NATIVE / "api.cpp")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        if done.returncode == 0:
            partial.replace(library)
            return None
        errors = [line for line in done.stderr.splitlines() if "error" in line] or [f"exit status {done.returncode}"]
        return errors[0]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Of several processes that start together, one compiles and the others wait."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
