"""The compiled kernels of this machine, or the reason why there are none."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from helicube.errors import DeviceError
from helicube.kernels.cpu.build import BuildError, build, cache_folder, source_hash
from helicube.kernels.cpu.memory import Slabs

__all__ = ["Library", "describe", "load"]

SWITCH = "HELICUBE_KERNELS"

log = logging.getLogger("helicube.kernels")

Call = Callable[..., int]


class Library:
    """Functions of one compiled library; native/api.cpp describes them.

    Args:
        path: what `build` made.

    Raises:
        BuildError: it cannot be loaded, or was built from other sources.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._handle = ctypes.CDLL(str(path))
            told = self._handle.hk_source
        except (OSError, AttributeError) as error:
            raise BuildError(f"{path} cannot be loaded ({error})") from None
        told.restype = ctypes.c_char_p
        if told().decode() != source_hash():
            raise BuildError(f"{path} was built from other sources; build it again")
        self.path = path
        self.product = self._function("hk_product", ctypes.c_char_p, ctypes.c_int64)
        self.attention = self._function("hk_attention", ctypes.c_char_p, ctypes.c_int64)
        self.new_token = self._function("hk_new_token", ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64)
        self.step = self._function("hk_step", ctypes.c_char_p, ctypes.c_int64)
        self.decode = self._function("hk_decode", ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
        self.field = self._function("hk_field", ctypes.c_char_p, ctypes.c_int64)
        self.phases = self._function("hk_phases", ctypes.c_int64, ctypes.c_int64)
        self.memory = Slabs(self._function("hk_huge_pages", ctypes.c_void_p, ctypes.c_int64))
        total = ctypes.POINTER(ctypes.c_uint64)
        self.read = self._function("hk_read", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, total)
        # Floats in a vector: 16 AVX-512, 8 AVX2, 4 others; and whether bytes are multiplied in one instruction.
        self.lanes = int(self._handle.hk_lanes())
        self.has_vnni = bool(self._handle.hk_has_vnni())

    def _function(self, name: str, *arguments: type) -> Call:
        function = getattr(self._handle, name)
        function.argtypes, function.restype = list(arguments), ctypes.c_int

        def call(*values: object) -> int:
            status = function(*values)
            if status == 1:
                raise DeviceError("out of memory in a CPU kernel; choose a smaller batch")
            # Not an assert: what follows would be memory that belongs to something else.
            if status:
                raise IndexError("an id, position, length or row is beyond the tensor that it points into")
            return 0

        return call


@functools.cache
def load() -> Library | None:
    """The library of this machine, built on first use; None, after one notice, where the plain path has to do.

    HELICUBE_KERNELS=0 switches it off; the path of a library there takes the place of building one.
    """
    switch = os.environ.get(SWITCH, "1")
    if switch == "0":
        return None
    try:
        if switch not in {"", "1"}:
            return Library(Path(switch))
        return _build_and_load()
    except BuildError as error:
        log.warning("helicube: no CPU kernels: %s; PyTorch's products are used, several times slower", error)
        return None


def describe() -> str:
    """One line for a report: instruction set and place, or that there are none."""
    library = load()
    if library is None:
        return "plain PyTorch"
    name = {16: "AVX-512", 8: "AVX2", 4: "128-bit vectors"}[library.lanes]
    return f"{name}{' with VNNI' if library.has_vnni else ''}, {library.path}"


def _build_and_load() -> Library:
    try:
        folder = cache_folder()
    except BuildError as error:
        # Works, but compiles at each start: worth the reason.
        log.warning("helicube: CPU kernels are not kept: %s", error)
        with tempfile.TemporaryDirectory(prefix="helicube-") as scratch:
            return Library(build(Path(scratch)))
    return Library(build(folder))
