"""HardwareSpec: the rates and sizes of one accelerator and of the links around it."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, dataclass, fields
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from helicube.errors import InputError
from helicube.specs.names import nearest_names

__all__ = ["HardwareSpec", "list_hardware", "load_hardware", "read_hardware"]


_RATES = ("hbm_bytes_per_s", "hbm_bytes", "bf16_flops", "link_bytes_per_s", "network_bytes_per_s")
_OPTIONAL_RATES = ("fp8_flops", "fp4_flops", "int8_flops")
# No accelerator has rates or sizes near it: a figure in GB or TB was meant.
_SLOWEST = 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class HardwareSpec:
    """One accelerator. Rates are dense peaks; links count one direction.

    Raises:
        InputError: a rate or a size is not positive.
    """

    name: str
    # Name in the catalog, or of the user's file.
    source: str
    # Where the figures come from.
    hbm_bytes_per_s: float
    # Peak memory bandwidth.
    hbm_bytes: float
    # Memory capacity as the driver reports it.
    bf16_flops: float
    # Dense bf16 tensor FLOP/s.
    link_bytes_per_s: float
    # Bandwidth of one accelerator to its peers inside the domain, one direction.
    link_domain: int
    # Accelerators that the fast links connect.
    fp8_flops: float = 0.0
    # Dense fp8 FLOP/s; 0 means unsupported.
    fp4_flops: float = 0.0
    # Dense fp4 FLOP/s; 0 means unsupported.
    int8_flops: float = 0.0
    # Dense int8 OP/s; 0 means unsupported.
    network_bytes_per_s: float = 50e9
    # Bandwidth of one accelerator out of its domain (a 400 Gb/s network card), one direction.
    link_kind: str = "nvlink"
    # nvlink, fabric or pcie: decides which fast all-reduce kernels exist, and the latency of a collective.
    gpus_per_node: int = 8
    # Accelerators of one host.
    generation: str = ""
    # Name shared by GPUs that run the same kernels, such as hopper; needed for calibration alone.
    calibrated_as: str = ""
    # GPU whose fitted efficiencies are used, as shares of this GPU's own peaks; "" means none: bounds only.

    def __post_init__(self) -> None:
        where = f"hardware {self.name}"
        if not self.name.strip():
            raise InputError("the hardware's name is empty; give it one")
        for rate in (*_RATES, *_OPTIONAL_RATES):
            if not isfinite(getattr(self, rate)):
                raise InputError(f"{where}: {rate} is {getattr(self, rate)}; it must be positive and finite")
        for rate in _RATES:
            if not getattr(self, rate) > 0:
                raise InputError(f"{where}: {rate} is {getattr(self, rate)}; it must be positive")
            if getattr(self, rate) < _SLOWEST:
                raise InputError(f"{where}: {rate} is {getattr(self, rate):g}; give it in units of one, such as 80e9")
        self._check_sizes(where)

    def _check_sizes(self, where: str) -> None:
        for rate in _OPTIONAL_RATES:
            if not getattr(self, rate) >= 0:
                raise InputError(f"{where}: {rate} is {getattr(self, rate)}; use 0 where unsupported")
        for field in ("link_domain", "gpus_per_node"):
            if getattr(self, field) < 1:
                raise InputError(f"{where}: {field} is {getattr(self, field)}; it is at least 1")
        if self.link_kind not in {"nvlink", "fabric", "pcie"}:
            raise InputError(f"{where}: link_kind {self.link_kind!r}; choose nvlink, fabric or pcie")

    def flops(self, math: str) -> float:
        """Peak FLOP/s of a tensor-core format; 0 when the accelerator lacks it."""
        rates = {"bf16": self.bf16_flops, "fp8": self.fp8_flops, "fp4": self.fp4_flops, "int8": self.int8_flops}
        return rates[math]

    @property
    def precisions(self) -> tuple[str, ...]:
        """Formats that the tensor cores multiply."""
        return tuple(name for name in ("bf16", "fp8", "fp4", "int8") if self.flops(name) > 0)


# What a user's file may leave out although times depend on it; the plan then says so.
_ASSUMED = {"network_bytes_per_s": 50e9, "link_kind": "nvlink"}
_TYPES = {field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(HardwareSpec)}
_REQUIRED = [field.name for field in fields(HardwareSpec) if field.default is MISSING]


def _from_table(data: dict[str, Any], where: str) -> HardwareSpec:
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in _TYPES:
            raise InputError(f"{where}: key {key!r} is unknown; the nearest are {nearest_names(key, _TYPES)}")
        wanted = _TYPES[key]
        allowed = (int, float) if wanted is float else wanted
        if not isinstance(value, allowed) or isinstance(value, bool):
            raise InputError(f"{where}: {key} = {value!r} is no {wanted.__name__}; correct its type")
        try:
            values[key] = wanted(value)
        except OverflowError as error:
            raise InputError(f"{where}: {key} is too large; correct it") from error
    missing = [key for key in _REQUIRED if key not in data]
    if missing:
        raise InputError(f"{where}: {', '.join(missing)} missing; give each as a line such as hbm_bytes = 80e9")
    return HardwareSpec(**values)


def read_hardware(path: Path) -> HardwareSpec:
    """Read a user's TOML file: the fields of :class:`HardwareSpec` as top-level keys; name and source may be left out.

    Raises:
        InputError: the file is missing or not TOML; a key is unknown, missing, or has the wrong type.
    """
    where = f"hardware file {path}"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{where} cannot be read ({error.strerror}); check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not TOML ({error}); write lines such as hbm_bytes = 80e9") from error
    defaults = [f"{key} = {value!r}" for key, value in _ASSUMED.items() if key not in data]
    source = path.name + (f" (not given, so assumed: {', '.join(defaults)})" if defaults else "")
    return _from_table({"name": path.stem, "source": source, **data}, where)


@cache
def _catalog() -> dict[str, HardwareSpec]:
    text = Path(__file__).with_name("hardware.toml").read_text(encoding="utf-8")
    specs = [_from_table(table, "hardware.toml") for table in tomllib.loads(text)["gpu"]]
    return {spec.name: spec for spec in specs}


def list_hardware() -> tuple[HardwareSpec, ...]:
    """All accelerators known by name."""
    return tuple(_catalog().values())


def load_hardware(name_or_path: str) -> HardwareSpec:
    """Look up an accelerator by name ("h100", "h100_sxm", "gb200") or read a user's TOML file.

    Raises:
        InputError: the name is unknown (the message gives the nearest names), or the file is at fault.
    """
    if name_or_path.lower().endswith(".toml"):
        return read_hardware(Path(name_or_path))
    key = name_or_path.strip().lower().replace("_", "-").removeprefix("nvidia-")
    key = key.removesuffix("-nvl72").removesuffix("-sxm")
    known = _catalog()
    if key not in known:
        near = nearest_names(key, known)
        raise InputError(f"GPU {name_or_path!r} is unknown; did you mean {near}? Or give a TOML file with its rates")
    return known[key]
