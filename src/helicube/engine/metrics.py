"""The distance to the hardware: bytes that a step has to read, and how fast this machine reads."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path

import torch

from helicube.kernels.cpu.library import load
from helicube.nn.cache import CacheSpec

# Objects side by side where nobody says how many.
PAYING_SLOTS = 64
CACHE_BYTES = 4 << 30

__all__ = [
    "BandwidthProbe",
    "cache_bytes",
    "held_bytes",
    "peak_bytes",
    "probe_bandwidth",
    "resident_bytes",
    "slots_that_fit",
]


def cache_bytes(spec: CacheSpec, rows: int, num_tokens: int, itemsize: int) -> int:
    """Bytes of keys and values that a step reads when each row holds `num_tokens` tokens."""
    slots = sum(2 * s.num_heads * s.head_dim * (s.num_prefix + num_tokens) for s in spec.layers)
    return rows * slots * itemsize


def slots_that_fit(spec: CacheSpec, copies: int, itemsize: int) -> int:
    """Objects to decode side by side: as many as pay, and fewer where their cache would take gigabytes."""
    return max(1, min(PAYING_SLOTS, CACHE_BYTES // cache_bytes(spec, copies, spec.max_tokens, itemsize)))


def resident_bytes() -> int:
    """Memory that this process holds now; where the system does not tell, the most that it ever held."""
    statm = Path("/proc/self/statm")
    if statm.is_file():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak_bytes()


def peak_bytes() -> int:
    """Peak resident memory of this process; 0 where the system does not tell (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    # Kibibytes on Linux, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def held_bytes(device: torch.device) -> int:
    """Memory that this process holds now on a device; on CPUs with everything else that it holds."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else resident_bytes()


class BandwidthProbe:
    """Reads a buffer far larger than the caches; keeps it, because making it takes longer than reading it.

    On a CPU each byte is read once, by all threads, with the native kernels where there are any; on a GPU a copy reads
    and writes it.
    """

    def __init__(self, device: torch.device | str = "cpu", *, mebibytes: int = 512) -> None:
        self.device = torch.device(device)
        self.library = load() if self.device.type == "cpu" else None
        elements = mebibytes << 18
        if self.library is None:
            self.source = torch.ones(elements, device=device)
        else:
            self.source = self.library.memory.zeros((elements,), torch.float32)
        self.target = torch.empty_like(self.source) if self.device.type == "cuda" else None

    @property
    def num_bytes(self) -> int:
        """Memory that it holds."""
        return self.source.nbytes + (0 if self.target is None else self.target.nbytes)

    def __call__(self, repeats: int = 5) -> float:
        """Bytes per second, the best of a few readings after one that warms up."""
        best = float("inf")
        for _ in range(repeats + 1):
            self._wait()
            started = time.perf_counter()
            self._read()
            self._wait()
            best = min(best, time.perf_counter() - started)
        return (1 if self.target is None else 2) * self.source.nbytes / best

    def _read(self) -> None:
        if self.target is not None:
            self.target.copy_(self.source)
        elif self.library is not None:
            sum_ = ctypes.byref(ctypes.c_uint64())
            self.library.read(self.source.data_ptr(), self.source.nbytes, torch.get_num_threads(), sum_)
        else:
            self.source.sum()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def probe_bandwidth(device: torch.device | str = "cpu", *, mebibytes: int = 512, repeats: int = 5) -> float:
    """Bytes per second that a device reads, or reads and writes in a copy on a GPU."""
    return BandwidthProbe(device, mebibytes=mebibytes)(repeats)
