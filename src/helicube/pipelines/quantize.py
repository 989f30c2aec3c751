"""A model's folder in another weight format: what `--weights` takes, self-describing, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from helicube.engine.metrics import peak_bytes
from helicube.errors import CheckpointError, InputError
from helicube.models.cube.checkpoint import CONFIG_FILE, DECODER_FILE, cube_configs, load_tensors
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import MODEL_FILE, default_config, load_default
from helicube.models.cube.format_effects import format_note
from helicube.models.cube.formats import is_matrix
from helicube.nn.linear import quantized_names
from helicube.nn.quantize import WeightFormat, dequantize, format_of, parse_format, quantize
from helicube.pipelines.model_folder import find_folder

__all__ = ["Quantized", "quantize_folder", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantized:
    """What was written."""

    path: Path
    form: str
    # Of the file with the decoder, before and after.
    bytes_before: int
    bytes_after: int
    num_matrices: int
    # Of reading and converting, and of loading the result.
    convert_s: float
    load_s: float
    # Peak resident memory of this process; 0 where the system does not tell.
    peak_bytes: int
    # What users should be told of this format, if it was measured to harm the model.
    remark: str | None


def quantize_folder(weights: str | Path, form: str, output: Path) -> Quantized:
    """Convert the decoder's matrices, copy everything else, and load the result once.

    Args:
        weights: see `pipelines.model_folder.find_folder`.
        form: see `nn.quantize.parse_format`.
        output: a folder that does not exist.

    Raises:
        InputError: an unknown format, or the output is there already.
        CheckpointError: there are no weights, or damaged ones.
    """
    target = parse_format(form)
    source = find_folder(weights)
    output = output.absolute()
    file = source / MODEL_FILE if (source / MODEL_FILE).is_file() else source / DECODER_FILE
    if not file.is_file():
        raise CheckpointError(f"{source} holds neither {MODEL_FILE} nor {DECODER_FILE}; name a model's folder")
    started = time.perf_counter()
    partial = _scratch(output)
    try:
        num_matrices = _convert(file, partial / file.name, target)
        _copy_rest(source, partial, file)
        convert_s = time.perf_counter() - started
        # Before it takes its name: what does not load is never left behind.
        load_s = _load_seconds(partial)
        partial.chmod(0o755)
        partial.replace(output)
    except OSError as error:
        raise InputError(f"{output} cannot be written ({error.strerror}); free some space or name another") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Quantized(
        path=output,
        form=str(target),
        bytes_before=file.stat().st_size,
        bytes_after=(output / file.name).stat().st_size,
        num_matrices=num_matrices,
        convert_s=convert_s,
        load_s=load_s,
        peak_bytes=peak_bytes(),
        remark=format_note(output, str(target)),
    )


def _scratch(output: Path) -> Path:
    """A new folder beside the one asked for."""
    if output.exists():
        raise InputError(f"{output} exists; name a folder that does not, so that nothing is overwritten")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}-"))
    except OSError as error:
        raise InputError(f"{output} cannot be created ({error.strerror}); name a folder that can") from None


def summary(done: Quantized) -> str:
    """One line for people, and another where the format harms the model."""
    told = (
        f"{done.path}: {done.num_matrices} matrices in {done.form}, {done.bytes_before / 2**20:.1f} to "
        f"{done.bytes_after / 2**20:.1f} MiB in {done.convert_s:.1f} s; loads in {done.load_s:.2f} s"
    )
    told += f"; peak memory {done.peak_bytes / 2**20:.0f} MiB" if done.peak_bytes else ""
    return told if done.remark is None else f"{told}\nnote: {done.remark}"


def _load_seconds(folder: Path) -> float:
    """Of building the decoder that was written; the text encoder and the tokenizer are not its business."""
    started = time.perf_counter()
    if (folder / MODEL_FILE).is_file():
        load_default(folder)
    elif (folder / CONFIG_FILE).is_file():
        load_tensors(CubeDecoder, _decoder_config(folder), folder / DECODER_FILE, torch.bfloat16, "cpu")
    else:
        # Of a published version that only whoever loads it can name.
        with safe_open(folder / DECODER_FILE, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                file.get_tensor(name).clone()
    return time.perf_counter() - started


def _decoder_config(folder: Path) -> DecoderConfig:
    if (folder / MODEL_FILE).is_file():
        return default_config(folder).decoder
    config, _ = cube_configs(folder, None)
    return config


def _widths(folder: Path) -> dict[str, int]:
    """Inputs of every matrix, which an int4 one does not say."""
    with torch.device("meta"):
        decoder = CubeDecoder(_decoder_config(folder))
    return {f"{n}.weight": m.in_features for n, m in decoder.named_modules() if isinstance(m, nn.Linear)}


def _convert(source: Path, target: Path, form: WeightFormat) -> int:
    """Write a file with its matrices converted; how many there were."""
    try:
        with safe_open(source, framework="pt") as file:
            metadata, names = dict(file.metadata() or {}), list(file.keys())
        tensors: dict[str, Tensor] = {}
        count = 0
        widths = _widths(source.parent) if quantized_names(names) else {}
        for name, parts in _converted(source, names, form, widths):
            tensors |= parts
            count += int(is_matrix(_own_name(name)))
    except SafetensorError as error:
        raise CheckpointError(f"{source} is damaged ({error}); get it again") from None
    if not count:
        raise CheckpointError(f"{source} has no matrices of a decoder; name the folder of a whole model")
    try:
        save_file(tensors, target, metadata=metadata | {"weights": str(form)})
        # It makes files for their owner alone.
        target.chmod(0o644)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{target.parent} cannot be written ({error}); free some space or name another") from None
    return count


def _converted(
    source: Path, names: list[str], form: WeightFormat, widths: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Tensors one after the other; the file is mapped anew for each, so that what was read does not stay resident."""
    quantized = quantized_names(names)
    for name in names:
        if name in quantized and name.endswith("_scale"):
            continue
        with safe_open(source, framework="pt") as file:
            tensor = file.get_tensor(name)
            scale = file.get_tensor(f"{name}_scale") if name in quantized else None
            if is_matrix(_own_name(name)):
                if scale is not None:
                    num_inputs = widths[_own_name(name)]
                    tensor = dequantize(tensor, scale, format_of(tensor, scale, num_inputs, name), num_inputs)
                yield name, _matrix(name, tensor, form)
            else:
                yield name, {name: tensor.clone()}


def _matrix(name: str, tensor: Tensor, form: WeightFormat) -> dict[str, Tensor]:
    weight, scale = quantize(tensor, form)
    # A tensor that stays as it is would still be the mapped file's.
    return {name: weight.clone() if scale is None else weight} | ({} if scale is None else {f"{name}_scale": scale})


def _own_name(name: str) -> str:
    """As the decoder calls a tensor: the default model's file has a prefix."""
    return name.removeprefix("decoder.")


def _copy_rest(source: Path, target: Path, done: Path) -> None:
    """Everything else that a model's folder holds: configuration, tokenizer, text encoder."""
    for item in sorted(source.iterdir()):
        if item.name == done.name or item.name.startswith((".", "__")):
            continue
        if item.is_dir():
            shutil.copytree(item, target / item.name)
        elif item.suffix in {".safetensors", ".json", ".txt", ".md"}:
            shutil.copy2(item, target / item.name)
