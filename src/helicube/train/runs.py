"""The training runs behind `helicube train`: which task, on which items, into which folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helicube.errors import InputError
from helicube.geometry.box_sample import RESOLUTION
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import load_default
from helicube.models.cube.formats import hold_matrices
from helicube.models.cube.lattice import LatticeConfig
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig
from helicube.models.cube.text_static import BUNDLED_TEXT_WEIGHTS, StaticTextEncoder, table_of
from helicube.train import decoder_task
from helicube.train.captioner import augmented_caption
from helicube.train.color_task import ColorTask, ColorTaskConfig
from helicube.train.cube_task import CubeTask, CubeTaskConfig, small_cube
from helicube.train.decoder_task import DecoderTask, DecoderTaskConfig
from helicube.train.items import load_items, split_unseen
from helicube.train.lattice_task import LatticeTask, LatticeTaskConfig
from helicube.train.loop import LoopConfig, train
from helicube.train.shards import ItemSet
from helicube.train.state_file import STATE_FILE
from helicube.train.text_table import copy_table, table_digest
from helicube.train.token_set import TokenSet, kept_tokens
from helicube.train.trained_runs import (
    TokenizerRuns,
    load_code,
    load_colors,
    load_shape,
    load_state,
)

__all__ = [
    "decoder_sizes",
    "train_colors",
    "train_cube_baseline",
    "train_decoder",
    "train_shape",
    "tune_decoder",
]

# Channels of a head of the decoder's attention; layers and width where nothing is said of them.
HEAD = 64
LAYERS, WIDTH = 4, 256


def train_shape(
    items_folder: Path, loop: LoopConfig, model: LatticeConfig, task: LatticeTaskConfig, decoder_of: Path | None = None
) -> None:
    """Train the shape half of the tokenizer, or only the decoder of a run.

    Raises:
        InputError: the grid fits neither the items nor the colours.
    """
    frozen = load_shape(decoder_of) if decoder_of is not None else None
    if frozen is not None:
        model = replace(frozen.config, num_joints=max(model.num_joints, frozen.config.num_joints))
    check_grid(model, ColorConfig())
    items, unseen = _split(items_folder)
    train(LatticeTask(model, task, items, unseen, loop.device, frozen=frozen), loop)


def train_cube_baseline(items_folder: Path, loop: LoopConfig, task: CubeTaskConfig) -> None:
    """Train a small published tokenizer, unquantised, for comparison."""
    items, unseen = _split(items_folder)
    train(CubeTask(small_cube(), task, items, unseen, loop.device), loop)


def train_colors(
    items_folder: Path, shape_run: Path, loop: LoopConfig, color: ColorConfig, decoder_of: Path | None = None
) -> None:
    """Train the colour half of the tokenizer on top of a trained shape half, or only the decoder of a run."""
    shape = load_shape(shape_run)
    check_grid(shape.config, color)
    frozen = load_colors(decoder_of, shape.config) if decoder_of is not None else None
    items, unseen = _split(items_folder)
    model = frozen.config if frozen else color
    train(ColorTask(model, ColorTaskConfig(), shape, items, unseen, device=loop.device, frozen=frozen), loop)


def train_decoder(
    items_folder: Path,
    tokenizer: TokenizerRuns,
    loop: LoopConfig,
    decoder: DecoderConfig,
    task: DecoderTaskConfig,
    *,
    text: Path | None = None,
) -> None:
    """Train the decoder on the token rows of a trained tokenizer.

    Args:
        text: folder of the table that prompts are read with, as `helicube train text` writes it, kept as `text` in the
            folder of the run; None is the bundled one.
    """
    _train_decoder(items_folder, load_code(tokenizer), loop, decoder, task, text=text or BUNDLED_TEXT_WEIGHTS)


def tune_decoder(items_folder: Path, model: Path, loop: LoopConfig, task: DecoderTaskConfig) -> None:
    """Go on with the decoder of a whole model, on the token rows of its own tokenizer.

    Raises:
        CheckpointError: the folder holds no model of `helicube train`.
    """
    weights = load_default(model)
    hold_matrices(weights.decoder, "float32", native=False)
    task = replace(task, num_text=weights.config.num_text)
    sizes = weights.config.decoder
    _train_decoder(items_folder, weights.code, loop, sizes, task, text=table_of(model), start=weights.decoder)


def _train_decoder(
    items_folder: Path,
    code: LatticeCode,
    loop: LoopConfig,
    decoder: DecoderConfig,
    task: DecoderTaskConfig,
    *,
    text: Path,
    start: CubeDecoder | None = None,
) -> None:
    tokens, unseen = _tokens(items_folder, code)
    if (loop.out / STATE_FILE).is_file():
        load_state(loop.out, decoder_task.KIND)
    if text != BUNDLED_TEXT_WEIGHTS:
        copy_table(text, loop.out / "text")
    encoder = StaticTextEncoder.load(text)
    ids = DecoderTask(
        # What has learnt already fits.
        decoder if start is not None else _fitted(decoder, code, encoder.width),
        task,
        code,
        text=encoder,
        captioner=augmented_caption,
        train=tokens,
        unseen=unseen,
        text_digest=table_digest(text),
        start=start,
        device=loop.device,
    )
    train(ids, loop)


def _tokens(items_folder: Path, code: LatticeCode) -> tuple[TokenSet, TokenSet]:
    """Rows to learn from, and those kept back."""
    tokens, unseen = kept_tokens(code, items_folder)
    _check_enough(items_folder, tokens, unseen)
    return tokens, unseen


def _fitted(decoder: DecoderConfig, code: LatticeCode, text_width: int) -> DecoderConfig:
    return replace(
        decoder,
        shape_model_vocab_size=code.num_ids,
        shape_model_embed_dim=len(code.shape.config.levels),
        text_model_embed_dim=text_width,
        num_positions=len(code.ranges),
    )


def decoder_sizes(layers: int | None = None, width: int | None = None) -> DecoderConfig:
    """A decoder of `layers` dual-stream layers and one single-stream layer.

    Raises:
        InputError: the width is not whole heads.
    """
    layers, width = layers or LAYERS, WIDTH if width is None else width
    if width < HEAD or width % HEAD:
        near = max(HEAD, round(width / HEAD) * HEAD)
        raise InputError(f"width={width} must be a multiple of {HEAD}, one head each; give --width {near}")
    return DecoderConfig(n_layer=layers, n_single_layer=1, n_embd=width, n_head=width // HEAD)


def check_grid(shape: LatticeConfig, color: ColorConfig) -> None:
    """Raise InputError unless the input voxels of the lattice divide the items', and colours can merge its cells."""
    cells = [
        g for g in range(1, RESOLUTION + 1) if not RESOLUTION % (g * shape.voxels_per_cell) and not g % color.merge
    ]
    if shape.grid not in cells:
        choices = ", ".join(map(str, cells))
        raise InputError(f"grid={shape.grid} does not fit the items' {RESOLUTION} voxels; choose --grid from {choices}")


def _split(items_folder: Path) -> tuple[ItemSet, ItemSet]:
    items, unseen = split_unseen(load_items(items_folder))
    _check_enough(items_folder, items, unseen)
    return items, unseen


def _check_enough(folder: Path, items: ItemSet | TokenSet, unseen: ItemSet | TokenSet) -> None:
    if not len(items) or not len(unseen):
        raise InputError(
            f"{folder} holds {len(items)} items to learn from and {len(unseen)} kept back; both need one: "
            "prepare more objects (helicube train prepare --procedural)"
        )
