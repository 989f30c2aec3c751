"""A decoder whose token table and output head share what codes have in common.

A code of the lattice is a few channels, each at one of a few levels, and so is a colour: those that agree in some of
them mean similar things. Trained alone, thousands of rows each see a handful of examples; here a row is the sum of one
of its own and of shared ones, for each channel's level and each pair of channels' levels. `folded` adds them up into an
ordinary decoder.

V ids, F shared rows, D width.
"""

from __future__ import annotations

import copy
from itertools import combinations

import torch
from torch import Tensor, nn

from helicube.models.cube.decoder import CubeDecoder
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.palette import LEVELS
from helicube.nn.fsq import FSQ

__all__ = ["FactoredDecoder", "shared_rows"]


class FactoredDecoder(nn.Module):
    """A decoder, and what is added to the rows of its token table and its head.

    Args:
        shared_VF: which shared rows each id has, as 0 or 1.
    """

    shared: Tensor

    def __init__(self, decoder: CubeDecoder, shared_VF: Tensor) -> None:
        super().__init__()
        self.decoder = decoder
        self.register_buffer("shared", shared_VF, persistent=False)
        count, width = shared_VF.shape[1], decoder.config.n_embd
        # Embeddings, so that the optimiser treats them as it does the tables that they are part of.
        self.shared_in, self.shared_out = nn.Embedding(count, width), nn.Embedding(count, width)
        nn.init.zeros_(self.shared_in.weight)
        nn.init.zeros_(self.shared_out.weight)

    def table(self) -> Tensor:
        """(V, D), rows of ids as the first layer sees them."""
        return self.decoder.transformer.wte.weight + self.shared @ self.shared_in.weight

    def head(self) -> Tensor:
        """(V, D), rows of the output head."""
        return self.decoder.lm_head.weight + self.shared @ self.shared_out.weight

    @torch.no_grad()
    def folded(self) -> CubeDecoder:
        """The same as a decoder without shared rows."""
        decoder = copy.deepcopy(self.decoder)
        decoder.transformer.wte.weight.copy_(self.table())
        decoder.lm_head.weight.copy_(self.head())
        return decoder


def shared_rows(code: LatticeCode, vocab_size: int) -> Tensor:
    """Which levels, and pairs of levels, the shape codes, paint codes and colours have; (V, F) of 0 and 1."""
    blocks = [
        (0, _levels(code.shape.quantizer)),
        (code.first_paint, _levels(code.paint.quantizer)),
        # Three channels in base 10, of which FSQ knows how to take numbers apart.
        (code.first_color, _levels(FSQ((LEVELS,) * 3))),
    ]
    shared = torch.zeros(vocab_size, sum(block.shape[1] for _, block in blocks))
    column = 0
    for first, block in blocks:
        shared[first : first + len(block), column : column + block.shape[1]] = block
        column += block.shape[1]
    return shared


def _levels(quantizer: FSQ) -> Tensor:
    """(codes, F): one column for each level of each channel, and for each pair of levels of two channels."""
    digits = quantizer.digits(torch.arange(quantizer.num_codes)).unbind(-1)
    alone = [nn.functional.one_hot(d, n) for d, n in zip(digits, quantizer.levels, strict=True)]
    pairs = [
        nn.functional.one_hot(digits[i] * quantizer.levels[j] + digits[j], quantizer.levels[i] * quantizer.levels[j])
        for i, j in combinations(range(len(digits)), 2)
    ]
    return torch.cat([*alone, *pairs], dim=1).float()
