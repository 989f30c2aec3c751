"""Which folder a model's name means: the same in every command."""

from __future__ import annotations

import re
from pathlib import Path

from helicube.errors import CheckpointError, MissingExtraError
from helicube.models.cube.default import BUNDLED_WEIGHTS

__all__ = ["BUNDLED", "find_folder"]

# Name of the model in the package. A folder of that name is ./default.
BUNDLED = "default"


def find_folder(weights: str | Path | None) -> Path:
    """The folder of a model's files.

    Args:
        weights: None or "default" for the bundled model; a folder; or the name of a Hugging Face repository
            ("owner/name"), which is downloaded once.

    Raises:
        CheckpointError: there is no such folder or repository.
        MissingExtraError: huggingface_hub is not installed.
    """
    if weights is None or weights == BUNDLED:
        return BUNDLED_WEIGHTS
    if not str(weights).strip():
        raise CheckpointError(f"the model's name is empty; name {BUNDLED}, or the folder that holds a model's files")
    folder = Path(weights)
    if folder.is_dir():
        return folder
    name = str(weights)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or name.startswith("."):
        raise CheckpointError(
            f"{name} is not a folder; name {BUNDLED}, the folder that holds a model's files, or owner/name on the hub"
        )
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError:
        raise MissingExtraError("huggingface_hub", "cube") from None
    try:
        return Path(snapshot_download(name, allow_patterns=["*.safetensors", "*.json", "*.txt"]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:160]
        raise CheckpointError(
            f"{name} is no folder here and could not be had from the hub ({reason}); download it and give its folder"
        ) from None
