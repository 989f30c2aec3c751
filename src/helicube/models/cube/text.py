"""Prompts in, conditioning states out: what every text encoder of the shape decoder offers, and which prompts it takes.

Shapes: B prompts, T states of the longest prompt, D width of a state.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from helicube.errors import PromptError

__all__ = ["MAX_PROMPT_CHARS", "TextEncoder", "TextStates", "check_prompt"]

MAX_PROMPT_CHARS = 1000
# Spaces that a shell, a text field or a file may leave in a prompt; every other control character is a mistake.
_SPACING = "\t\n\v\f\r"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStates:
    """Conditioning states of B prompts."""

    # (B, T, D) float32. The decoder attends to all T rows: rows past a prompt's length are part of its input, zero for
    # encoders whose own padding has no meaning.
    states: Tensor
    # (B,) int64, rows that a prompt needs; 1 or more, the empty prompt's too, and T where padding has meaning (CLIP).
    lengths: Tensor
    # One tuple of lines for each prompt, for the user to read: words that were ignored or read as pieces.
    notes: tuple[tuple[str, ...], ...]

    def padded(self, num_states: int) -> TextStates:
        """The same states with T = `num_states`, zero where added.

        Raises:
            PromptError: a prompt has more states than that.
        """
        longest = max(self.lengths.tolist(), default=0)
        if longest > num_states:
            which = f"prompt {int(self.lengths.argmax()) + 1}" if len(self.lengths) > 1 else "the prompt"
            raise PromptError(f"{which} gives {longest} text states; the model takes {num_states}: shorten the prompt")
        missing = num_states - self.states.shape[1]
        states = torch.nn.functional.pad(self.states, (0, 0, 0, missing))
        return TextStates(states=states, lengths=self.lengths, notes=self.notes)


@runtime_checkable
class TextEncoder(Protocol):
    """Turns prompts into conditioning states.

    A prompt gives the same states alone and in a batch. The empty prompt is allowed here, and only here: it is the
    unconditional row of classifier-free guidance.
    """

    @property
    def width(self) -> int:
        """D, the width of a state."""

    @property
    def max_states(self) -> int:
        """Largest T that `encode` returns."""

    def encode(self, prompts: Sequence[str]) -> TextStates:
        """States of all prompts.

        Raises:
            PromptError: a prompt that `check_prompt` refuses (other than the empty one), that has more tokens than the
                encoder takes, or in which the encoder knows nothing.
        """


def check_prompt(prompt: str) -> str:
    """The prompt in Unicode form NFKC, without invisible characters, with single spaces between words.

    Raises:
        PromptError: not text, empty, longer than `MAX_PROMPT_CHARS`, or with a control character or a lone surrogate.
    """
    if not isinstance(prompt, str):
        raise PromptError(f"a prompt is text, not {type(prompt).__name__}; write for example 'a red wooden chair'")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise PromptError(f"the prompt has {len(prompt)} characters; at most {MAX_PROMPT_CHARS} are taken: shorten it")
    for position, char in enumerate(prompt):
        category = unicodedata.category(char)
        if category == "Cs" or (category == "Cc" and char not in _SPACING):
            kind = "half of a broken character" if category == "Cs" else "a control character"
            raise PromptError(f"the prompt has {kind}, U+{ord(char):04X}, at position {position}; remove it")
    visible = "".join(c for c in unicodedata.normalize("NFKC", prompt) if unicodedata.category(c) != "Cf")
    text = " ".join(visible.split())
    if not text:
        raise PromptError("the prompt is empty; name an object, for example 'a red wooden chair'")
    return text
