"""The proportions that are asked for: which may be, and what to tell where a model knows of none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from helicube.errors import InputError
from helicube.pipelines.shape_model import ShapeModel

__all__ = ["box_notes", "parse_box"]


def parse_box(box: Sequence[float] | None) -> NDArray[np.float32] | None:
    """Sizes with the longest side 1.

    Raises:
        InputError: not three positive finite numbers, or flatter than the model can tell.
    """
    if box is None:
        return None
    sizes = np.asarray(box, dtype=np.float64)
    if sizes.shape != (3,) or not np.isfinite(sizes).all() or (sizes <= 0).any():
        raise InputError(f"box {tuple(box)} must be three sizes above zero: x y z, such as 1 2 1")
    if sizes.max() / sizes.min() > 64:
        raise InputError(f"box {tuple(box)} is too flat; its longest side may be at most 64 times the shortest")
    return np.asarray(sizes / sizes.max(), dtype=np.float32)


def box_notes(model: ShapeModel, sizes: NDArray[np.float32] | None) -> tuple[str, ...]:
    """What to tell of a box that was asked for: nothing, unless the model knows of none."""
    if sizes is None or model.decoder.config.use_bbox or (model.forced(sizes) >= 0).any():
        return ()
    return ("this model takes no box; the object was made without one, and its mesh stretched to these proportions",)
