"""Rows that codes share in training add up to an ordinary decoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.lattice import LatticeConfig
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig
from helicube.models.cube.palette import color_ids
from helicube.train.factored_decoder import FactoredDecoder, shared_rows

SHAPE = LatticeConfig(grid=2, voxels_per_cell=8, width=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
COLOR = ColorConfig(palette_size=3, width=16, num_heads=2, num_layers=1)
DECODER = DecoderConfig(n_layer=1, n_single_layer=1, n_head=2, n_embd=32)


def test_a_folded_decoder_gives_the_same_logits() -> None:
    torch.manual_seed(0)
    code = LatticeCode(SHAPE, COLOR)
    config = replace(DECODER, shape_model_vocab_size=code.num_ids, text_model_embed_dim=8, num_positions=9)
    factored = FactoredDecoder(CubeDecoder(config), shared_rows(code, config.vocab_size))
    nn.init.normal_(factored.shared_in.weight)
    nn.init.normal_(factored.shared_out.weight)
    ids, states = torch.randint(code.num_ids, (2, 9)), torch.randn(2, 3, 8)
    decoder = factored.decoder
    hidden = decoder.whole(F.embedding(ids, factored.table()), decoder.condition(states))
    folded = factored.folded()
    torch.testing.assert_close(folded(ids, folded.condition(states)), F.linear(hidden, factored.head()))
    assert not torch.equal(folded.lm_head.weight, decoder.lm_head.weight)


def test_codes_share_the_levels_that_they_have_in_common() -> None:
    code = LatticeCode(SHAPE, COLOR)
    shared = shared_rows(code, code.num_ids + 3)
    channels = len(SHAPE.levels)
    pairs = channels * (channels - 1) // 2
    assert (shared[: code.first_color].sum(1) == channels + pairs).all()
    colors = shared[code.first_color : code.first_paint]
    assert (colors[:-1].sum(1) == 6).all(), "three channels and three pairs"
    assert not colors[-1].any(), "unused entries are no colour"
    red, pink, blue = (colors[color_ids(np.array(c, dtype=np.uint8))] for c in ([255, 0, 0], [255, 0, 85], [0, 0, 255]))
    assert red @ pink == 3
    assert red @ blue == 1
    # Ids 0 and 1 differ in the first channel alone.
    assert shared[0] @ shared[1] == channels - 1 + (channels - 1) * (channels - 2) / 2
