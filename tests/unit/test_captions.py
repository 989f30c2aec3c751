"""Colour names, class words, caption variety and recolouring."""

from __future__ import annotations

import re

import numpy as np
import pytest

from helicube.train.captions import CLASS_WORDS, augment_caption, recolor
from helicube.train.class_words import CLASS_OF_WORD, COLLECTIVE_CLASSES, DATA_CLASSES
from helicube.train.color_names import COLOR_NAMES, color_name
from helicube.train.color_words import COLOR_SYNONYMS, color_words, replace_colors
from helicube.train.objects import TrainingObject
from helicube.train.procedural import CLASSES, generate
from helicube.train.recolor import PAINTED_CLASSES
from helicube.train.words import article, fix_articles, with_article

# Five colours of each name, drawn at random from the catalogue.
CATALOGUE_COLORS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "beige": ((209, 180, 155), (193, 169, 121), (218, 209, 178), (175, 162, 118), (186, 156, 121)),
    "black": ((44, 42, 41), (13, 10, 7), (36, 35, 36), (46, 44, 43), (6, 6, 6)),
    "blue": ((97, 108, 152), (75, 80, 231), (7, 37, 151), (36, 119, 183), (95, 115, 202)),
    "brown": ((144, 128, 72), (96, 65, 43), (115, 78, 52), (98, 81, 73), (158, 122, 65)),
    "dark blue": ((63, 71, 88), (14, 11, 70), (26, 25, 50), (46, 54, 76), (54, 58, 80)),
    "dark brown": ((78, 66, 40), (76, 59, 41), (54, 41, 36), (74, 63, 48), (62, 50, 34)),
    "dark gray": ((59, 50, 44), (63, 60, 60), (70, 77, 81), (80, 86, 90), (64, 60, 60)),
    "dark green": ((72, 95, 60), (38, 84, 61), (74, 97, 61), (63, 95, 31), (73, 96, 60)),
    "dark red": ((89, 34, 30), (76, 28, 24), (125, 47, 34), (125, 39, 52), (89, 38, 41)),
    "gray": ((142, 142, 134), (114, 116, 137), (158, 159, 149), (110, 111, 132), (161, 161, 158)),
    "green": ((0, 134, 84), (109, 122, 64), (65, 171, 123), (99, 181, 94), (124, 205, 0)),
    "light blue": ((178, 217, 223), (166, 200, 205), (159, 137, 255), (171, 207, 212), (189, 238, 255)),
    "light brown": ((211, 166, 108), (207, 153, 94), (199, 116, 81), (188, 164, 118), (182, 116, 84)),
    "light gray": ((220, 210, 199), (192, 202, 207), (178, 199, 199), (205, 210, 218), (195, 195, 195)),
    "light green": ((191, 209, 118), (149, 185, 162), (178, 211, 196), (157, 223, 203), (188, 210, 116)),
    "olive green": ((134, 130, 100), (111, 113, 94), (140, 143, 76), (129, 130, 111), (158, 154, 119)),
    "orange": ((255, 146, 65), (203, 125, 73), (185, 91, 1), (225, 130, 50), (212, 131, 76)),
    "pink": ((180, 96, 155), (232, 154, 208), (255, 186, 220), (247, 179, 238), (231, 67, 119)),
    "purple": ((202, 39, 228), (99, 0, 43), (99, 18, 96), (100, 22, 107), (165, 85, 130)),
    "red": ((209, 78, 42), (234, 93, 86), (190, 66, 80), (135, 70, 52), (237, 100, 69)),
    "teal": ((13, 125, 132), (44, 195, 178), (75, 127, 136), (105, 170, 170), (9, 89, 78)),
    "white": ((218, 225, 234), (254, 255, 255), (249, 255, 255), (231, 234, 236), (243, 252, 249)),
    "yellow": ((252, 202, 96), (203, 182, 119), (231, 195, 87), (213, 147, 0), (158, 140, 79)),
}
WORDS_LONGEST_FIRST = re.compile(
    r"\b(" + "|".join(re.escape(word) for word in sorted(CLASS_OF_WORD, key=len, reverse=True)) + r")\b"
)


def classes_named(text: str) -> set[str]:
    """Classes of the nouns in a text; colour words are none ("salmon pink", "an orange car")."""
    for words in COLOR_SYNONYMS.values():
        for word in sorted(words, key=len, reverse=True):
            text = re.sub(rf"\b{word}\b", "", text)
    return {CLASS_OF_WORD[word] for word in WORDS_LONGEST_FIRST.findall(replace_colors(text, lambda _: "plain"))}


def thing(captions: tuple[str, ...], class_name: str, subclass: str = "") -> TrainingObject:
    item = generate("box", 0)
    return TrainingObject(
        id="x", class_name=class_name, subclass=subclass or class_name, split="train", captions=captions,
        vertices=item.vertices, faces=item.faces, face_colors=item.face_colors, face_parts=item.face_parts,
        part_names=item.part_names,
    )  # fmt: skip


def test_colour_names_agree_with_the_catalogue() -> None:
    pairs = [(name, color) for name, colors in CATALOGUE_COLORS.items() for color in colors]
    wrong = [(name, color, color_name(color)) for name, color in pairs if color_name(color) != name]
    assert set(CATALOGUE_COLORS) == set(COLOR_NAMES)
    # 96 % of all 5,000 pairs agree; this sample has rare names as often as common ones.
    assert len(wrong) <= 0.08 * len(pairs), wrong


def test_every_colour_has_a_name() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(0, 256, 15)] * 3), axis=-1).reshape(-1, 3)
    assert {color_name(color) for color in grid.tolist()} == set(COLOR_NAMES)


def test_every_class_has_words_and_no_word_has_two_classes() -> None:
    assert len(DATA_CLASSES) == 131
    assert set(CLASSES) == DATA_CLASSES
    assert set(CLASS_WORDS) >= DATA_CLASSES
    assert COLLECTIVE_CLASSES < DATA_CLASSES
    assert PAINTED_CLASSES < DATA_CLASSES
    everything = [word for noun, words in CLASS_WORDS.items() for word in (noun, *words)]
    repeated = {word for word in everything if everything.count(word) > 1}
    assert not repeated
    assert all(word == word.strip().lower() for word in everything)
    assert all(words for words in CLASS_WORDS.values())


def test_a_colour_synonym_means_one_colour() -> None:
    assert set(COLOR_SYNONYMS) == set(COLOR_NAMES)
    everything = [word for words in COLOR_SYNONYMS.values() for word in words]
    assert len(set(everything)) == len(everything)
    assert not set(everything) & (set(COLOR_NAMES) | set(CLASS_OF_WORD))


@pytest.mark.parametrize(
    ("word", "class_name"),
    [("settee", "sofa"), ("couch", "sofa"), ("automobile", "car"), ("puppy", "dog"), ("kitty", "animal"),
     ("lorry", "truck"), ("telly", "tv"), ("bike", "vehicle"), ("refrigerator", "fridge"), ("fir tree", "pine tree")],
)  # fmt: skip
def test_common_words_reach_their_class(word: str, class_name: str) -> None:
    assert CLASS_OF_WORD[word] == class_name


@pytest.mark.parametrize("name", CLASSES)
def test_augmenting_never_names_another_class(name: str) -> None:
    rng = np.random.default_rng(5)
    for seed in range(2):
        item = generate(name, seed)
        for caption in item.captions:
            before = classes_named(caption)
            for _ in range(12):
                text = augment_caption(caption, item, rng)
                assert classes_named(text) <= before | {name}, (caption, text)
                assert text == " ".join(text.split())
                for used, word in re.findall(r"\b(an?) (\S+)", text):
                    assert used == article(word), (caption, text)


def test_augmenting_is_varied_and_deterministic() -> None:
    item = thing(("a tall red wooden chair with four legs",), "chair")
    once = [augment_caption(item.captions[0], item, np.random.default_rng(seed)) for seed in range(300)]
    again = [augment_caption(item.captions[0], item, np.random.default_rng(seed)) for seed in range(300)]
    assert once == again
    assert len(set(once)) > 100
    assert all("four legs" in text for text in once)
    joined = " | ".join(once)
    for expected in ("dining chair", "crimson", "scarlet", "low-poly", "game asset", "3d model of", "wooden tall"):
        assert expected in joined, expected
    assert any("red" in text and "wooden" not in text for text in once)


@pytest.mark.parametrize(
    ("caption", "class_name", "subclass", "kept"),
    [
        ("a single-seat sofa", "armchair", "armchair", "single-seat sofa"),
        ("a nightstand with a lamp on it", "nightstand", "nightstand", "with a lamp on it"),
        ("a 3d model of a green watermill", "mill", "mill", "a 3d model of"),
        ("a person, a man in a suit", "man", "man", "a person, a man in a suit"),
        ("a kitchen chair", "chair", "chair", "kitchen chair"),
        ("an orange with a leaf", "fruit", "orange", "with a leaf"),
    ],
)
def test_what_is_no_plain_noun_stays(caption: str, class_name: str, subclass: str, kept: str) -> None:
    item = thing((caption,), class_name, subclass)
    rng = np.random.default_rng(1)
    assert all(kept in augment_caption(caption, item, rng) for _ in range(60))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("a", "unicorn uniform unit union unique university user utility euro one-eyed ufo house hat yellow car 1 7"),
        ("an", "umbrella unidentified uninhabited hour honest heirloom apple eagle 8-legged 18-wheeler x-ray suv mp3"),
    ],
)
def test_articles_go_by_sound(wanted: str, words: str) -> None:
    assert {word: article(word) for word in words.split()} == dict.fromkeys(words.split(), wanted)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a dark red and red chair", "a dark red and red chair"),
        ("a light green and green tree", "a light green and green tree"),
        ("a red and red chair", "a red chair"),
        ("a dark red and dark red chair", "a dark red chair"),
        ("a crimson and scarlet chair", "a crimson and scarlet chair"),
    ],
)
def test_a_colour_is_said_once_and_two_stay_two(before: str, after: str) -> None:
    assert replace_colors(before, lambda name: name) == after


def test_words_without_article_get_none() -> None:
    assert with_article("wide stairs") == "wide stairs"
    assert with_article("slice of bread") == "a slice of bread"
    assert with_article("orange umbrella") == "an orange umbrella"
    assert with_article("unicorn") == "a unicorn"
    assert fix_articles("a orange car with an teal roof") == "an orange car with a teal roof"
    item = thing(("brown stairs",), "stairs", "staircase")
    texts = {augment_caption("brown stairs", item, np.random.default_rng(seed)) for seed in range(80)}
    assert not any(re.search(r"\ba (?:(?!3d|flight)\S+ )*(?:stairs|steps)$", text) for text in texts), texts


def test_colour_words_are_adjectives_only() -> None:
    assert color_words("a light brown and dark red chair with blue legs") == ["light brown", "dark red", "blue"]
    assert color_words("an orange") == []
    assert color_words("an orange with a green leaf") == ["green"]
    assert color_words("an orange orange") == ["orange"]
    assert replace_colors("a red and dark red car", lambda _: "blue") == "a blue car"


def surface(*colors: tuple[int, int, int]) -> np.ndarray:
    return np.repeat(np.array(colors, dtype=np.uint8), 10, axis=0)


def test_recoloured_captions_name_colours_that_are_there() -> None:
    rng = np.random.default_rng(2)
    changed = 0
    for name in sorted(PAINTED_CLASSES):
        for seed in range(3):
            item = generate(name, seed)
            colors, captions = recolor(item.face_colors, item.captions, rng, item.captions_name_colors)
            assert colors.shape == item.face_colors.shape
            assert colors.dtype == np.uint8
            present = {color_name(color) for color in np.unique(colors, axis=0)}
            for caption in captions:
                assert set(color_words(caption)) <= present, (item.id, item.captions, captions)
            changed += captions != item.captions
    assert changed > 100


def test_recolouring_moves_equal_colours_together_and_keeps_shading() -> None:
    light, dark, grey = (150, 102, 64), (118, 76, 46), (60, 60, 62)
    colors = surface(light, dark, grey)
    for seed in range(40):
        fresh, captions = recolor(colors, ("a brown and dark gray chair",), np.random.default_rng(seed), True)
        assert len(np.unique(fresh, axis=0)) <= 3
        a, b = fresh[0].astype(int), fresh[10].astype(int)
        if color_name(fresh[0]) != "brown":
            assert a.max() >= b.max()
            assert color_name(fresh[0]) in captions[0] or color_name(fresh[10]) in captions[0]
        same, again = recolor(colors, ("a brown and dark gray chair",), np.random.default_rng(seed), True)
        assert np.array_equal(fresh, same)
        assert captions == again


def test_recolouring_leaves_alone_what_it_could_make_false() -> None:
    rng = np.random.default_rng(0)
    gold = surface((226, 184, 62))
    for captions in (("a golden sword",), ("a purple sword",), ("a snowy rock",), ("a yellow-roofed house",)):
        fresh, texts = recolor(gold, captions, rng, True)
        assert np.array_equal(fresh, gold)
        assert texts == captions


def test_recolouring_people_keeps_their_captions() -> None:
    colors = surface((204, 48, 44), (54, 104, 200))
    fresh, captions = recolor(colors, ("a man", "a man with a hat"), np.random.default_rng(3), False)
    assert captions == ("a man", "a man with a hat")
    assert not np.array_equal(fresh, colors)
