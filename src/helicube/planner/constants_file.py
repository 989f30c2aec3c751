"""Fitted constants as TOML: read and write."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from helicube.errors import InputError
from helicube.planner.constants import (
    AttentionConstants,
    CollectiveConstants,
    EngineConstants,
    FitRange,
    FusedConstants,
    GemmConstants,
    GpuConstants,
    MoeConstants,
)
from helicube.planner.output import write_text
from helicube.specs.names import nearest_names

__all__ = ["constants_from_toml", "constants_to_toml", "write_constants"]

_HEADER = """\
# Written by `helicube plan calibrate`. Times in seconds, efficiencies as shares of the GPU's own peaks.
# gpu.*: fitted to the kernel tables of aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0), which do not ship;
# serving_scale and engine.*: fitted to the served requests of the same package (docs/planner.md).
"""


def _build(kind: type, data: dict[str, Any], where: str) -> Any:
    known = [f.name for f in fields(kind)]
    for key in data:
        if key not in known:
            raise InputError(f"{where}: key {key!r} is unknown; the nearest are {nearest_names(key, known)}")
    try:
        return kind(**data)
    except TypeError as error:
        raise InputError(f"{where}: {error}; run helicube plan calibrate to write a complete file") from error


def _gpu(name: str, data: dict[str, Any]) -> GpuConstants:
    parts: dict[str, Any] = {"name": name, **{key: data[key] for key in ("source", "generation")}}
    kinds = {
        "gemm": GemmConstants,
        "attention": AttentionConstants,
        "moe": MoeConstants,
        "collectives": CollectiveConstants,
    }
    for part, kind in kinds.items():
        parts[part] = {key: _build(kind, value, f"{name}.{part}.{key}") for key, value in data[part].items()}
    for part, kind in {"one_shot": FusedConstants, "two_shot": FusedConstants, "range": FitRange}.items():
        parts[part] = _build(kind, data[part], f"{name}.{part}")
    return GpuConstants(**parts)


def constants_from_toml(text: str) -> tuple[dict[str, GpuConstants], dict[str, EngineConstants]]:
    """Read a constants file: GPUs and engines by name.

    Raises:
        InputError: the text is not TOML, or a key is unknown or missing.
    """
    try:
        data = tomllib.loads(text)
        gpus = {name: _gpu(name, table) for name, table in data["gpu"].items()}
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the constants file is not TOML ({error}); run helicube plan calibrate") from error
    except KeyError as error:
        raise InputError(f"the constants file lacks {error}; run helicube plan calibrate") from error
    engines = {
        name: _build(
            EngineConstants, {"name": name, **table, "models": tuple(table.get("models", ()))}, f"engine.{name}"
        )
        for name, table in data.get("engine", {}).items()
    }
    return gpus, engines


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        finite = {key: inner for key, inner in value.items() if inner != math.inf}
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in finite.items()) + " }"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    # Four digits: the fits are good to a few per cent.
    return f"{float(value):.4g}" if float(value) != int(value) or abs(value) >= 1e6 else f"{float(value):.1f}"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in values.items() if value is not None and key not in {"name", "fused_moves"}}
    nested = {key: value for key, value in plain.items() if isinstance(value, Mapping) and key != "prefill_efficiency"}
    lines = [f"[{name}]"] + [f"{key} = {_value(value)}" for key, value in plain.items() if key not in nested]
    for key, value in nested.items():
        lines += ["", f"[{name}.{key}]"] + [f"{field} = {_value(inner)}" for field, inner in value.items()]
    return [*lines, ""]


def constants_to_toml(gpus: Mapping[str, GpuConstants], engines: Mapping[str, EngineConstants]) -> str:
    """The text of a constants file."""
    lines = [_HEADER]
    for name, gpu in gpus.items():
        lines += _table(f"gpu.{name}", asdict(gpu))
    for name, engine in engines.items():
        lines += _table(f"engine.{name}", asdict(engine))
    return "\n".join(lines)


def write_constants(path: Path, gpus: Mapping[str, GpuConstants], engines: Mapping[str, EngineConstants]) -> None:
    """Write a constants file in one step; a failed run leaves the old one."""
    text = constants_to_toml(gpus, engines)
    constants_from_toml(text)
    write_text(path, text)
