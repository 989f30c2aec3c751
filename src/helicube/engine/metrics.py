"""The distance to the hardware: bytes that a step has to read, and how fast this machine reads."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain

import torch
from torch import nn

from helicube.nn.cache import CacheSpec
from helicube.nn.linear import QuantizedLinear

MAX_SLOTS = 64
CACHE_BYTES = 4 << 30

__all__ = ["cache_bytes", "module_bytes", "probe_bandwidth", "slots_that_fit"]


def module_bytes(modules: Iterable[nn.Module]) -> int:
    """Bytes of all parameters and buffers, each storage counted once."""
    unique: dict[int, int] = {}
    for module in chain.from_iterable(m.modules() for m in modules):
        if isinstance(module, QuantizedLinear):
            unique[id(module)] = module.num_bytes
            continue
        for t in chain(module.parameters(recurse=False), module.buffers(recurse=False)):
            unique[t.data_ptr()] = t.numel() * t.element_size()
    return sum(unique.values())


def cache_bytes(spec: CacheSpec, rows: int, num_tokens: int, itemsize: int) -> int:
    """Bytes of keys and values that a step reads when each row holds `num_tokens` tokens."""
    slots = sum(2 * s.num_heads * s.head_dim * (s.num_prefix + num_tokens) for s in spec.layers)
    return rows * slots * itemsize


def slots_that_fit(spec: CacheSpec, copies: int, itemsize: int) -> int:
    """Objects to decode side by side: as many as pay, and fewer where their cache would take gigabytes."""
    return max(1, min(MAX_SLOTS, CACHE_BYTES // cache_bytes(spec, copies, spec.max_tokens, itemsize)))


def probe_bandwidth(device: torch.device | str = "cpu", *, mebibytes: int = 512, repeats: int = 5) -> float:
    """Best of a few readings of a buffer far larger than the caches, bytes per second.

    On a CPU the sum of a tensor reads each byte once; on a GPU a copy reads and writes it.
    """
    on_gpu = torch.device(device).type == "cuda"
    source = torch.ones(mebibytes << 18, dtype=torch.float32, device=device)
    target = torch.empty_like(source) if on_gpu else None
    best = float("inf")
    for _ in range(repeats + 1):
        if on_gpu:
            torch.cuda.synchronize(device)
        started = time.perf_counter()
        if target is not None:
            target.copy_(source)
            torch.cuda.synchronize(device)
        else:
            source.sum()
        best = min(best, time.perf_counter() - started)
    return (2 if on_gpu else 1) * source.numel() * 4 / best
