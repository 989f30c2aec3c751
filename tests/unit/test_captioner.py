"""What a training step reads: a caption and a palette that belong together."""

from __future__ import annotations

import numpy as np

from helicube.train.captioner import augmented_caption
from helicube.train.shards import ItemInfo

PALETTE = np.array([[120, 70, 40], [200, 30, 30]], dtype=np.uint8)
COUNTS = np.array([600, 200], dtype=np.uint16)


def info(*captions: str) -> ItemInfo:
    return ItemInfo(
        id="x", class_name="table", subclass="table", split="train", captions=captions, captions_name_colors=True
    )


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
        assert caption
    assert 5 < repainted < 35


def test_captions_that_become_the_same_are_no_trouble() -> None:
    for seed in range(40):
        same = info("a brown and red table", "a red and red table", "a brown table", "a red table", "a table")
        caption, _ = augmented_caption(same, PALETTE, COUNTS, np.random.default_rng(seed))
        assert caption


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
