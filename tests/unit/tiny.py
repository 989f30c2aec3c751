"""A tiny default model of random weights, for tests of everything around it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import DefaultConfig, DefaultWeights
from helicube.models.cube.lattice import LatticeConfig
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.lattice_colors import ColorConfig
from helicube.models.cube.text import TextStates

WIDTH = 12


class Words:
    """A text encoder of one random vector per word."""

    width, max_states = WIDTH, 6

    def encode(self, prompts: Sequence[str]) -> TextStates:
        states = torch.zeros(len(prompts), 1 + max(len(p.split()) for p in prompts), WIDTH)
        for b, prompt in enumerate(prompts):
            for t, word in enumerate(prompt.split()):
                seed = int.from_bytes(word.encode()[:6], "little")
                states[b, t + 1] = torch.randn(WIDTH, generator=torch.Generator().manual_seed(seed))
        lengths = torch.tensor([1 + len(prompt.split()) for prompt in prompts])
        return TextStates(states=states, lengths=lengths, notes=((),) * len(prompts))


def tiny_weights(text_width: int = WIDTH) -> DefaultWeights:
    """Two cells per side, 15 ids a row."""
    torch.manual_seed(3)
    shape = LatticeConfig(grid=2, voxels_per_cell=8, width=24, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
                          num_joints=1)  # fmt: skip
    color = ColorConfig(palette_size=3, width=16, num_heads=2, num_layers=1)
    code = LatticeCode(shape, color)
    decoder = DecoderConfig(n_layer=2, n_single_layer=1, n_head=2, n_embd=32, shape_model_vocab_size=code.num_ids,
                            text_model_embed_dim=text_width, shape_model_embed_dim=4,
                            num_positions=len(code.ranges))  # fmt: skip
    config = DefaultConfig(shape=shape, color=color, decoder=decoder, num_text=8)
    return DefaultWeights(config=config, code=code.eval(), decoder=CubeDecoder(decoder).eval())
