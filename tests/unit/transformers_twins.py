"""Tiny models in `transformers`, saved as it saves them, and loaded here from that folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from helicube.models.llm import LanguageModel
from helicube.models.loading import load_part
from helicube.models.loading_open import OpenModel, open_model
from helicube.parallel.collectives import SoloCollectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout

__all__ = ["TOLERANCE", "cached_logits", "saved_twin", "twin_cached_logits"]

# Logits are of order one, in float32 with sums of some 100 terms in another order: 100 · 2^-24 ≈ 6e-6, twice.
TOLERANCE = 1.2e-5


def saved_twin(content: Mapping[str, Any], folder: Path) -> tuple[Any, OpenModel, LanguageModel]:
    """A random model of a configuration in transformers, and the same one here."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    twin = AutoModelForCausalLM.from_config(AutoConfig.for_model(**content)).eval()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for name, tensor in [*twin.named_parameters(), *twin.named_buffers()]:
            if name.endswith("norm.weight"):
                tensor.normal_(1, 0.2)
            elif tensor.dim() > 1:
                tensor.normal_(0, tensor.shape[-1] ** -0.5)
            elif "inv_freq" not in name:
                tensor.normal_(0, 0.1)
    twin.save_pretrained(folder)
    opened = open_model(str(folder))
    return twin, opened, load_part(opened.config, opened.source)


@torch.inference_mode()
def twin_cached_logits(twin: Any, ids_BL: Tensor, prompt: int) -> Tensor:
    """Logits (B, L, V) of transformers: the prompt at once, then token by token through its cache."""
    with warnings.catch_warnings():
        # The argument has a new name in some versions and not in others.
        warnings.simplefilter("ignore", FutureWarning)
        out = twin(ids_BL[:, :prompt], use_cache=True)
        logits = [out.logits]
        for i in range(prompt, ids_BL.shape[1]):
            out = twin(ids_BL[:, i : i + 1], past_key_values=out.past_key_values, use_cache=True)
            logits.append(out.logits)
    return torch.cat(logits, dim=1)


def cached_logits(opened: OpenModel, ids_BL: Tensor, prompt: int, chunk: int) -> Tensor:
    """The same here: the prompt in chunks, then token by token, on one rank."""
    rows, length = ids_BL.shape
    options = HelixOptions(layout=HelixLayout(), cache_slots=rows * length)
    decoder = HelixDecoder(opened.config, opened.source, options, SoloCollectives())
    sequences = [s for _ in range(rows) if (s := decoder.cache.allocate(length)) is not None]
    starts = [*range(0, prompt, chunk), *range(prompt, length)]
    ends = [*starts[1:], length]
    return torch.cat(
        [decoder.step(sequences, ids_BL[:, a:b], every=True) for a, b in zip(starts, ends, strict=True)], dim=1
    )
