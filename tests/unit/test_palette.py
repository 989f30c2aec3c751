"""Palettes of objects."""

from __future__ import annotations

import numpy as np

from helicube.models.cube.palette import LEVELS, UNUSED, color_ids, colors_of_ids, find_palette


def test_ids_and_colors_are_a_bijection() -> None:
    ids = np.arange(UNUSED)
    colors = colors_of_ids(ids)
    assert len(np.unique(colors, axis=0)) == LEVELS**3
    assert np.array_equal(color_ids(colors), ids)


def test_nearest_color_is_within_half_a_step() -> None:
    colors = np.random.default_rng(0).integers(0, 256, (5000, 3), dtype=np.uint8)
    error = np.abs(colors_of_ids(color_ids(colors)).astype(int) - colors)
    assert error.max() <= 255 / (LEVELS - 1) / 2 + 0.5


def test_distinct_colors_are_found_in_order_of_area() -> None:
    truth = np.array([[200, 30, 30], [20, 20, 200], [240, 240, 240]], dtype=np.uint8)
    entry = np.repeat([1, 0, 2], [500, 300, 200])
    palette, chosen = find_palette(truth[entry], 6)
    assert np.array_equal(palette, truth[[1, 0, 2]])
    assert np.array_equal(palette[chosen], truth[entry])


def test_many_shades_become_few_and_noise_stays_with_its_base() -> None:
    rng = np.random.default_rng(1)
    base = np.array([[180, 40, 40], [40, 160, 60]])
    entry = rng.integers(0, 2, 4000)
    noisy = (base[entry] + rng.integers(-20, 21, (4000, 3))).astype(np.uint8)
    palette, chosen = find_palette(noisy, 2)
    assert len(palette) == 2
    first = int(np.bincount(entry).argmax())
    assert np.array_equal(chosen == 0, entry == first)
    assert np.abs(palette[0].astype(int) - base[first]).max() < 4


def test_palette_never_exceeds_its_size() -> None:
    colors = np.random.default_rng(2).integers(0, 256, (4096, 3), dtype=np.uint8)
    for size in (1, 2, 6):
        palette, chosen = find_palette(colors, size)
        assert len(palette) == size == chosen.max() + 1
