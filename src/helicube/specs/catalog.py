"""Models by name, or from a config.json."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

from helicube.errors import InputError
from helicube.specs.huggingface import model_from_config
from helicube.specs.model import ModelSpec
from helicube.specs.names import nearest_names

__all__ = ["get_model", "list_models", "load_model", "read_model_config"]

# Ends of hub names of checkpoints that have the sizes of the plain one, and the number format that each says.
_SAME_SIZES = {"-bf16": "bf16", "-fp8": "fp8", "-nvfp4": "fp4", "-mxfp4": "fp4", "-fp4": "fp4", "-instruct": ""}


@cache
def _catalog() -> dict[str, ModelSpec]:
    """Every name, other names included, and its spec."""
    text = Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
    found: dict[str, ModelSpec] = {}
    for table in tomllib.loads(text)["model"]:
        spec = model_from_config(table, table["names"][0], source=table["source"], native=table.get("native", ""))
        for name, hub in zip(table["names"], table["hub"], strict=True):
            named = next((fmt for end, fmt in _SAME_SIZES.items() if fmt and name.endswith(end)), "")
            found[name] = replace(spec, name=name, hub=hub, native_precision=named or spec.native_precision)
    return found


def list_models() -> tuple[ModelSpec, ...]:
    """All models known by name; models of equal sizes are listed under each name."""
    return tuple(_catalog().values())


def get_model(name: str) -> ModelSpec:
    """Look up a model by name, or by hub name such as "meta-llama/Llama-3.1-70B-Instruct".

    Raises:
        InputError: the name is unknown; the message gives the nearest names.
    """
    known = _catalog()
    key = name.strip().rsplit("/", 1)[-1].lower()
    if key not in known:
        key = next((own for own, spec in known.items() if spec.hub.rsplit("/", 1)[-1].lower() == key), key)
    native = ""
    for end, fmt in _SAME_SIZES.items():
        if key not in known and key.endswith(end):
            key, native = key.removesuffix(end), native or fmt
    if key not in known:
        near = nearest_names(key, known)
        raise InputError(f"model {name!r} is unknown; did you mean {near}? Or give the path of its config.json")
    found = known[key]
    return replace(found, native_precision=native or found.native_precision, hub=name if "/" in name else found.hub)


def read_model_config(path: Path) -> ModelSpec:
    """Read a config.json, or the folder that holds it.

    Raises:
        InputError: the file is missing or not JSON, or a size in it is missing or wrong.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"model file {file} cannot be read ({error.strerror}); check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"model file {file} is not JSON ({error}); give a Hugging Face config.json") from error
    if not isinstance(data, dict):
        raise InputError(f"model file {file} holds no JSON object; give a Hugging Face config.json")
    name = file.resolve().parent.name if file.name == "config.json" else file.stem
    return model_from_config(data, name)


def load_model(name_or_path: str) -> ModelSpec:
    """Look up a model by name, or read the config.json that a path leads to.

    Raises:
        InputError: neither a known name nor a usable file.
    """
    path = Path(name_or_path)
    if name_or_path.endswith(".json") or path.is_dir():
        return read_model_config(path)
    return get_model(name_or_path)
