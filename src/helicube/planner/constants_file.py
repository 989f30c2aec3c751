"""Write fitted constants as TOML."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helicube.planner.constants import EngineConstants, GpuConstants, constants_from_toml

__all__ = ["constants_to_toml", "write_constants"]

_HEADER = """\
# Written by `helicube plan calibrate`. Times in seconds, efficiencies as shares of the GPU's own peaks.
# gpu.*: fitted to kernel tables; serving_scale and engine.*: fitted to served requests (docs/planner.md).
"""


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        finite = {key: inner for key, inner in value.items() if inner != math.inf}
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in finite.items()) + " }"
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
        inner_maps = all(isinstance(inner, Mapping) for inner in value.values())
        if inner_maps:
            lines += ["", f"[{name}.{key}]"] + [f"{fmt} = {_value(inner)}" for fmt, inner in value.items()]
        else:
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
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
