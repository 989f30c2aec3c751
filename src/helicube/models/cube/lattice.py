"""The default shape tokenizer: a lattice of tokens in the object's own box.

The published tokenizer describes an object by a set of tokens without a place, which takes far more objects to learn
than we have. Here token (i, j, k) describes one cell of a G×G×G lattice over the bounding box, so what is learnt about
a corner or a leg in one object serves all others. Every axis of the box is stretched to the same length: thin objects
fill the lattice too, and the box is kept beside the tokens.

Shapes: B objects, G cells per side, N = G³ tokens, D width, F quantised channels, S sub-cells per side of a cell,
C channels of the feature volume, P query points, V voxels per side of the input.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.nn.fsq import FSQ

__all__ = ["LatticeConfig", "LatticeTokenizer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeConfig:
    """Sizes of the lattice tokenizer."""

    # Cells along each side of the box.
    grid: int = 6
    # Input voxels along each side of a cell; the input is the filled share of each voxel.
    voxels_per_cell: int = 8
    # Width, heads and layers of the two transformers.
    width: int = 192
    num_heads: int = 6
    num_encoder_layers: int = 3
    num_decoder_layers: int = 5
    # Values of each quantised channel; their product is the number of codes.
    levels: tuple[int, ...] = (8, 8, 8, 8)
    # Feature volume behind the field: sub-cells along each side of a cell, and channels.
    sub_cells: int = 4
    channels: int = 32
    # Width of the two hidden layers that turn a point's features into a logit.
    head_width: int = 64
    # Pairs of convolutions over the feature volume, which join what neighbouring cells say of their common border.
    num_joints: int = 0

    @property
    def num_tokens(self) -> int:
        return self.grid**3

    @property
    def input_cells(self) -> int:
        """V, input voxels along each side of the box."""
        return self.grid * self.voxels_per_cell


class Block(nn.Module):
    """Pre-norm self-attention and GELU MLP over all tokens."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_qkv = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_out = nn.Linear(4 * width, width)

    def forward(self, x_BND: Tensor) -> Tensor:
        q, k, v = self.c_qkv(self.ln_1(x_BND)).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x_BND = x_BND + self.c_proj(attended)
        y_BND: Tensor = x_BND + self.c_out(F.gelu(self.c_fc(self.ln_2(x_BND))))
        return y_BND


class Joint(nn.Module):
    """Two residual convolutions over a feature volume; at first they change nothing."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_in = nn.Conv3d(channels, channels, 3, padding=1)
        self.conv_out = nn.Conv3d(channels, channels, 3, padding=1)
        for p in self.conv_out.parameters():
            nn.init.zeros_(p)

    def forward(self, volume_BCWWW: Tensor) -> Tensor:
        return volume_BCWWW + convolved(self.conv_out, F.gelu(convolved(self.conv_in, volume_BCWWW)))


def convolved(conv: nn.Conv3d, x_BCWWW: Tensor) -> Tensor:
    """A convolution of width 3.

    On a CPU, PyTorch leaves volumes in a batch of one to a slow way of its own; as planes with their neighbours for
    channels they are a batch for a fast one: 8 instead of 36 ms for 32 × 24³ on two cores.
    """
    if len(x_BCWWW) != 1 or x_BCWWW.device.type != "cpu" or torch.is_grad_enabled():
        y: Tensor = conv(x_BCWWW)
        return y
    depth = x_BCWWW.shape[2]
    padded = F.pad(x_BCWWW[0], (0, 0, 0, 0, 1, 1))
    # (W planes, 3 · C, W, W)
    planes = torch.cat([padded[:, k : k + depth] for k in range(3)]).transpose(0, 1)
    weight = conv.weight.transpose(1, 2).flatten(1, 2)
    return F.conv2d(planes, weight, conv.bias, padding=1).transpose(0, 1)[None]


class LatticeEncoder(nn.Module):
    """Filled shares of voxels to unquantised channels of each token."""

    def __init__(self, config: LatticeConfig) -> None:
        super().__init__()
        self.config = config
        # A margin of one voxel around each cell, so that a surface on the border between two cells is seen by both.
        self.patch = config.voxels_per_cell + 2
        self.patch_in = nn.Linear(self.patch**3, config.width)
        self.patch_mid = nn.Linear(config.width, config.width)
        self.position = nn.Parameter(torch.randn(config.num_tokens, config.width) * 0.02)
        self.blocks = nn.ModuleList(Block(config.width, config.num_heads) for _ in range(config.num_encoder_layers))
        self.ln_f = nn.LayerNorm(config.width)
        self.c_in = nn.Linear(config.width, len(config.levels))

    def forward(self, filled_BVVV: Tensor) -> Tensor:
        """(B, V, V, V) in [0, 1], V = grid · voxels_per_cell, to (B, N, F)."""
        padded = F.pad(filled_BVVV, (1, 1, 1, 1, 1, 1))
        cells = padded
        for axis in (1, 2, 3):
            cells = cells.unfold(axis, self.patch, self.config.voxels_per_cell)
        patches = cells.flatten(4).flatten(1, 3)  # (B, N, patch³)
        x = self.patch_mid(F.gelu(self.patch_in(patches - 0.5))) + self.position
        for block in self.blocks:
            x = block(x)
        z: Tensor = self.c_in(self.ln_f(x))
        return z


class LatticeDecoder(nn.Module):
    """Codes to a feature volume; position and volume give the field."""

    def __init__(self, config: LatticeConfig) -> None:
        super().__init__()
        self.config = config
        self.c_out = nn.Linear(len(config.levels), config.width)
        self.position = nn.Parameter(torch.randn(config.num_tokens, config.width) * 0.02)
        self.blocks = nn.ModuleList(Block(config.width, config.num_heads) for _ in range(config.num_decoder_layers))
        self.ln_f = nn.LayerNorm(config.width)
        self.to_volume = nn.Linear(config.width, config.channels * config.sub_cells**3)
        self.joints = nn.Sequential(*(Joint(config.channels) for _ in range(config.num_joints)))
        self.head_in = nn.Linear(config.channels + 6, config.head_width)
        self.head_mid = nn.Linear(config.head_width, config.head_width)
        self.head_out = nn.Linear(config.head_width, 1)

    def latents(self, codes_BNF: Tensor) -> Tensor:
        """(B, N, F) in [−1, 1] to (B, N, D)."""
        x = self.c_out(codes_BNF) + self.position
        for block in self.blocks:
            x = block(x)
        latents: Tensor = self.ln_f(x)
        return latents

    def volume(self, latents_BND: Tensor) -> Tensor:
        """(B, N, D) to (B, C, W, W, W), W = grid · sub_cells, axes x, y, z."""
        g, s, c = self.config.grid, self.config.sub_cells, self.config.channels
        v = self.to_volume(latents_BND).reshape(-1, g, g, g, s, s, s, c)
        volume: Tensor = self.joints(v.permute(0, 7, 1, 4, 2, 5, 3, 6).reshape(-1, c, g * s, g * s, g * s))
        return volume

    def forward(self, volume_BCWWW: Tensor, points_BP3: Tensor) -> Tensor:
        """Occupancy logits at points in [−1, 1]³; (B, P), > 0 inside."""
        # grid_sample names its last coordinate after the first volume axis: flip to (z, y, x).
        where = points_BP3.flip(-1)[:, :, None, None]
        sampled = F.grid_sample(volume_BCWWW, where, mode="bilinear", padding_mode="border", align_corners=False)
        phase = points_BP3 * (torch.pi * volume_BCWWW.shape[-1] / 2)
        features = torch.cat([sampled[:, :, :, 0, 0].transpose(1, 2), phase.cos(), phase.sin()], dim=-1)
        hidden = F.relu(self.head_mid(F.relu(self.head_in(features))))
        logits: Tensor = self.head_out(hidden).squeeze(-1)
        return logits


class LatticeTokenizer(nn.Module):
    """Encoder, quantiser and decoder."""

    def __init__(self, config: LatticeConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = LatticeEncoder(config)
        self.quantizer = FSQ(config.levels)
        self.decoder = LatticeDecoder(config)

    def encode(self, filled_BVVV: Tensor) -> Tensor:
        """(B, V, V, V) filled shares to (B, N) ids."""
        return self.quantizer.to_ids(self.encoder(filled_BVVV))

    def decode(self, ids_BN: Tensor) -> Tensor:
        """(B, N) ids to the (B, C, W, W, W) volume that `field` reads."""
        return self.decoder.volume(self.decoder.latents(self.quantizer.to_codes(ids_BN)))

    def field(self, volume_BCWWW: Tensor, points_BP3: Tensor) -> Tensor:
        """Occupancy logits at (B, P, 3) points of the box [−1, 1]³; (B, P)."""
        logits: Tensor = self.decoder(volume_BCWWW, points_BP3)
        return logits
