"""Block sizes of the few-row products: one pure function, so that a sweep on a GPU changes a table and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from helicube.kernels.triton.weight import KernelWeight

__all__ = ["MAX_PROGRAMS", "Tile", "launch_options", "tile_for"]

TYPES = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}

# Three programs on each of the 132 multiprocessors of an H100 or H200 run at once; more would start a second wave.
MAX_PROGRAMS = 3 * 132
# Registers per thread with which three programs of 128 threads fit the 65,536 of a multiprocessor.
MAX_REGISTERS = 168


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Launch shape of a few-row product."""

    # Rows of the matrix per program.
    block_n: int
    # Inputs per turn of the loop; for int4 a multiple of the group.
    block_k: int
    num_warps: int = 4
    # Turns in flight at once.
    num_stages: int = 4


def tile_for(weight: KernelWeight) -> Tile:
    """Block sizes by shape and format, never by the number of rows: a row's sum keeps its order in any batch."""
    block_n = 8
    while -(-weight.num_outputs // block_n) > MAX_PROGRAMS:
        block_n *= 2
    # Turns of 4 to 8 KiB of weights, two or three of which are in flight in each program: latency × bandwidth is about
    # 26 KiB per multiprocessor of an H200. The rows' own tile shares the memory and must leave room for three programs.
    bits = 4 if weight.format == "int4" else 8 * weight.data.element_size()
    block_k = 8192 // block_n if weight.format == "int4" else min(256, 8 * 8192 // (bits * block_n))
    if block_n == 8:
        block_k = 512
    # Tensor cores take 16 inputs at least; int4 hands them an eighth of a turn at a time.
    least = 128 if weight.format == "int4" else 16
    block_k = max(least, min(block_k, 1 << (weight.num_inputs - 1).bit_length()))
    return Tile(block_n=block_n, block_k=block_k)


def launch_options(x_RK: Tensor, weight: KernelWeight, norm_eps: float | None, tile: Tile | None) -> dict[str, Any]:
    """What every few-row product is compiled for."""
    num_rows, num_inputs = x_RK.shape
    tile = tile or tile_for(weight)
    # 16 rows are the least that tensor cores take. More of them leave memory for a turn less.
    block_r, num_stages = (16, tile.num_stages) if num_rows <= 16 else (32, max(2, tile.num_stages - 1))
    return {
        "K": num_inputs,
        "KW": weight.num_inputs,
        "FORMAT": weight.format,
        "GROUP": weight.group,
        "NORM": norm_eps is not None,
        # Quantised values become the type of x.
        "COMPUTE": TYPES[weight.data.dtype if weight.format == "dense" else x_RK.dtype],
        "BLOCK_R": block_r,
        "BLOCK_N": tile.block_n,
        "BLOCK_K": tile.block_k,
        # Channels per block of the norm's moments; 512 would spill registers with 32 rows.
        "BLOCK_C": min(256, 1 << (num_inputs - 1).bit_length()),
        "num_warps": tile.num_warps,
        "num_stages": num_stages,
        "maxnreg": MAX_REGISTERS,
    }
