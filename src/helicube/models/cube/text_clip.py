"""The text tower that the published Cube weights were trained with: CLIP ViT-L/14 (Radford et al., ICML 2021).

transformers runs it (extra `cube`); a folder on disk is used as it is, a hub name needs the network once.

Shapes: B prompts, T = 77 states, D = 768.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from helicube.errors import CheckpointError, MissingExtraError, PromptError
from helicube.models.cube.text import TextStates, check_prompt

__all__ = ["CUBE_TEXT_TOWER", "ClipTextEncoder"]

CUBE_TEXT_TOWER = "openai/clip-vit-large-patch14"


class ClipTextEncoder:
    """`last_hidden_state` of a CLIP text tower, each prompt padded to the tower's full length.

    The padding states are attended to: the published decoder was trained on all 77.

    Args:
        tokenizer: a transformers CLIPTokenizer.
        model: a transformers CLIPTextModel, in evaluation mode.
    """

    def __init__(self, tokenizer: Any, model: Any) -> None:
        self._tokenizer = tokenizer
        self._model = model

    @classmethod
    def load(cls, source: str | Path = CUBE_TEXT_TOWER, *, device: torch.device | str = "cpu") -> ClipTextEncoder:
        """Read the tower from a folder or by its hub name; the vision half of a full CLIP checkpoint is skipped.

        Raises:
            MissingExtraError: transformers is not installed.
            CheckpointError: nothing usable under `source`.
        """
        try:
            import transformers
        except ImportError as error:
            raise MissingExtraError("transformers", "cube") from error
        try:
            with _quiet(transformers):
                tokenizer = transformers.CLIPTokenizer.from_pretrained(str(source))
                model: Any = transformers.CLIPTextModel.from_pretrained(str(source), dtype=torch.float32)
        except (OSError, ValueError, SafetensorError) as error:
            reason = str(error).strip().split("\n", 1)[0]
            raise CheckpointError(
                f"no CLIP text tower in {str(source)!r} ({reason}); give a folder with config.json, model.safetensors "
                f"and the tokenizer files of {CUBE_TEXT_TOWER}"
            ) from error
        return cls(tokenizer, model.to(device).eval())

    @property
    def width(self) -> int:
        """D, the width of a state."""
        return int(self._model.config.hidden_size)

    @property
    def max_states(self) -> int:
        """T, the tower's full length, its start and end tokens included."""
        return int(self._model.config.max_position_embeddings)

    @torch.inference_mode()
    def encode(self, prompts: Sequence[str]) -> TextStates:
        """States (B, T, D) on the tower's device, T the full length, all attended to.

        Raises:
            PromptError: see `TextEncoder.encode`.
        """
        texts = [check_prompt(prompt) if prompt else "" for prompt in prompts]
        ids = self._tokenizer(texts)["input_ids"]
        longest = max(map(len, ids), default=0)
        if longest > self.max_states:
            raise PromptError(
                f"the prompt has {longest} tokens with its start and end; the text encoder takes {self.max_states}: "
                "shorten it"
            )
        tokens = self._tokenizer.pad(
            {"input_ids": ids}, padding="max_length", max_length=self.max_states, return_tensors="pt"
        ).to(self._model.device)
        states = self._model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]).last_hidden_state
        return TextStates(
            states=states.float(),
            lengths=torch.full((len(texts),), self.max_states),
            notes=((),) * len(texts),
        )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers from drawing progress bars and reporting the skipped vision half."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
