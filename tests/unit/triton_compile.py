"""Compile the kernels of a cube-v0.5 step for a compute capability (90, say) and print what became of each, as JSON.

Runs without a GPU: launches are turned into compilations, with the wrappers' own arguments.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.attention import CachedKeys, attend
from helicube.kernels.triton.linear import linear
from helicube.kernels.triton.query_key import rotate_and_store
from helicube.kernels.triton.sampling import sample_ids
from helicube.kernels.triton.swiglu import swiglu
from helicube.kernels.triton.weight import KernelWeight

BF16, I32 = torch.bfloat16, torch.int32
ROWS, WIDTH, HIDDEN, HEADS, SIZE, PREFIX, TOKENS = 2, 1536, 6144, 12, 128, 78, 1024


CAPABILITY = int(sys.argv[1])


class NoDevice:
    """As much of a driver as a compilation asks for."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", CAPABILITY, 32)


compiled: list[dict[str, Any]] = []
compile_only = JITFunction.run


def run(kernel: Any, *args: Any, grid: tuple[int, ...], warmup: bool, **kwargs: Any) -> None:
    done = compile_only(kernel, *args, grid=grid, warmup=True, **kwargs)
    ptx = done.asm["ptx"]
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(done.asm["cubin"])
        told = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    registers, stack = (int(re.search(rf"{key}:(\d+)", told)[1]) for key in ("REG", "STACK"))  # type: ignore[index]
    compiled.append(
        {
            "name": kernel.__name__,
            "programs": grid[0] * (grid[1] if len(grid) > 1 else 1) * (grid[2] if len(grid) > 2 else 1),
            "threads": 32 * done.metadata.num_warps,
            "registers": registers,
            "local_bytes": stack,
            "shared_bytes": done.metadata.shared + 1024,
            "wide_copies": len(re.findall(r"cp\.async\.cg.*0x10", ptx)),
            "tensor_products": len(re.findall(r"mma\.sync", ptx)),
            "fast_logarithms": len(re.findall(r"lg2\.approx", ptx)),
        }
    )


def weight(name: str, n: int, k: int) -> KernelWeight:
    if name == "int8":
        return KernelWeight(data=torch.zeros(n, k, dtype=torch.int8), format="int8", scale=torch.zeros(n))
    if name == "fp8":
        return KernelWeight(data=torch.zeros(n, k, dtype=torch.float8_e4m3fn), format="fp8", scale=torch.zeros(n))
    if name == "int4":
        scale = torch.zeros(n, k // 64, dtype=BF16)
        return KernelWeight(data=torch.zeros(n, k // 8, dtype=I32), format="int4", scale=scale)
    return KernelWeight(data=torch.zeros(n, k, dtype=BF16))


def products() -> None:
    x, residual = torch.zeros(ROWS, WIDTH, dtype=BF16), torch.zeros(ROWS, WIDTH, dtype=BF16)
    bias = torch.zeros(3 * WIDTH, dtype=BF16)
    linear(x, weight("int8", 3 * WIDTH, WIDTH), bias_N=bias, norm_eps=1e-6)
    if CAPABILITY == 90:
        linear(x, weight("int4", WIDTH, WIDTH), residual_RN=residual, out=residual)
        linear(torch.zeros(ROWS, HIDDEN, dtype=BF16), weight("fp8", WIDTH, HIDDEN), residual_RN=x, out=x)
    swiglu(x, weight("dense", 2 * HIDDEN, WIDTH), bias=torch.zeros(2 * HIDDEN, dtype=BF16), norm_eps=1e-6)


def attention() -> None:
    keys, values = (torch.zeros(ROWS, HEADS, PREFIX + TOKENS, SIZE, dtype=BF16) for _ in range(2))
    place = torch.zeros(ROWS, dtype=I32)
    q = rotate_and_store(
        torch.zeros(ROWS, 3 * WIDTH, dtype=BF16), torch.zeros(TOKENS, SIZE // 2, 2), place, keys, values,
        num_heads=HEADS, norm=(torch.zeros(SIZE, dtype=BF16), torch.zeros(SIZE, dtype=BF16)), prefix_slots=PREFIX,
    )  # fmt: skip
    attend(q, CachedKeys(keys=keys, values=values, lengths=place, prefix_slots=PREFIX))


def sampling() -> None:
    state = SamplingState.empty(1, 2, TOKENS, [(0, 512)])
    # Narrower than the model's 16,384 ids, which take eighteen seconds.
    sample_ids(torch.zeros(2, 512), state, max_width=512)


if __name__ == "__main__":
    triton.runtime.driver.set_active(NoDevice())
    JITFunction.run = run
    products()
    attention()
    if CAPABILITY == 90:
        sampling()
    json.dump(compiled, sys.stdout)
