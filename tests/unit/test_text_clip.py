"""The CLIP tower over a tiny random model, written to a folder as the published one is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from helicube.errors import CheckpointError, MissingExtraError, PromptError
from helicube.models.cube.text import TextEncoder
from helicube.models.cube.text_clip import ClipTextEncoder

transformers = pytest.importorskip("transformers")

WIDTH, LENGTH = 32, 77


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A full CLIP checkpoint: the text tower must be found beside the vision tower."""
    path = tmp_path_factory.mktemp("clip")
    letters = [chr(c) for c in range(33, 127)]
    entries = [*letters, *(letter + "</w>" for letter in letters), "ch", "red</w>", "<|startoftext|>", "<|endoftext|>"]
    (path / "vocab.json").write_text(json.dumps({entry: i for i, entry in enumerate(entries)}), encoding="utf-8")
    (path / "merges.txt").write_text("#version: 0.2\nc h\n", encoding="utf-8")
    transformers.CLIPTokenizer(str(path / "vocab.json"), str(path / "merges.txt")).save_pretrained(path)
    torch.manual_seed(0)
    size = {"hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.CLIPConfig(
        text_config={
            **size,
            "vocab_size": len(entries),
            "max_position_embeddings": LENGTH,
            "bos_token_id": len(entries) - 2,
            "eos_token_id": len(entries) - 1,
            "pad_token_id": len(entries) - 1,
        },
        vision_config={**size, "image_size": 16, "patch_size": 8},
        projection_dim=16,
    )
    transformers.CLIPModel(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def encoder(folder: Path) -> ClipTextEncoder:
    return ClipTextEncoder.load(folder)


def test_states_are_the_last_hidden_state(folder: Path, encoder: ClipTextEncoder) -> None:
    full = transformers.CLIPModel.from_pretrained(folder).eval()
    ids = encoder._tokenizer("a red chair").input_ids
    with torch.inference_mode():
        expected = full.text_model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    got = encoder.encode(["a red chair"])
    assert got.states.shape == (1, LENGTH, WIDTH)
    assert got.states.dtype == torch.float32
    assert got.lengths.tolist() == [LENGTH]
    assert got.notes == ((),)
    # float32 sums in another order: the padding makes the matrices longer.
    torch.testing.assert_close(got.states[0, : len(ids)], expected, rtol=1e-5, atol=1e-5)


def test_alone_and_in_a_batch(encoder: ClipTextEncoder) -> None:
    prompts = ["a red chair", "", "椅子 🚗", "A  RED\nＣＨＡＩＲ"]
    batch = encoder.encode(prompts).states
    for b, prompt in enumerate(prompts):
        torch.testing.assert_close(encoder.encode([prompt]).states[0], batch[b], rtol=1e-5, atol=1e-5)
    # Case, width and spacing do not matter; content does.
    torch.testing.assert_close(batch[0], batch[3], rtol=1e-5, atol=1e-5)
    assert float((batch[0] - batch[1]).abs().max()) > 0.1
    assert torch.equal(encoder.encode(prompts).states, batch)


def test_the_encoder_is_one(encoder: ClipTextEncoder) -> None:
    assert isinstance(encoder, TextEncoder)
    assert (encoder.width, encoder.max_states) == (WIDTH, LENGTH)


def test_long_prompts_are_reported_and_not_cut(encoder: ClipTextEncoder) -> None:
    fits = "x " * (LENGTH - 2)
    assert encoder.encode([fits]).states.shape == (1, LENGTH, WIDTH)
    with pytest.raises(PromptError, match="78 tokens with its start and end; the text encoder takes 77"):
        encoder.encode(["red", fits + "x"])


@pytest.mark.parametrize("prompt", ["  ", "red\x07", "x" * 1001, "\ud83d"])
def test_what_is_not_a_prompt(encoder: ClipTextEncoder, prompt: str) -> None:
    with pytest.raises(PromptError):
        encoder.encode([prompt])


def test_an_unusable_folder_is_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(CheckpointError, match="no CLIP text tower in"):
        ClipTextEncoder.load(tmp_path)
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in folder.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="no CLIP text tower in"):
        ClipTextEncoder.load(broken)


def test_without_transformers_the_install_line_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'helicube\[cube\]'"):
        ClipTextEncoder.load(folder)
