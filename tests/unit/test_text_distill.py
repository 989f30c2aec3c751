"""Distilling over a tiny dictionary and a tiny random sentence encoder, both written here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from helicube.errors import CheckpointError, InputError
from helicube.models.cube.text_static import StaticTextEncoder
from helicube.train.distill import DistillConfig, distill_static_vectors, keep_phrases, reduce_width
from helicube.train.sense_vectors import SenseVectors, SenseWeights, unit
from helicube.train.teacher import SentenceTeacher
from helicube.train.wordnet import WordNet, plain_lemma

transformers = pytest.importorskip("transformers")

LICENCE = "  1 lines that begin with a space are the licence\n"
# offset category type words(hex) word lex-id ... pointers(dec) symbol offset type source/target | gloss
NOUNS = """\
00000001 06 n 02 seat 0 Sitz 0 000 | furniture to sit on; "take a seat"
00000002 06 n 01 sofa 0 001 @ 00000001 n 0000 | a padded seat for two
00000003 06 n 02 settee 0 sofa_bed 0 001 @ 00000002 n 0000 | a small sofa
00000004 05 n 01 bat 0 000 | a flying mouse
00000005 07 n 01 chromatic_color 0 000 | a hue
00000006 07 n 02 red 0 redness 0 001 @ 00000005 n 0000 | the colour of blood
00000007 09 n 01 idea 0 000 | a thought
00000008 06 n 01 fire-engine 0 001 @ 00000001 n 0000 | a big red truck
00000009 06 n 01 red_hat 0 000 | a hat
"""
NOUN_INDEX = """\
seat n 1 0 1 0 00000001
sofa n 1 1 @ 1 0 00000002
settee n 1 1 @ 1 0 00000003
sofa_bed n 1 1 @ 1 0 00000003
sitz n 1 0 1 0 00000001
bat n 1 0 1 0 00000004
red n 1 1 @ 1 0 00000006
idea n 1 0 1 0 00000007
fire-engine n 1 1 @ 1 0 00000008
red_hat n 1 0 1 0 00000009
"""
ADJECTIVES = """\
00000001 00 a 01 red 0 001 & 00000002 a 0000 | of the colour of blood; "red hair"
00000002 00 s 02 crimson 0 ruby(a) 0 001 & 00000001 a 0000 | deep red
"""
ADJECTIVE_INDEX = "red a 1 1 & 1 0 00000001\ncrimson a 1 1 & 1 0 00000002\nruby a 1 1 & 1 0 00000002\n"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "an", "seat", "sofa", "red", "bat", "fire", "engine", "with"]
PIECES += ["set", "##tee", "small", "deep", "hat", "zorro", "é", "[unused1]", *"bcdefghijklmnopqrstuvwxyz"]
PIECES += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wordnet")
    files = {
        "data.noun": NOUNS,
        "index.noun": NOUN_INDEX,
        "data.adj": ADJECTIVES,
        "index.adj": ADJECTIVE_INDEX,
        "index.verb": "",
        "index.adv": "",
    }
    for name, text in files.items():
        (path / name).write_text(LICENCE + text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    path = tmp_path_factory.mktemp("teacher")
    rows = {piece: row for row, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.WordPiece(rows, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(path / "tokenizer.json"))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


def distil(out: Path, teacher: Path, dictionary: Path) -> StaticTextEncoder:
    distill_static_vectors(
        out,
        teacher=teacher,
        wordnet=dictionary,
        config=DistillConfig(width=8, num_commonest=9),
    )
    return StaticTextEncoder.load(out)


def test_the_dictionary_is_read(dictionary: Path) -> None:
    wordnet = WordNet(dictionary)
    (settee,) = wordnet.of("settee", "n")
    assert (settee.category, settee.lemmas, settee.gloss) == ("artifact", ("settee", "sofa bed"), "a small sofa")
    (sofa,) = (wordnet.senses[key] for key in settee.parents)
    assert sofa.lemmas == ("sofa",)
    (seat,) = wordnet.of("seat", "n")
    assert (seat.lemmas, seat.gloss, seat.parents) == (("seat",), "furniture to sit on", ())
    assert wordnet.of("fire engine", "n")[0].lemmas == ("fire engine",)
    (crimson,) = wordnet.of("crimson", "a")
    assert crimson.lemmas == ("crimson", "ruby")
    assert [wordnet.senses[key].lemmas for key in crimson.parents] == [("red",)]
    # A head adjective is similar to its satellites, but not one of a kind with them.
    assert wordnet.of("red", "a")[0].parents == ()
    assert wordnet.is_color(wordnet.of("red", "n")[0])
    assert not wordnet.is_color(seat)
    assert wordnet.of("nonesuch", "n") == []


def test_plain_lemmas() -> None:
    assert [plain_lemma(w) for w in ("Jack-o'-lantern", "St._Bernard", "fire_engine")] == [
        "jack o lantern",
        "st bernard",
        "fire engine",
    ]


def test_a_words_vector_is_the_weighted_mean_of_its_parts(dictionary: Path, teacher: Path) -> None:
    weights = SenseWeights(word=0.5, lemmas=1.0, gloss=2.0, parents=0.7, depth=1)
    senses = SenseVectors(WordNet(dictionary), frozenset({"sofa", "bed", "seat"}), weights)
    texts = senses.texts(["settee", "##tee"])
    known = "sofa bed: a small sofa"  # "settee" itself is not known to the encoder
    assert texts == ["a settee", known, "settee, sofa bed", "sofa: a padded seat for two", "sofa", "tee"]
    encoder = SentenceTeacher(teacher)
    embedded = encoder.embed(texts)
    senses.learn(texts, embedded)
    own, gloss, lemmas, sofa_gloss, sofa_lemmas, piece = embedded
    sofa = unit(2 * sofa_gloss + sofa_lemmas)
    expected = unit(0.5 * own + unit(2 * gloss + lemmas + 0.7 * sofa))
    np.testing.assert_allclose(senses.vector("settee"), expected, atol=1e-6)
    np.testing.assert_allclose(senses.vector("##tee"), piece, atol=1e-6)


def test_the_teacher_is_the_same_alone_and_in_a_batch(teacher: Path) -> None:
    encoder = SentenceTeacher(teacher)
    texts = ["a sofa", "a small red sofa with a hat", "bat"]
    together = encoder.embed(texts)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-3)  # half precision
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(encoder.embed([text])[0], vector, atol=1e-3)


def test_what_is_written_is_what_the_encoder_reads(tmp_path: Path, teacher: Path, dictionary: Path) -> None:
    encoder = distil(tmp_path / "one", teacher, dictionary)
    entries = (tmp_path / "one" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(entries)) == len(entries)
    assert {"sofa", "settee", "##tee", "armchair", "office chair", "katana", "fire engine"} <= set(entries)
    # Articles are dropped from prompts, but other words begin with their letters.
    assert {"a", "##a", "an"} <= set(entries)
    # A name, a letter that is not ASCII, a special piece, a phrase that begins with a colour, a thing without a shape.
    assert not {"zorro", "é", "[unused1]", "[PAD]", "red hat", "idea"} & set(entries)
    assert encoder.width == 8
    assert encoder.encode(["a settee with a fire engine"]).notes == ((),)
    # The settee is a small sofa; that outweighs its spelling.
    settee, sofa, bat = encoder.pooled(["settee", "sofa", "bat"])
    assert settee @ sofa > settee @ bat
    # Nothing but the inputs decides: the same bytes again.
    distil(tmp_path / "two", teacher, dictionary)
    for name in ("static.safetensors", "vocab.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["static.safetensors", "vocab.txt"]


def test_phrases_that_their_words_explain_are_dropped() -> None:
    east, north = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    vectors = {"old": east, "elk": north, "elk elk": north, "old elk": east, "old old": unit(east + north)}
    phrases = ["elk elk", "old elk", "old old"]
    assert keep_phrases(vectors, ["old", "elk"], phrases, 1) == ["old elk"]
    assert keep_phrases(vectors, ["old", "elk"], phrases, 2) == ["old elk", "old old"]
    # The words of our own classes are kept whatever they are made of.
    vectors["hot dog"] = vectors["dog"] = vectors["hot"] = east
    assert keep_phrases(vectors, ["hot", "dog"], ["hot dog"], 0) == ["hot dog"]


def test_reducing_keeps_the_largest_components() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 6)).astype(np.float32) * np.array([9, 5, 0.1, 3, 0.1, 0.1], np.float32)
    things = np.arange(50) < 40
    reduced = reduce_width(rows, things, 3)
    centred = rows - rows[things].mean(axis=0)
    np.testing.assert_allclose(reduced @ reduced.T, centred @ centred.T, atol=3)
    np.testing.assert_allclose(reduced[things].mean(axis=0), 0, atol=1e-4)
    spread = reduced[things].std(axis=0)
    assert spread[0] > spread[1] > spread[2]


def test_missing_inputs_are_named(tmp_path: Path, teacher: Path, dictionary: Path) -> None:
    with pytest.raises(InputError, match=r"data\.noun is missing"):
        distil(tmp_path, teacher, tmp_path)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
        distil(tmp_path, tmp_path, dictionary)
    assert list(tmp_path.iterdir()) == []


def test_damaged_inputs_are_named(tmp_path: Path, teacher: Path, dictionary: Path) -> None:
    broken = tmp_path / "dictionary"
    shutil.copytree(dictionary, broken)
    (broken / "data.noun").write_text("00001740 03 n zz\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no WordNet, or a damaged one \(noun: .*get wordnet-base again"):
        distil(tmp_path / "out", teacher, broken)
    for name in ("tokenizer.json", "model.safetensors"):
        folder = tmp_path / name
        shutil.copytree(teacher, folder)
        (folder / name).write_bytes(b"\x01nonsense")
        with pytest.raises(CheckpointError, match=r"is damaged|no sentence encoder"):
            distil(tmp_path / "out", folder, dictionary)
    assert not (tmp_path / "out").exists()


def test_the_command_names_what_is_missing(dictionary: Path, tmp_path: Path) -> None:
    arguments = ["--teacher", str(tmp_path / "none"), "--wordnet", str(dictionary), "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "helicube", "train", "text", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert str(tmp_path / "none") in done.stderr.replace("\n", "")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
