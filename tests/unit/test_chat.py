"""Tokenizers and chat templates from GGUF metadata and from folders."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from helicube.errors import CheckpointError, PromptError
from helicube.models.chat import Chat, folder_chat
from helicube.models.chat_gguf import gguf_chat
from helicube.models.loading_open import open_model

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
TOKENS = ["<pad>", "<start>", "<end>", *BYTES, "he", "ll", "hell", "hello", "Ġhello", "Ġhe"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ hello", "Ġ he"]
TEMPLATE = (
    "{% for m in messages %}<start>{{ m['role'] }}: {{ m['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<start>assistant: {% endif %}"
)


def fields(**change: Any) -> dict[str, Any]:
    found = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.token_type": [3, 3, 3, *[1] * (len(TOKENS) - 3)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
    return found | change


def chat(**change: Any) -> Chat:
    return gguf_chat(SimpleNamespace(fields=fields(**change), path=Path("a.gguf")))  # type: ignore[arg-type]


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "llama-bpe", "qwen2"])
@pytest.mark.parametrize("text", ["hello hello", "naïve 🦊 2024", "a\n\n  b\t", "x" * 50, "Ünïcödé 漢字"])
def test_text_comes_back(pre: str, text: str) -> None:
    made = chat(**{"tokenizer.ggml.pre": pre})
    assert made.decode(made.encode(text)) == text


def test_merges_apply_and_special_tokens_are_whole() -> None:
    made = chat()
    assert made.encode("hello hello") == (TOKENS.index("hello"), TOKENS.index("Ġhello"))
    ids = made.encode("<start>hello<end>")
    assert ids == (1, TOKENS.index("hello"), 2)
    assert made.decode(ids) == "hello"


def test_digits_stay_apart_or_together_by_the_rule() -> None:
    tokens = [*TOKENS, "12", "123"]
    change = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": [*MERGES, "1 2", "12 3"]}
    kinds = [1] * len(tokens)
    for pre, count in (("smollm", 3), ("qwen2", 3), ("llama-bpe", 1), ("gpt-2", 1)):
        made = chat(**change, **{"tokenizer.ggml.pre": pre, "tokenizer.ggml.token_type": kinds})
        assert len(made.encode("123")) == count, pre


def test_the_template_wraps_a_prompt() -> None:
    made = chat()
    assert made.prompt_ids("hello") == made.encode("<start>user: hello<end><start>assistant: ")
    assert made.stop_ids == {2}
    plain = chat(**{"tokenizer.chat_template": None, "tokenizer.ggml.add_bos_token": True})
    assert plain.prompt_ids("hello") == (1, TOKENS.index("hello"))
    with pytest.raises(PromptError, match="no chat template"):
        plain.prompt_ids([{"role": "user", "content": "hello"}])


@pytest.mark.parametrize("prompt", ["", "  \n", []])
def test_an_empty_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(PromptError, match="empty"):
        chat().prompt_ids(prompt)


def test_bytes_that_are_no_text_are_refused() -> None:
    """What a shell passes on that is not UTF-8 arrives as lone surrogates."""
    with pytest.raises(PromptError, match="the prompt is not text"):
        chat().prompt_ids("hello \udcff")


@pytest.mark.parametrize(
    "template",
    ["{{ raise_exception('system messages are not supported') }}", "{{ ''.__class__.__mro__ }}", "{% if %}"],
)
def test_a_template_that_refuses_or_misbehaves_is_one_error(template: str) -> None:
    with pytest.raises(PromptError, match="refuses the messages"):
        chat(**{"tokenizer.chat_template": template}).prompt_ids("hello")


def test_streaming_waits_for_whole_characters() -> None:
    made = chat()
    say = made.stream()
    pieces = [say(i) for i in made.encode("a🦊漢")]
    assert "".join(pieces) == "a🦊漢"
    assert pieces.count("") == 5
    assert all("�" not in piece for piece in pieces)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokenizer.ggml.model": "llama"}, "tokenizer 'llama'"),
        ({"tokenizer.ggml.pre": "tekken"}, "splitting 'tekken'"),
    ],
)
def test_an_unknown_tokenizer_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        chat(**change)


def write_folder(folder: Path, config: dict[str, Any], generation: dict[str, Any] | None = None) -> None:
    chat().tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))


def test_a_folder_s_files_come_together(tmp_path: Path) -> None:
    config = {
        "chat_template": [{"name": "tool", "template": "x"}, {"name": "default", "template": TEMPLATE}],
        "bos_token": {"content": "<start>"},
        "eos_token": "<end>",
        "add_bos_token": False,
    }
    write_folder(tmp_path, config, {"eos_token_id": [0, 5]})
    made = folder_chat(tmp_path, eos_ids=(7,), bos_id=1)
    assert made.stop_ids == {0, 2, 5, 7}
    assert (made.bos_token, made.bos_id) == ("<start>", -1)
    assert made.prompt_ids("hello") == chat().prompt_ids("hello")
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0]['content'] }}!")
    assert folder_chat(tmp_path, (), 1).render([{"role": "user", "content": "hi"}]) == "hi!"


@pytest.mark.parametrize("template", [5, [1], {"default": TEMPLATE}])
def test_a_template_that_is_no_text(template: Any, tmp_path: Path) -> None:
    write_folder(tmp_path, {"chat_template": template})
    if isinstance(template, list):
        assert folder_chat(tmp_path, (), -1).template is None
        return
    with pytest.raises(CheckpointError, match="chat_template is no text"):
        folder_chat(tmp_path, (), -1)


def test_a_template_file_that_is_no_text(tmp_path: Path) -> None:
    write_folder(tmp_path, {})
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError, match="cannot be read as text"):
        folder_chat(tmp_path, (), -1)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
        folder_chat(tmp_path, (), -1)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is not a tokenizer"):
        folder_chat(tmp_path, (), -1)


def test_smollm2_writes_its_published_template() -> None:
    try:
        opened = open_model("smollm2")
    except CheckpointError as error:
        pytest.skip(str(error))
    made = opened.chat()
    expected = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = made.prompt_ids("Why is the sky blue?")
    assert made.tokenizer.decode(list(ids), skip_special_tokens=False) == expected
    assert ids[:3] == (1, 9690, 198)
    assert made.stop_ids == {2}
    assert (opened.spec.attention.num_query_heads, opened.spec.attention.num_kv_heads) == (9, 3)
    assert opened.spec.num_params == 134_515_008


def test_a_prompt_that_is_nothing_to_the_tokenizer() -> None:
    """Words that it drops, or refuses; the engine needs one id to start from."""
    for model, words in (
        (models.BPE({"a": 0}, []), "leaves nothing of the prompt"),
        (models.WordLevel({"a": 0}), "UNK"),
    ):
        with pytest.raises(PromptError, match=words):
            Chat(tokenizer=Tokenizer(model)).prompt_ids("b")
