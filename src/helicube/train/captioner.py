"""Fresh captions for every step: synonyms, templates, and other colours with the palette to match."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from helicube.train.captions import augment_caption
from helicube.train.recolor import PAINTED_CLASSES, recolor
from helicube.train.shards import ItemInfo
from helicube.train.words import with_article

__all__ = ["augmented_caption"]

# Share of rows that are recoloured if their caption names a colour.
RECOLOR = 0.5
# Share of rows whose caption is their class and nothing more: those of gadgets, vehicles, food and eight other classes
# never say the word, so that "a gadget" would be a prompt that nothing was learnt from.
BARE = 0.2
# Points that stand for the whole surface when colours are weighed.
SURFACE = 200


def augmented_caption(
    info: ItemInfo, palette: NDArray[np.uint8], counts: NDArray[np.uint16], rng: np.random.Generator
) -> tuple[str, NDArray[np.uint8]]:
    """One caption of an item, reworded, and its palette (k, 3), both perhaps recoloured: never the palette alone.

    Args:
        palette: (k, 3) sRGB.
        counts: (k,) how much of the surface each entry paints.
    """
    if rng.random() < BARE:
        return augment_caption(with_article(info.class_name), info, rng), palette
    captions, painted = info.captions, palette
    # A banana stays yellow: only what people paint is repainted.
    if info.class_name in PAINTED_CLASSES and rng.random() < RECOLOR:
        share = np.maximum(1, np.round(counts / counts.sum() * SURFACE)).astype(np.int64)
        surface, captions = recolor(np.repeat(palette, share, axis=0), captions, rng, info.captions_name_colors)
        painted = surface[np.cumsum(share) - share]
    caption = captions[int(rng.integers(len(captions)))]
    # Where nothing is said of colours, a table stays of wood.
    told = caption not in info.captions
    return augment_caption(caption, info, rng), painted if told else palette
