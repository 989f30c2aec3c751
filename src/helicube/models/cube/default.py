"""The default model: a small Cube decoder over the lattice code, as it ships in the package."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from helicube.errors import CheckpointError, InputError
from helicube.geometry.files import whole_file
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.lattice import LatticeConfig
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig
from helicube.models.cube.stored_config import read_config
from helicube.nn.linear import adopt, module_format, quantized_names

__all__ = ["BUNDLED_WEIGHTS", "DefaultConfig", "DefaultWeights", "default_config", "load_default", "save_default"]

BUNDLED_WEIGHTS = Path(__file__).resolve().parents[2] / "weights"
FORMAT = "helicube-default-1"
MODEL_FILE = "model.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultConfig:
    """Sizes of the parts."""

    shape: LatticeConfig
    color: ColorConfig
    decoder: DecoderConfig
    # Text states a prompt is padded to.
    num_text: int = 40

    def __post_init__(self) -> None:
        """Check that prompts have room and that the parts fit each other.

        Raises:
            CheckpointError: not so.
        """
        if not isinstance(self.num_text, int) or self.num_text < 1:
            raise CheckpointError(f"num_text = {self.num_text!r} must be 1 or more")
        if self.shape.grid % self.color.merge:
            raise CheckpointError(f"merge = {self.color.merge} must divide grid = {self.shape.grid}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultWeights:
    """The parts, in evaluation mode."""

    config: DefaultConfig
    code: LatticeCode
    decoder: CubeDecoder
    # Format of the decoder's matrices in the file.
    form: str = "bfloat16"


def save_default(weights: DefaultWeights, folder: Path, dtype: torch.dtype = torch.bfloat16) -> Path:
    """Write `folder/model.safetensors`, self-describing, whole or not at all.

    Args:
        dtype: of tensors that are not quantised; a decoder whose matrices are (see `formats.hold_matrices`) keeps them.

    Raises:
        InputError: the file cannot be written.
    """
    tensors = {f"code.{name}": t for name, t in weights.code.state_dict().items()}
    tensors |= {f"decoder.{name}": t for name, t in weights.decoder.state_dict().items()}
    quantized = quantized_names(tensors)
    form = module_format(weights.decoder.lm_head) if quantized else str(dtype).removeprefix("torch.")
    metadata = {"format": FORMAT, "config": json.dumps(asdict(weights.config)), "weights": form}
    stored = {name: (t if name in quantized else t.to(dtype)).contiguous() for name, t in tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}; choose another") from None
    path = folder / MODEL_FILE
    with whole_file(path) as passing:
        # Not save_file: what it raises for a full disk is no OSError, and its files are for their owner alone.
        passing.write_bytes(save(stored, metadata=metadata))
    return path


def load_default(folder: Path = BUNDLED_WEIGHTS, dtype: torch.dtype = torch.float32) -> DefaultWeights:
    """Read what `save_default` wrote.

    Raises:
        CheckpointError: the file is missing, damaged, of another format, or does not fit its own configuration.
    """
    path = folder / MODEL_FILE
    config, form = _described(path)
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            quantized = quantized_names(names)
            read = {name: file.get_tensor(name) for name in names}
            tensors = {name: t if name in quantized else t.to(dtype) for name, t in read.items()}
    except SafetensorError as error:
        raise CheckpointError(f"{path} is damaged ({error}); {_remedy(path)}") from None
    with torch.device("meta"):
        code, decoder = LatticeCode(config.shape, config.color), CubeDecoder(config.decoder)
    _fill(code, "code.", tensors, path)
    _fill(decoder, "decoder.", tensors, path)
    return DefaultWeights(config=config, code=code, decoder=decoder, form=form)


def _fill(module: nn.Module, prefix: str, tensors: dict[str, Tensor], path: Path) -> None:
    mine = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    adopt(module, mine)
    try:
        module.load_state_dict(mine, assign=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} does not fit its configuration ({reason}); {_remedy(path)}") from None
    module.eval().requires_grad_(False)


def default_config(folder: Path) -> DefaultConfig:
    """Sizes of the parts of what `save_default` wrote; its errors are those of `load_default`."""
    return _described(folder / MODEL_FILE)[0]


def _described(path: Path) -> tuple[DefaultConfig, str]:
    """What a file says of itself: sizes, and the format of the decoder's matrices."""
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; reinstall helicube, or give the folder of a trained model")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise CheckpointError(f"{path} is damaged ({error}); {_remedy(path)}") from None
    return _parse(metadata, path), metadata.get("weights", "bfloat16")


def _remedy(path: Path) -> str:
    return "reinstall helicube" if path.parent == BUNDLED_WEIGHTS else "get it again, or give another folder"


def _parse(metadata: dict[str, str], path: Path) -> DefaultConfig:
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path} has format {metadata.get('format')!r}, not {FORMAT!r}; {_remedy(path)}")
    try:
        raw = json.loads(metadata["config"])
        parts = {name: raw[name] for name in ("shape", "color", "decoder")}
        num_text = raw["num_text"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} has no whole configuration ({error!r}); {_remedy(path)}") from None
    shape = read_config(LatticeConfig, parts["shape"], f"the shape part of {path}")
    color = read_config(ColorConfig, parts["color"], f"the color part of {path}")
    decoder = read_config(DecoderConfig, parts["decoder"], f"the decoder part of {path}")
    try:
        return DefaultConfig(shape=shape, color=color, decoder=decoder, num_text=num_text)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}; {_remedy(path)}") from None
