"""The decoders that the ablation times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from helicube.engine.build import prepare, resolve_for
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan
from helicube.errors import InputError
from helicube.models.cube.checkpoint import PUBLISHED
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import MODEL_FILE, load_default
from helicube.nn.cache import CacheSpec
from helicube.pipelines.model_folder import BUNDLED, find_folder
from helicube.pipelines.random_weights import random_decoder
from helicube.pipelines.shape_model import check_device

__all__ = ["Subject", "load_subject", "random_subject"]

CUBE_TEXT = 77


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model whose decoder can be had in every format."""

    name: str
    device: torch.device
    # From options to a decoder whose matrices are as they ask.
    decoder: Callable[[EngineOptions], CubeDecoder]
    plan: IdPlan
    cache_spec: CacheSpec
    # Format of the rows that are about features; the others follow.
    base_format: str
    # Ids that are in the cache when the clock starts.
    start: int
    # Whether the weights are random: the time is the same, the ids mean nothing.
    random: bool


def load_subject(name: str, device: str = "cpu") -> Subject:
    """A model of our own, or "cube-v0.1" and "cube-v0.5" at their real size with random weights.

    Args:
        name: see `pipelines.model_folder.find_folder`.

    Raises:
        InputError: an unknown name.
        CheckpointError: the model's files are missing or damaged.
        DeviceError: there is no such device.
    """
    check_device(device)
    published = {f"cube-{version}": facts for version, facts in PUBLISHED.items()}
    if name in published:
        config, tokenizer = published[name]
        plan = IdPlan(ranges=((0, config.shape_model_vocab_size),) * tokenizer.num_latents)
        return random_subject(name, config, plan, CUBE_TEXT, device=device, base_format="bfloat16")
    known = ", ".join([BUNDLED, *published])
    if name != BUNDLED and "/" not in name and not Path(name).is_dir():
        raise InputError(f"model {name!r} is unknown; choose from {known}, or name a model's folder")
    folder = find_folder(name)
    if name != BUNDLED and not (folder / MODEL_FILE).is_file():
        raise InputError(f"{name} holds no {MODEL_FILE}; choose from {known}, or name the folder of such a model")
    return _own_subject(BUNDLED if name == BUNDLED else folder.name, folder, device)


def _own_subject(name: str, folder: Path, device: str) -> Subject:
    weights = load_default(folder)
    plan = IdPlan(ranges=weights.code.ranges)
    decoder = weights.decoder.to(device)

    def held(options: EngineOptions) -> CubeDecoder:
        prepare(decoder, options)
        return decoder

    spec = decoder.cache_spec(weights.config.num_text, plan.num_steps)
    return Subject(
        name=name, device=torch.device(device), decoder=held, plan=plan, cache_spec=spec,
        base_format="float32", start=plan.num_steps // 2, random=False,
    )  # fmt: skip


def random_subject(
    name: str,
    config: DecoderConfig,
    plan: IdPlan,
    num_text: int,
    *,
    device: str = "cpu",
    base_format: str,
    condition: bool = False,
) -> Subject:
    """A decoder's shape stream, or both streams, in random weights; one format is held at a time."""
    held: dict[tuple[str, bool], CubeDecoder] = {}
    with torch.device("meta"):
        facts = CubeDecoder(config)
    here = torch.empty(0, device=device).device

    def decoder(options: EngineOptions) -> CubeDecoder:
        native = resolve_for(device, options.weights, options).kernels.implementation == "native"
        key = (options.weights, native)
        if key not in held:
            held.clear()
            held[key] = random_decoder(config, device, options.weights, native=native, condition=condition)
        return held[key]

    # 600 keys in the published model: 522 ids behind 78 conditioning tokens.
    return Subject(
        name=name, device=here, decoder=decoder, plan=plan, cache_spec=facts.cache_spec(num_text, plan.num_steps),
        base_format=base_format, start=plan.num_steps // 2 + (10 if plan.num_steps > 1000 else 0), random=True,
    )  # fmt: skip
