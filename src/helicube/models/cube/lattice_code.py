"""The default model's sequence: box, shape, palette and paint, as one row of ids.

    step      0 … 2      the box's x, y, z sizes
              3 … 218    the shape, cell by cell, x slowest
              219 … 224  the palette, by area
              225 … 251  the paint: which entry where, in a coarser lattice

Ids of the four kinds do not overlap: shape codes come first, then palette colours, paint codes and box sizes, then the
decoder's BOS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from helicube.models.cube.lattice import LatticeConfig, LatticeTokenizer
from helicube.models.cube.lattice_colors import ColorConfig, LatticeColors
from helicube.models.cube.palette import NUM_COLOR_IDS, UNUSED, color_ids, colors_of_ids, find_palette
from helicube.nn.digest import weights_digest

__all__ = ["BOX_LEVELS", "LatticeCode", "Shape", "box_ids", "sizes_of_ids"]

# Box sizes are shares of the longest side, on a logarithmic scale from 1/SMALLEST to 1: at most 3.4 % off.
BOX_LEVELS, SMALLEST = 64, 64.0

Points = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoded object in box coordinates: its bounding box spans ±0.96 along every axis."""

    # (3,) sizes of the true box, longest side 1.
    sizes: NDArray[np.float32]
    # (n, 3) points of [−1, 1]³ to (n,) occupancy logits, > 0 inside.
    field: Callable[[Points], NDArray[np.float32]]
    # (n, 3) points to (n, 3) uint8 sRGB; means something near the surface. None where the model knows no colours.
    colors: Callable[[Points], NDArray[np.uint8]] | None
    # False where the field is in true proportions, whatever box was asked for; sizes are 1, 1, 1 then.
    stretched: bool = True


def box_ids(sizes: NDArray[np.floating]) -> NDArray[np.int64]:
    """Box sizes, in any unit, to ids below BOX_LEVELS."""
    share = np.asarray(sizes, dtype=np.float64) / np.max(sizes)
    level = np.round((1 + np.log(share) / np.log(SMALLEST)) * (BOX_LEVELS - 1))
    return np.asarray(np.clip(level, 0, BOX_LEVELS - 1), dtype=np.int64)


def sizes_of_ids(ids: NDArray[np.integer]) -> NDArray[np.float32]:
    """Ids below BOX_LEVELS to sizes, the longest 1."""
    sizes = np.exp((ids / (BOX_LEVELS - 1) - 1) * np.log(SMALLEST))
    return np.asarray(sizes / sizes.max(), dtype=np.float32)


class LatticeCode(nn.Module):
    """Tokenizer of shapes and colours, and the layout of their ids."""

    def __init__(self, shape: LatticeConfig, color: ColorConfig) -> None:
        super().__init__()
        self.shape = LatticeTokenizer(shape)
        self.paint = LatticeColors(color, shape)
        self.palette_size = color.palette_size
        # First id of each kind, and the one after the last.
        self.first_color = self.shape.quantizer.num_codes
        self.first_paint = self.first_color + NUM_COLOR_IDS
        self.first_size = self.first_paint + self.paint.quantizer.num_codes
        self.num_ids = self.first_size + BOX_LEVELS

    def encoder_state(self) -> dict[str, Tensor]:
        """All weights that ids depend on, by name: with equal ones, ids mean the same."""
        encoders = ("shape.encoder.", *(f"paint.{name}" for name in self.paint.ENCODER))
        return {name: tensor for name, tensor in self.state_dict().items() if name.startswith(encoders)}

    def encoder_digest(self) -> str:
        """A short name of these weights."""
        return weights_digest(self.encoder_state())

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Per step, the first id that may stand there and the one after the last."""
        return (
            ((self.first_size, self.num_ids),) * 3
            + ((0, self.first_color),) * self.shape.config.num_tokens
            + ((self.first_color, self.first_paint),) * self.palette_size
            + ((self.first_paint, self.first_size),) * self.paint.num_tokens
        )

    def forced(self, sizes: NDArray[np.floating] | None) -> NDArray[np.int64]:
        """Ids that a request fixes, −1 elsewhere; (n,)."""
        ids = np.full(len(self.ranges), -1, dtype=np.int64)
        if sizes is not None:
            ids[:3] = self.first_size + box_ids(sizes)
        return ids

    @torch.inference_mode()
    def encode(
        self,
        filled_VVV: NDArray[np.float32],
        sizes: NDArray[np.floating],
        points: Points,
        colors: NDArray[np.uint8],
    ) -> NDArray[np.int64]:
        """An object to its row of ids, (n,).

        Args:
            filled_VVV: filled shares of the voxels of the box.
            sizes: x, y, z of the true box, in any unit.
            points, colors: (n, 3) points of the surface in box coordinates, and their sRGB.
        """
        shape_ids = self.shape.encode(torch.from_numpy(filled_VVV)[None])
        palette, entry = find_palette(colors, self.palette_size)
        codes = self.shape.quantizer.to_codes(shape_ids)
        shares = self.paint.shares(torch.from_numpy(points)[None], torch.from_numpy(entry)[None])
        paint_ids = self.paint.quantizer.to_ids(self.paint.to_channels(codes, shares))
        palette_ids = np.full(self.palette_size, UNUSED)
        palette_ids[: len(palette)] = color_ids(palette)
        return np.concatenate([
            self.first_size + box_ids(sizes),
            shape_ids[0].numpy(),
            self.first_color + palette_ids,
            self.first_paint + paint_ids[0].numpy(),
        ])  # fmt: skip

    @torch.inference_mode()
    def decode(self, ids_N: NDArray[np.int64]) -> Shape:
        """A row of ids to an object."""
        ends = np.cumsum([3, self.shape.config.num_tokens, self.palette_size])
        box, shape_ids, palette_ids, paint_ids = np.split(ids_N, ends)
        latents = self._latents(torch.from_numpy(shape_ids)[None])
        volume = self.shape.decoder.volume(latents)
        codes = self.paint.quantizer.to_codes(torch.from_numpy(paint_ids - self.first_paint)[None])
        choice = self.paint.volume(latents, codes)
        palette = palette_ids - self.first_color
        used = torch.from_numpy(palette != UNUSED)

        @torch.inference_mode()
        def field(points: Points) -> NDArray[np.float32]:
            return np.asarray(self.shape.field(volume, torch.from_numpy(points)[None])[0].numpy())

        @torch.inference_mode()
        def colors(points: Points) -> NDArray[np.uint8]:
            logits = self.paint.choose(choice, torch.from_numpy(points)[None])[0]
            entry = torch.where(used, logits, -torch.inf).argmax(dim=-1).numpy()
            return np.asarray(colors_of_ids(palette)[entry])

        return Shape(
            sizes=sizes_of_ids(box - self.first_size), field=field, colors=colors if bool(used.any()) else None
        )

    @property
    def num_shape_ids(self) -> int:
        """Ids from the start that decide the box and the shape."""
        return 3 + self.shape.config.num_tokens

    def without_colors(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """A whole row of ids from its first `num_shape_ids`: a shape without colours."""
        palette = np.full(self.palette_size, self.first_color + UNUSED)
        paint = np.full(self.paint.num_tokens, self.first_paint)
        return np.concatenate([ids[: self.num_shape_ids], palette, paint])

    def _latents(self, shape_ids_BN: Tensor) -> Tensor:
        return self.shape.decoder.latents(self.shape.quantizer.to_codes(shape_ids_BN))
