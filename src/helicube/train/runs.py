"""The training runs behind `helicube train`: which task, on which items, into which folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from helicube.errors import InputError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import DefaultConfig, DefaultWeights, save_default
from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig, LatticeColors
from helicube.models.cube.text_static import StaticTextEncoder
from helicube.train.captioner import augmented_caption
from helicube.train.color_task import ColorTask, ColorTaskConfig
from helicube.train.cube_task import CubeTask, CubeTaskConfig, small_cube
from helicube.train.decoder_task import DecoderTask, DecoderTaskConfig
from helicube.train.factored_decoder import FactoredDecoder, shared_rows
from helicube.train.items import load_items, split_unseen
from helicube.train.lattice_task import LatticeTask, LatticeTaskConfig
from helicube.train.loop import LoopConfig, train
from helicube.train.token_set import kept_tokens

__all__ = ["bundle", "train_colors", "train_cube_baseline", "train_decoder", "train_shape"]

M = TypeVar("M", bound=nn.Module)


def train_shape(
    items_folder: Path, loop: LoopConfig, model: LatticeConfig, task: LatticeTaskConfig, decoder_of: Path | None = None
) -> None:
    """Train the shape half of the tokenizer, or only the decoder of a run."""
    frozen = load_shape(decoder_of) if decoder_of is not None else None
    if frozen is not None:
        model = replace(frozen.config, num_joints=max(model.num_joints, frozen.config.num_joints))
    items, unseen = split_unseen(load_items(items_folder))
    train(LatticeTask(model, task, items, unseen, loop.device, frozen=frozen), loop)


def train_cube_baseline(items_folder: Path, loop: LoopConfig) -> None:
    """Train a small published tokenizer, unquantised, for comparison."""
    items, unseen = split_unseen(load_items(items_folder))
    train(CubeTask(small_cube(), CubeTaskConfig(), items, unseen), loop)


def train_colors(
    items_folder: Path, shape_run: Path, loop: LoopConfig, color: ColorConfig, decoder_of: Path | None = None
) -> None:
    """Train the colour half of the tokenizer on top of a trained shape half, or only the decoder of a run."""
    shape = load_shape(shape_run)
    frozen = load_colors(decoder_of, shape.config) if decoder_of is not None else None
    items, unseen = split_unseen(load_items(items_folder))
    train(ColorTask(frozen.config if frozen else color, ColorTaskConfig(), shape, items, unseen, frozen=frozen), loop)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerRuns:
    """Folders of the two runs that make a tokenizer."""

    shape: Path
    colors: Path


def train_decoder(
    items_folder: Path, tokenizer: TokenizerRuns, loop: LoopConfig, decoder: DecoderConfig, task: DecoderTaskConfig
) -> None:
    """Train the decoder on the token rows of a trained tokenizer."""
    code = load_code(tokenizer)
    text = StaticTextEncoder.load()
    decoder = replace(
        decoder,
        shape_model_vocab_size=code.num_ids,
        shape_model_embed_dim=len(code.shape.config.levels),
        text_model_embed_dim=text.width,
        num_positions=len(code.ranges),
    )
    tokens, unseen = kept_tokens(code, items_folder, loop.out / "tokens")
    train(
        DecoderTask(
            decoder,
            task,
            code,
            text=text,
            captioner=augmented_caption,
            train=tokens,
            unseen=unseen,
            device=loop.device,
        ),
        loop,
    )


def bundle(tokenizer: TokenizerRuns, decoder_run: Path, out: Path) -> Path:
    """Write the averaged weights of three runs as one model file; its path."""
    state = load_state(decoder_run)
    config = DecoderConfig(**state["description"]["model"])
    code = load_code(tokenizer)
    factored = FactoredDecoder(CubeDecoder(config), shared_rows(code, config.vocab_size))
    factored.load_state_dict(state["average"])
    num_text = state["description"]["task"]["num_text"]
    whole = DefaultConfig(shape=code.shape.config, color=code.paint.config, decoder=config, num_text=num_text)
    return save_default(DefaultWeights(config=whole, code=code, decoder=factored.folded()), out)


def load_code(runs: TokenizerRuns) -> LatticeCode:
    """The tokenizer of two runs."""
    shape = load_shape(runs.shape)
    paint = load_colors(runs.colors, shape.config)
    code = LatticeCode(shape.config, paint.config)
    code.shape, code.paint = shape, paint
    return code.eval().requires_grad_(False)


def load_colors(run: Path, shape: LatticeConfig) -> LatticeColors:
    """The averaged colours of a run."""
    state = load_state(run)
    paint = LatticeColors(ColorConfig(**_tuples(state["description"]["model"])), shape)
    paint.load_state_dict(state["average"])
    return paint.eval().requires_grad_(False)


def load_shape(run: Path) -> LatticeTokenizer:
    """The averaged shape tokenizer of a run."""
    state = load_state(run)
    model = LatticeTokenizer(LatticeConfig(**_tuples(state["description"]["model"])))
    model.load_state_dict(state["average"])
    return model.eval().requires_grad_(False)


def load_state(run: Path) -> dict[str, Any]:
    """The checkpoint of a run.

    Raises:
        InputError: there is none.
    """
    path = run / "state.pt"
    if not path.is_file():
        raise InputError(f"{path} is missing; name the --out folder of a finished `helicube train` run")
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _tuples(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
