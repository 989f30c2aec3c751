"""The condition of a request, computed once and kept in its rows of the cache."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.models.cube.decoder import CubeDecoder

__all__ = ["Conditioning", "PrefixFiller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning:
    """The prompt of a Cube decoder."""

    # (S, D) conditioning tokens, and those of the empty prompt.
    cond: Tensor
    uncond: Tensor


class PrefixFiller:
    """Writes conditioning keys and values to the rows of a slot.

    Prompts are taken one at a time, so that the bits do not depend on what else is asked for; the empty prompt, which
    all have in common, is computed once.

    Args:
        copies: rows of a slot: 1, or 2 with guidance.
    """

    def __init__(self, decoder: CubeDecoder, cache: KVCache, copies: int) -> None:
        self.decoder, self.cache, self.copies = decoder, cache, copies
        self._uncond: tuple[Tensor, list[tuple[Tensor, Tensor]]] | None = None

    def fill(self, slot: int, prompt: object) -> None:
        """Take a prompt into the rows of a slot; None leaves in them what is there, for measurements."""
        if prompt is None:
            return
        assert isinstance(prompt, Conditioning), f"a Cube decoder takes Conditioning, not {type(prompt).__name__}"
        row = slot * self.copies
        self.cache.fill_prefix(row, self.decoder.prefill(prompt.cond[None]))
        if self.copies == 1:
            return
        if self._uncond is None or self._uncond[0] is not prompt.uncond:
            self._uncond = prompt.uncond, self.decoder.prefill(prompt.uncond[None])
        self.cache.fill_prefix(row + 1, self._uncond[1])
