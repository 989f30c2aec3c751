"""Rows of ids with captions to match: what a training step of the decoder, or of what judges its ids, sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.models.cube.lattice_code import LatticeCode, box_ids
from helicube.models.cube.palette import UNUSED, color_ids
from helicube.train.shards import ItemInfo
from helicube.train.token_set import TokenSet

__all__ = ["Captioner", "TokenRows", "class_weights", "token_rows"]

# Of an item, its palette (k, 3) and how much each entry paints (k,): a caption and a palette to match.
Captioner = Callable[
    [ItemInfo, NDArray[np.uint8], NDArray[np.uint16], np.random.Generator], tuple[str, NDArray[np.uint8]]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRows:
    """Rows of B objects."""

    # (B, n) int64, as `LatticeCode` lays them out.
    ids: NDArray[np.int64]
    captions: list[str]
    # (B, 3) sizes of the box, longest 1.
    sizes: NDArray[np.float32]


def token_rows(
    code: LatticeCode,
    tokens: TokenSet,
    chosen: Sequence[int],
    captioner: Captioner,
    rng: np.random.Generator,
    *,
    mirror_share: float,
) -> TokenRows:
    """Rows of the chosen items, each with a fresh caption.

    Args:
        mirror_share: chance that an object is mirrored at x = 0.
    """
    rows, captions = [], []
    for i in chosen:
        used = np.flatnonzero(tokens.counts[i])
        caption, palette = captioner(tokens.infos[i], tokens.palettes[i, used], tokens.counts[i, used], rng)
        entries = np.full(code.palette_size, UNUSED)
        entries[: len(palette)] = color_ids(palette)
        mirror = int(rng.random() < mirror_share)
        captions.append(caption)
        rows.append(
            np.concatenate([
                code.first_size + box_ids(tokens.sizes[i]),
                tokens.shape_ids[i, mirror].astype(np.int64),
                code.first_color + entries,
                code.first_paint + tokens.paint_ids[i, mirror].astype(np.int64),
            ])
        )  # fmt: skip
    return TokenRows(ids=np.stack(rows), captions=captions, sizes=tokens.sizes[np.asarray(chosen)])


def class_weights(infos: Sequence[ItemInfo]) -> NDArray[np.float64]:
    """Chance of each item.

    Classes by the square root of their count, so that rare ones are seen often enough, and made objects apart from
    found ones, so that many of these do not crowd out the few of those.
    """
    groups = [(info.class_name, info.is_procedural) for info in infos]
    counts = Counter(groups)
    weights = np.array([counts[group] ** -0.5 for group in groups])
    return np.asarray(weights / weights.sum())
