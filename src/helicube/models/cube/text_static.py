"""The default text encoder: a table of static vectors, distilled from a sentence encoder and quantised to 8 bits.

A prompt becomes one pooled state (its normalised weighted mean, the head noun counting most) followed by one state for
each token. All states are scaled so that the pooled state and a token of weight 1 have entries of mean square 1. The
table's weights are 1 for words with a meaning of their own and less for function words ("with", "of").

Shapes: V rows of the table, D width, B prompts, T states.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from helicube.errors import CheckpointError, PromptError
from helicube.models.cube.text import TextStates, check_prompt
from helicube.models.cube.text_vocab import TokenizedPrompt, Vocabulary

__all__ = ["BUNDLED_TEXT_WEIGHTS", "StaticTextEncoder", "table_of"]

BUNDLED_TEXT_WEIGHTS = Path(__file__).resolve().parents[2] / "weights" / "text"
_TABLE_FILE = "static.safetensors"
_VOCABULARY_FILE = "vocab.txt"
_MAX_STATES = 77  # as many as the CLIP tower gives, so that both fit the same decoder buffers


def table_of(model: Path) -> Path:
    """The text table that a model's folder reads prompts with: its own, or the bundled one."""
    return model / "text" if (model / "text").is_dir() else BUNDLED_TEXT_WEIGHTS


class StaticTextEncoder:
    """Open-vocabulary encoder without a network: looking up, weighting, averaging.

    Args:
        entries: V vocabulary entries (see `Vocabulary`), one for each row.
        codes: (V, D) int8, directions of the rows; their length does not matter.
        weights: (V,) float, weight of each row in the mean, 0 to 1.
    """

    def __init__(self, entries: Sequence[str], codes: NDArray[np.int8], weights: NDArray[np.floating]) -> None:
        if not len(entries) == len(codes) == len(weights):
            raise CheckpointError(
                f"the text table has {len(entries)} entries, {len(codes)} rows and {len(weights)} weights; "
                "they must be as many: distil it again with `helicube train text`"
            )
        self._vocabulary = Vocabulary(entries)
        self._codes = codes
        self._weights = weights

    @classmethod
    def load(cls, folder: Path = BUNDLED_TEXT_WEIGHTS) -> StaticTextEncoder:
        """Read `static.safetensors` and `vocab.txt`.

        Raises:
            CheckpointError: a file is missing or not what it should be.
        """
        for name in (_TABLE_FILE, _VOCABULARY_FILE):
            if not (folder / name).is_file():
                raise CheckpointError(f"{folder / name} is missing; reinstall helicube or run `helicube train text`")
        entries = (folder / _VOCABULARY_FILE).read_text(encoding="utf-8").splitlines()
        codes, weights = _read_table(folder / _TABLE_FILE)
        return cls(entries, codes, weights)

    def __len__(self) -> int:
        """V, the number of words, phrases and word pieces."""
        return len(self._codes)

    @property
    def width(self) -> int:
        """D, the width of a state."""
        return int(self._codes.shape[1])

    @property
    def max_states(self) -> int:
        """Largest T: the pooled state and 76 tokens."""
        return _MAX_STATES

    def encode(self, prompts: Sequence[str]) -> TextStates:
        """States (B, T, D), T = 1 + tokens of the longest prompt; the empty prompt is one zero state.

        Raises:
            PromptError: see `TextEncoder.encode`.
        """
        tokenized = [self._tokenize(prompt) for prompt in prompts]
        lengths = [1 + len(prompt.rows) for prompt in tokenized]
        states = np.zeros((len(prompts), max(lengths, default=1), self.width), np.float32)
        for b, prompt in enumerate(tokenized):
            if prompt.rows:
                states[b, : lengths[b]] = self._states(prompt)
        notes = tuple(self._notes(prompt) for prompt in tokenized)
        return TextStates(
            states=torch.from_numpy(states), lengths=torch.tensor(lengths, dtype=torch.int64), notes=notes
        )

    def pooled(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Unit sentence vectors (B, D): their inner product is the cosine similarity of two prompts."""
        first = self.encode(prompts).states[:, 0].numpy()
        return np.asarray(first / np.sqrt(self.width), np.float32)

    def _tokenize(self, prompt: str) -> TokenizedPrompt:
        if prompt == "":
            return TokenizedPrompt(rows=(), emphasis=(), ignored=(), pieces=())
        found = self._vocabulary.tokenize(check_prompt(prompt))
        if not found.rows:
            raise PromptError(
                f"the prompt {prompt[:60]!r} has no word that the text encoder knows; describe it in English"
            )
        if len(found.rows) > _MAX_STATES - 1:
            raise PromptError(
                f"the prompt has {len(found.rows)} tokens; the text encoder takes {_MAX_STATES - 1}: shorten it"
            )
        return found

    def _states(self, prompt: TokenizedPrompt) -> NDArray[np.float32]:
        """Pooled state and token states of one prompt, (1 + tokens, D)."""
        index = np.asarray(prompt.rows)
        codes = self._codes[index].astype(np.float32)
        units = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1.0)
        tokens = units * self._weights[index, None].astype(np.float32)
        mean = np.asarray(prompt.emphasis, np.float32)[None] @ tokens
        pooled = mean / max(float(np.linalg.norm(mean)), 1e-6)
        return np.concatenate([pooled, tokens]) * np.float32(np.sqrt(self.width))

    def _notes(self, prompt: TokenizedPrompt) -> tuple[str, ...]:
        notes = [f"{word!r} is ignored: the text encoder reads English" for word in prompt.ignored]
        for word, parts in prompt.pieces:
            close = self._vocabulary.closest_word(word)
            hint = f"; did you mean {close!r}?" if close else ""
            read = "-".join(part.removeprefix("##") for part in parts)
            notes.append(f"{word!r} is no English word that the model knows, and is read in pieces ({read}){hint}")
        return tuple(notes)


def _read_table(path: Path) -> tuple[NDArray[np.int8], NDArray[np.floating]]:
    """Codes (V, D) and weights (V,) from a safetensors file."""
    try:
        with safe_open(path, framework="np") as file:
            codes, weights = file.get_tensor("codes"), file.get_tensor("weights")
    except SafetensorError as error:
        raise CheckpointError(f"{path} is not a table of text vectors ({error}); reinstall helicube") from error
    if codes.dtype != np.int8 or codes.ndim != 2 or weights.shape != codes.shape[:1]:
        raise CheckpointError(
            f"{path} has codes {codes.dtype} {codes.shape} and weights {weights.shape}; "
            "expected codes int8 (V, D) and weights (V,): distil it again with `helicube train text`"
        )
    return codes, weights
