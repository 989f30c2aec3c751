"""What a training step reads: a caption and a palette that belong together."""

from __future__ import annotations

import re

import numpy as np

from helicube.train.captioner import augmented_caption
from helicube.train.color_names import color_name
from helicube.train.color_words import COLOR_SYNONYMS
from helicube.train.shards import ItemInfo

PALETTE = np.array([[120, 70, 40], [200, 30, 30]], dtype=np.uint8)
COUNTS = np.array([600, 200], dtype=np.uint16)


def info(*captions: str) -> ItemInfo:
    return ItemInfo(
        id="x", class_name="table", subclass="table", split="train", captions=captions, captions_name_colors=True
    )


def colors_told(caption: str) -> set[str]:
    """Catalogue names of the colours in a caption, whichever words it has for them."""
    names = {word: name for name, words in COLOR_SYNONYMS.items() for word in (name, *words)}
    found = re.findall("|".join(sorted(names, key=len, reverse=True)), caption)
    return {names[word] for word in found}


def test_a_caption_without_colours_keeps_the_palette() -> None:
    for seed in range(40):
        _, palette = augmented_caption(info("a round table"), PALETTE, COUNTS, np.random.default_rng(seed))
        np.testing.assert_array_equal(palette, PALETTE)


def test_a_caption_with_colours_is_sometimes_repainted_and_then_names_another() -> None:
    repainted = 0
    for seed in range(40):
        caption, palette = augmented_caption(
            info("a brown and red table"), PALETTE, COUNTS, np.random.default_rng(seed)
        )
        assert palette.shape == PALETTE.shape
        repainted += bool((palette != PALETTE).any())
        assert colors_told(caption) <= {color_name(color) for color in palette}, (caption, palette)
    assert 5 < repainted < 35


def test_captions_that_become_the_same_are_no_trouble() -> None:
    for seed in range(40):
        same = info("a brown and red table", "a red and red table", "a brown table", "a red table", "a table")
        caption, palette = augmented_caption(same, PALETTE, COUNTS, np.random.default_rng(seed))
        assert colors_told(caption) <= {color_name(color) for color in palette}, (caption, palette)


def test_some_captions_are_the_class_alone_and_then_nothing_is_repainted() -> None:
    phone = ItemInfo(
        id="x", class_name="gadget", subclass="phone", split="train", captions=("a purple phone",),
        captions_name_colors=True,
    )  # fmt: skip
    bare = 0
    for seed in range(400):
        caption, palette = augmented_caption(phone, PALETTE, COUNTS, np.random.default_rng(seed))
        if "gadget" in caption:
            bare += 1
            np.testing.assert_array_equal(palette, PALETTE)
    assert 10 < bare < 80
