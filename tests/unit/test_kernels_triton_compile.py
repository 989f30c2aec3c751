"""The kernels compile for an A100 and an H200 without one: what the interpreter takes, the compiler may refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import triton_cases  # noqa: F401 - skips without triton

SCRIPT = Path(__file__).with_name("triton_compile.py")


@pytest.mark.skipif(sys.platform != "linux", reason="triton is for Linux")
@pytest.mark.parametrize("capability", [80, 90])
def test_kernels_of_a_step_compile(capability: int, tmp_path: Path) -> None:
    # In a process of its own: here the kernels belong to the interpreter.
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(capability)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    kernels = json.loads(done.stdout)
    names = {"_linear_kernel", "_swiglu_kernel", "_rotate_and_store_kernel", "_attend_kernel", "_merge_kernel"}
    # One format of each product, and no arithmetic that an H200 does not share, is enough for the older one.
    assert {k["name"] for k in kernels} == names | ({"_sample_kernel"} if capability == 90 else set())
    for k in kernels:
        assert k["local_bytes"] == 0, f"{k['name']} spills registers: {k}"
        resident = min(65536 // (k["registers"] * k["threads"]), 227 * 1024 // max(1, k["shared_bytes"]))
        if k["name"] in {"_linear_kernel", "_swiglu_kernel"}:
            # Memory-bound: one wave on an H200, 16 bytes per copy, tensor cores.
            assert capability != 90 or k["programs"] <= 132 * resident, f"a second wave: {k}"
            assert k["wide_copies"] > 0, k
            assert k["tensor_products"] > 0, k
        if k["name"] == "_sample_kernel":
            # The fast logarithm is wrong near 1, where the largest noise comes from.
            assert k["fast_logarithms"] == 0, k
