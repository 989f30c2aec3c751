"""A handful of small tasks, one of each kind, on objects made of boxes: for tests of the steps themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from helicube.geometry.box_sample import BAND, POINTS, RESOLUTION
from helicube.models.cube.decoder import DecoderConfig
from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig
from helicube.models.cube.text_static import StaticTextEncoder
from helicube.models.cube.tokenizer import TokenizerConfig
from helicube.train.color_task import ColorTask, ColorTaskConfig
from helicube.train.cube_task import CubeTask, CubeTaskConfig
from helicube.train.decoder_task import DecoderTask, DecoderTaskConfig
from helicube.train.lattice_task import LatticeTask, LatticeTaskConfig
from helicube.train.loop import Task
from helicube.train.shards import ItemInfo, ItemSet
from helicube.train.token_set import TokenSet

SHAPE = LatticeConfig(grid=2, voxels_per_cell=8, width=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
                      num_joints=1)  # fmt: skip
COLOR = ColorConfig(palette_size=3, width=16, num_heads=2, num_layers=1)
DECODER = DecoderConfig(n_layer=1, n_single_layer=1, n_head=2, n_embd=32)
CUBE = TokenizerConfig(
    num_encoder_latents=8,
    embed_dim=4,
    width=24,
    num_heads=2,
    num_freqs=8,
    num_encoder_layers=2,
    encoder_cross_attention_levels=(0,),
    num_decoder_layers=1,
    num_codes=16,
)


def make_task(kind: str, device: str) -> Task:
    """A task of two items a step."""
    torch.manual_seed(0)
    items = boxes()
    if kind == "shape":
        few = LatticeTaskConfig(batch=2, band_points=256, uniform_points=64, eval_items=2)
        return LatticeTask(SHAPE, few, items, items, device)
    if kind == "colors":
        settings = ColorTaskConfig(batch=2, points=256, eval_items=2)
        return ColorTask(COLOR, settings, LatticeTokenizer(SHAPE), items, items, device=device)
    if kind == "cube":
        cloud = CubeTaskConfig(batch=2, cloud_points=64, band_points=64, uniform_points=64, eval_items=2)
        return CubeTask(CUBE, cloud, items, items, device)
    return make_decoder_task(items.infos, device)


def make_decoder_task(infos: tuple[ItemInfo, ...], device: str) -> DecoderTask:
    code, text, tokens = LatticeCode(SHAPE, COLOR), StaticTextEncoder.load(), rows(infos)
    sizes = replace(
        DECODER, shape_model_vocab_size=code.num_ids, text_model_embed_dim=text.width, num_positions=len(code.ranges)
    )
    return DecoderTask(
        sizes,
        DecoderTaskConfig(batch=2, num_text=16, dropout_text=0, eval_rows=2),
        code,
        text=text,
        captioner=lambda info, palette, *_: (info.class_name, palette),
        train=tokens,
        unseen=tokens,
        device=device,
    )


def boxes() -> ItemSet:
    """Four boxes of different thickness, red on one side and blue on the other."""
    rng, n = np.random.default_rng(0), 4
    infos = tuple(
        ItemInfo(id=f"box-{i}", class_name="box", subclass="", split="train", captions=(), captions_name_colors=False)
        for i in range(n)
    )
    inside = np.zeros((n, RESOLUTION, RESOLUTION, RESOLUTION), np.bool_)
    for i in range(n):
        inside[i, 8 : 40 + 12 * i, 8:88, 8:88] = True
    points = rng.uniform(-0.9, 0.9, (n, POINTS, 3))
    colors = np.where(points[..., :1] > 0, [200, 20, 20], [20, 20, 200])
    return ItemSet(
        infos=infos,
        bits=np.packbits(inside.reshape(n, -1), axis=1),
        band=rng.integers(0, RESOLUTION**3, (n, BAND), dtype=np.uint32),
        points=np.round(points * 32767).astype(np.int16),
        normals=np.full((n, POINTS, 3), 73, np.int8),
        colors=colors.astype(np.uint8),
        extents=np.full((n, 3), 1.92, np.float32),
    )


def rows(infos: tuple[ItemInfo, ...]) -> TokenSet:
    """Tokens by chance."""
    rng, n, code = np.random.default_rng(0), len(infos), LatticeCode(SHAPE, COLOR)
    return TokenSet(
        infos=infos,
        shape_ids=rng.integers(0, code.shape.quantizer.num_codes, (n, 2, SHAPE.num_tokens)).astype(np.int16),
        palettes=rng.integers(0, 256, (n, 3, 3)).astype(np.uint8),
        counts=np.full((n, 3), 100, np.uint16),
        paint_ids=rng.integers(0, code.paint.quantizer.num_codes, (n, 2, code.paint.num_tokens)).astype(np.int16),
        sizes=np.ones((n, 3), np.float32),
    )
