"""From words to ids and back: the tokenizer and the chat template that a checkpoint brings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from helicube.errors import CheckpointError, MissingExtraError, PromptError

__all__ = ["Chat", "Message", "folder_chat"]

Message = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What a checkpoint says about its text."""

    tokenizer: Tokenizer
    # Jinja source; None for a model that was not trained to chat.
    template: str | None = None
    # Written forms, for the template.
    bos_token: str = ""
    eos_token: str = ""
    # Ids that end an answer.
    stop_ids: frozenset[int] = frozenset()
    # Put before a prompt that goes through no template; −1 is none.
    bos_id: int = -1

    def prompt_ids(self, prompt: str | Sequence[Message]) -> tuple[int, ...]:
        """Ids of a prompt: through the template where there is one, as plain text to continue elsewhere.

        Raises:
            PromptError: empty, or nothing to the tokenizer, or messages without a template to write them with.
        """
        if not prompt or (isinstance(prompt, str) and not prompt.strip()):
            raise PromptError("the prompt is empty; write a question or a text to continue")
        if self.template is None:
            if not isinstance(prompt, str):
                raise PromptError("this model has no chat template; give the prompt as plain text")
            ids = self.encode(prompt)
            ids = (self.bos_id, *ids) if self.bos_id >= 0 else ids
        else:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            ids = self.encode(self.render(messages))
        if not ids:
            raise PromptError("the model's tokenizer leaves nothing of the prompt; write it in other words")
        return ids

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of text as it is; written special tokens become their ids.

        Raises:
            PromptError: bytes that were no UTF-8, or words that the tokenizer has no id for.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise PromptError(f"the prompt is not text ({error}); write it in UTF-8") from None
        try:
            return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)
        except Exception as error:  # noqa: BLE001 - the library raises bare Exception
            raise PromptError(f"the model's tokenizer refuses the prompt ({error}); write it in other words") from None

    def render(self, messages: Sequence[Message]) -> str:
        """The messages in the template's words, up to where the answer begins.

        Raises:
            PromptError: the template refuses the messages.
        """
        assert self.template is not None, "render needs a template"
        return _render(self.template, messages, bos_token=self.bos_token, eos_token=self.eos_token)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def stream(self) -> Callable[[int], str]:
        """A function from the next id to the text that it completes: "" while a character is unfinished."""
        stream = DecodeStream(skip_special_tokens=True)
        return lambda token: stream.step(self.tokenizer, token) or ""


def _render(template: str, messages: Sequence[Message], **special: str) -> str:
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingExtraError("jinja2", "llm") from None

    def refuse(message: str) -> None:
        raise TemplateError(message)

    # The template comes with the weights and is not trusted: no attribute access beyond the data, no files.
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    try:
        compiled = environment.from_string(template)
        return compiled.render(messages=messages, add_generation_prompt=True, **special)
    except TemplateError as error:
        raise PromptError(f"the model's chat template refuses the messages: {error}") from None


def folder_chat(folder: Path, eos_ids: Sequence[int], bos_id: int) -> Chat:
    """Read tokenizer.json, tokenizer_config.json, chat_template.jinja and generation_config.json of a folder.

    Raises:
        CheckpointError: no tokenizer.json, or a file that cannot be read.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; it must lie beside the weights")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise CheckpointError(f"{path} is not a tokenizer: {error}") from None
    config, generation = _json(folder / "tokenizer_config.json"), _json(folder / "generation_config.json")
    stops = generation.get("eos_token_id", [])
    eos_token = _written(config.get("eos_token"))
    stop_ids = {*eos_ids, *(stops if isinstance(stops, list) else [stops]), tokenizer.token_to_id(eos_token)}
    return Chat(
        tokenizer=tokenizer,
        template=_template(folder, config),
        bos_token=_written(config.get("bos_token")),
        eos_token=eos_token,
        stop_ids=frozenset(i for i in stop_ids if isinstance(i, int)),
        bos_id=bos_id if config.get("add_bos_token", True) else -1,
    )


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return _text(path)
    found = config.get("chat_template")
    if isinstance(found, list):
        named = {t.get("name"): t.get("template") for t in found if isinstance(t, dict)}
        found = named.get("default")
    if found is not None and not isinstance(found, str):
        raise CheckpointError(f"{folder / 'tokenizer_config.json'}: chat_template is no text; correct or remove it")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read as text: {error}") from None


def _written(token: Any) -> str:
    """A special token's text: stored as such, or in a record."""
    return str(token["content"] if isinstance(token, dict) else token or "")


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(_text(path))
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from None
    return found if isinstance(found, dict) else {}
