"""Reading published weights: a folder with the safetensors files of decoder and tokenizer, and their configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from helicube.errors import CheckpointError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.stored_config import read_config
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig
from helicube.nn.linear import adopt, quantized_names

__all__ = ["PUBLISHED", "CubeWeights", "cube_configs", "load_cube", "load_tensors"]

DECODER_FILE, TOKENIZER_FILE, CONFIG_FILE = "shape_gpt.safetensors", "shape_tokenizer.safetensors", "config.json"

# Where one module stands in several places, the file holds it once, under any of these names.
SHARED_NAMES = ("embedder.weight", "encoder.embedder.weight", "occupancy_decoder.embedder.weight")

# The published versions, by the name that stands for their configuration. Source: the report and its release notes.
PUBLISHED: Mapping[str, tuple[DecoderConfig, TokenizerConfig]] = {
    "v0.1": (DecoderConfig(use_bbox=False), TokenizerConfig(num_encoder_latents=512)),
    "v0.5": (DecoderConfig(use_bbox=True), TokenizerConfig(num_encoder_latents=1024)),
}

# Keys of the published configuration that do not change the part whose section they stand in; the decoder's repeats one
# of the tokenizer's.
IGNORED_BY_DECODER = frozenset({"use_pooled_text_embed", "encoder_with_cls_token"})
IGNORED_BY_TOKENIZER = frozenset({"use_pooled_text_embed"})

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeWeights:
    """The two models of a checkpoint, in evaluation mode, the decoder's token table filled from the codebook."""

    decoder: CubeDecoder
    tokenizer: CubeTokenizer


def load_cube(
    folder: Path,
    *,
    version: str | None = None,
    dtype: torch.dtype = torch.bfloat16,
    tokenizer_dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> CubeWeights:
    """Load a checkpoint folder, casting tensor by tensor, so that the float32 file is never held as a whole.

    Args:
        folder: holds `shape_gpt.safetensors`, `shape_tokenizer.safetensors`, and, without `version`, `config.json`.
        version: "v0.1" or "v0.5".
        dtype: of the decoder, and of the tokenizer unless `tokenizer_dtype` is given.

    Raises:
        CheckpointError: a file is missing or truncated, or a tensor is missing, unknown or wrongly shaped.
    """
    decoder_config, tokenizer_config = cube_configs(folder, version)
    tokenizer = load_tensors(CubeTokenizer, tokenizer_config, folder / TOKENIZER_FILE, tokenizer_dtype or dtype, device)
    decoder = load_tensors(CubeDecoder, decoder_config, folder / DECODER_FILE, dtype, device)
    decoder.adopt_codebook(tokenizer.bottleneck.block.codes())
    return CubeWeights(decoder=decoder, tokenizer=tokenizer)


def cube_configs(folder: Path, version: str | None) -> tuple[DecoderConfig, TokenizerConfig]:
    """Sizes of a checkpoint's parts: of a published version, or as its `config.json` says.

    Raises:
        CheckpointError: an unknown version, or a file that is missing or damaged.
    """
    if version is not None:
        if version not in PUBLISHED:
            raise CheckpointError(f"version {version!r} is unknown; choose {' or '.join(PUBLISHED)}")
        return PUBLISHED[version]
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; add it, or name the version with {' or '.join(PUBLISHED)}")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        decoder, tokenizer = raw["gpt_model"], raw["shape_model"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not a configuration with gpt_model and shape_model: {error}") from None
    return (
        read_config(DecoderConfig, decoder, f"gpt_model in {path}", ignored=IGNORED_BY_DECODER),
        read_config(TokenizerConfig, tokenizer, f"shape_model in {path}", ignored=IGNORED_BY_TOKENIZER),
    )


def load_tensors(kind: type[Model], config: Any, path: Path, dtype: torch.dtype, device: torch.device | str) -> Model:
    """Build `kind(config)` with the tensors of a memory-mapped file, cast one at a time.

    Raises:
        CheckpointError: names the file, and the tensors that are missing, unknown or wrongly shaped.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; --weights needs a folder with {DECODER_FILE} and {TOKENIZER_FILE}")
    with torch.device("meta"):
        model: Model = kind(config)
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            names = set(file.keys())
        # A quantised file says so by its scales; such tensors keep their types.
        kept = {name: _read(path, name) for name in quantized_names(names) & names}
        biases = {n: _read(path, n) for n in names if n.endswith(".bias") and n.removesuffix("bias") + "weight" in kept}
        adopt(model, kept | biases)
        wanted = dict(model.state_dict())
        with safe_open(path, framework="pt", device="cpu") as file:
            source = _sources(wanted, names, path)
            _check_shapes(wanted, {n: tuple(file.get_slice(s).get_shape()) for n, s in source.items()}, path)
        cast = {
            stored: kept.pop(stored).to(device) if stored in kept else _read(path, stored).to(device, dtype)
            for stored in dict.fromkeys(source.values())
        }
    except SafetensorError as error:
        raise CheckpointError(f"{path} is damaged ({error}); download it again") from None
    tensors = {name: cast[stored] for name, stored in source.items()}
    model.load_state_dict(tensors, assign=True)
    return model.eval().requires_grad_(False)


def _read(path: Path, name: str) -> Tensor:
    """One tensor. The file is mapped anew for each, so that the pages of those already cast do not stay resident."""
    with safe_open(path, framework="pt", device="cpu") as file:
        tensor: Tensor = file.get_tensor(name)
    return tensor


def _sources(wanted: Mapping[str, Tensor], stored: set[str], path: Path) -> dict[str, str]:
    """Which stored tensor each wanted one comes from."""
    alias = next((n for n in SHARED_NAMES if n in stored), None)
    source = {n: n if n in stored else alias if n in SHARED_NAMES and alias else n for n in wanted}
    missing = sorted(n for n, s in source.items() if s not in stored)
    unknown = sorted(stored - set(source.values()) - set(SHARED_NAMES))
    if missing or unknown:
        parts = [f"{what} {_some(names)}" for what, names in (("lacks", missing), ("has unknown", unknown)) if names]
        raise CheckpointError(f"{path} {' and '.join(parts)}; is it the right file for this configuration?")
    return source


def _check_shapes(wanted: Mapping[str, Tensor], found: Mapping[str, tuple[int, ...]], path: Path) -> None:
    wrong = [f"{n} {found[n]} instead of {tuple(t.shape)}" for n, t in wanted.items() if found[n] != tuple(t.shape)]
    if wrong:
        raise CheckpointError(f"{path} has wrongly shaped {_some(wrong)}; is it the right file for this configuration?")


def _some(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
