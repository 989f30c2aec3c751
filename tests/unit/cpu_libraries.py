"""The native CPU kernels, compiled for several instruction sets."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

import pytest

from helicube.kernels.cpu.build import BuildError, build, cache_folder
from helicube.kernels.cpu.library import Library

# Flags of the compiler, by the name of a test: this machine's, and older ones that it can run all the same.
TARGETS = {"native": None, "avx2": ("-mavx2", "-mfma"), "baseline": ()}


@functools.cache
def library(target: str = "native") -> Library:
    """Skips the test where the machine cannot have it."""
    flags = TARGETS[target]
    if target == "avx2":
        info = Path("/proc/cpuinfo")
        if platform.machine() != "x86_64" or (info.is_file() and " avx2 " not in info.read_text()):
            pytest.skip("this CPU has no AVX2")
    try:
        return Library(build(cache_folder(), flags))
    except BuildError as error:
        pytest.skip(f"no CPU kernels here: {error}")
