"""The tokenizer and the chat template in a GGUF file's metadata: byte-level BPE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from helicube.errors import CheckpointError
from helicube.models.chat import Chat
from helicube.models.loading_gguf import GgufFile

__all__ = ["gguf_chat"]

# token_type of a control token, which text must not be split across and which decoding leaves out.
CONTROL, USER_DEFINED = 3, 4

# Published splitting rules of Llama 3 and of Qwen2, which differ in how many digits stay together.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _split(digits: str) -> Any:
    rule = Regex(_WORDS.format(digits=digits))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(rule, behavior="isolated"), byte_level])


def _gpt2() -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _smollm() -> Any:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


# tokenizer.ggml.pre -> how text is split before merging.
SPLITTERS: Mapping[str, Callable[[], Any]] = {
    "gpt-2": _gpt2,
    "smollm": _smollm,
    "llama-bpe": lambda: _split("{1,3}"),
    "qwen2": lambda: _split(""),
}


def gguf_chat(file: GgufFile) -> Chat:
    """Build the tokenizer that a file describes.

    Raises:
        CheckpointError: a kind of tokenizer or splitting that is not implemented, or a missing key.
    """
    fields = file.fields
    kind, pre = fields.get("tokenizer.ggml.model"), str(fields.get("tokenizer.ggml.pre"))
    if kind != "gpt2" or pre not in SPLITTERS:
        raise CheckpointError(
            f"{file.path}: tokenizer {kind!r} with splitting {pre!r} is not supported; supported: gpt2 with "
            f"{', '.join(SPLITTERS)}; or use the model's Hugging Face folder"
        )
    try:
        tokens: list[str] = fields["tokenizer.ggml.tokens"]
        merges = [tuple(m.split(" ", 1)) for m in fields["tokenizer.ggml.merges"]]
    except KeyError as error:
        raise CheckpointError(
            f"{file.path}: {error.args[0]} is missing from the metadata; convert the model again"
        ) from None
    tokenizer = Tokenizer(
        models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges, ignore_merges=pre == "llama-bpe")
    )
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = SPLITTERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    types = fields.get("tokenizer.ggml.token_type", [])
    for number in (CONTROL, USER_DEFINED):
        added = [
            AddedToken(t, special=number == CONTROL, normalized=False)
            for t, n in zip(tokens, types, strict=False)
            if n == number
        ]
        (tokenizer.add_special_tokens if number == CONTROL else tokenizer.add_tokens)(added)
    return _chat(fields, tokenizer, tokens)


def _chat(fields: Mapping[str, Any], tokenizer: Tokenizer, tokens: list[str]) -> Chat:
    ids = {n: fields.get(f"tokenizer.ggml.{n}_token_id") for n in ("bos", "eos", "eot", "eom")}
    bos, eos = ids["bos"], ids["eos"]
    add_bos = bool(fields.get("tokenizer.ggml.add_bos_token", False))
    return Chat(
        tokenizer=tokenizer,
        template=fields.get("tokenizer.chat_template"),
        bos_token=tokens[bos] if bos is not None else "",
        eos_token=tokens[eos] if eos is not None else "",
        stop_ids=frozenset(i for n, i in ids.items() if n != "bos" and i is not None),
        bos_id=bos if add_bos and bos is not None else -1,
    )
