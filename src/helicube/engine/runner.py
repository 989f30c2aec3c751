"""What the engine asks of its slots, and what one that chooses ids on the host asks of a model.

A slots in use (always the first A), C rows per slot (2 with guidance: conditioned, then unconditioned), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.engine.prefix import Conditioning, PrefixFiller
from helicube.engine.request import Request
from helicube.models.cube.decoder import CubeDecoder
from helicube.nn.cache import CacheSpec
from helicube.nn.module_bytes import module_bytes

__all__ = ["Conditioning", "CubeRunner", "LogitsRunner", "Runner"]

# Ids (R,) and positions (R,) of one new token per row, to logits (R, V).
StepRows = Callable[[Tensor, Tensor], Tensor]


class Slots(Protocol):
    """Slots of a model, of which the first are in use."""

    # Slots, and rows of logits per slot: 1, or 2 with guidance.
    num_slots: int
    copies: int
    # Ids that a request may choose at most; None where taking in its prompt tells.
    max_tokens: int | None

    @property
    def cache(self) -> KVCache | None:
        """Of a Cube decoder; None where the model has a cache of another kind."""
        ...

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step reads."""
        ...

    def move(self, source: int, target: int, length: int) -> None:
        """Move the last slot in use, `length` ids fed, over another one."""
        ...

    def free(self, slots: Sequence[int]) -> None:
        """Give up the state of the last slots in use."""
        ...

    def forget(self, slot: int) -> None:
        """Leave nothing in a slot that could reach its next request, where numbers were not finite."""
        ...

    def seek(self, slot: int, step: int) -> None:
        """Stand where `step` ids were chosen, whatever the cache holds: for measurements."""
        ...


class LogitsRunner(Slots, Protocol):
    """A model that gives logits; `HostRunner` chooses from them."""

    def start(self, slot: int, prompt: object) -> int:
        """Take a prompt into a slot; the id that is fed first."""
        ...

    def step(self, ids_A: Tensor, lengths: Sequence[int]) -> Tensor:
        """Feed one id to each of the first A slots, which were fed `lengths` ids before; logits (A·C, V)."""
        ...


class Runner(Slots, Protocol):
    """What the engine drives: slots in which ids are chosen, by the host or where the model runs."""

    # One more than the largest id that may be chosen.
    num_ids: int
    # Looking at the ids waits for nothing, so that the engine does after every launch.
    reads_freely: bool

    def start(self, slot: int, request: Request) -> None:
        """Take a request into the first free slot."""
        ...

    def launch(self, num_slots: int, limit: int) -> int:
        """Steps, `limit` at most, that the slots in use make or are about to make."""
        ...

    def has_failed(self, slot: int) -> bool:
        """Whether a slot's logits were not finite, as far as is known without waiting."""
        ...

    def read(self, slot: int, since: int) -> tuple[list[int], int]:
        """Ids that a slot has chosen after the first `since`, and 1 + the step whose logits were not finite or 0."""
        ...


class CubeRunner:
    """A Cube decoder and its cache.

    Args:
        spec: what the decoder keeps per row.
        num_slots: requests decoded side by side.
        guided: whether each slot has an unconditioned row.
        cache: False recomputes the whole sequence at each step: slow, and the reference that the cache must equal.
        store: buffers to use instead of new ones.
        step_rows: kernels that take the place of the decoder in a step with a cache.
    """

    def __init__(
        self,
        decoder: CubeDecoder,
        spec: CacheSpec,
        *,
        num_slots: int,
        guided: bool = True,
        cache: bool = True,
        store: KVCache | None = None,
        step_rows: StepRows | None = None,
    ) -> None:
        self.decoder, self.num_slots, self.copies = decoder, num_slots, 1 + int(guided)
        self.max_tokens: int | None = spec.max_tokens
        device, dtype = decoder.device, decoder.dtype
        self.cache = store or KVCache(spec, num_slots * self.copies, device=device, dtype=dtype)
        self.prefix = PrefixFiller(decoder, self.cache, self.copies)
        self.places = decoder.places(spec.max_tokens)
        self.step_rows = step_rows
        # Ids fed so far, only where nothing is cached.
        self.history: list[list[int]] | None = None if cache else [[] for _ in range(num_slots)]

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step reads."""
        return module_bytes(self.decoder.step_modules())

    def start(self, slot: int, prompt: object) -> int:
        self.prefix.fill(slot, prompt)
        if self.history is not None:
            self.history[slot] = []
        return self.decoder.config.bos_id

    def step(self, ids_A: Tensor, lengths: Sequence[int]) -> Tensor:
        if self.history is not None:
            return self._recompute(ids_A.tolist(), self.history)
        fed = ids_A.repeat_interleave(self.copies)
        if self.step_rows is not None:
            return self.step_rows(fed, torch.tensor(lengths).repeat_interleave(self.copies))
        if min(lengths) == max(lengths):
            places = self.places.range(lengths[0], lengths[0] + 1)
        else:
            places = self.places.rows(torch.tensor(lengths, device=ids_A.device).repeat_interleave(self.copies))
        rows = [length for length in lengths for _ in range(self.copies)]
        return self.decoder.decode(fed[:, None], places, self.cache.layers(rows))[:, -1]

    def _recompute(self, ids: list[int], history: list[list[int]]) -> Tensor:
        """Logits without what was cached: every slot's whole sequence anew."""
        logits = []
        for slot, new in enumerate(ids):
            history[slot].append(new)
            fed = torch.tensor([history[slot]] * self.copies, device=self.decoder.device)
            count = fed.shape[1]
            layers = self.cache.layers([0] * self.copies, count, slot * self.copies)
            logits.append(self.decoder.decode(fed, self.places.range(0, count), layers)[:, -1])
        return torch.cat(logits)

    def free(self, slots: Sequence[int]) -> None:
        """The next prompts overwrite what these held."""

    def forget(self, slot: int) -> None:
        # A step masks what lies beyond a row's end where its neighbours go on, and 0 · NaN is NaN.
        self.cache.clear(slot * self.copies, self.copies)

    def seek(self, slot: int, step: int) -> None:
        """Stand where `step` ids were fed, for measurements."""
        if self.history is not None:
            self.history[slot] = [0] * step

    def move(self, source: int, target: int, length: int) -> None:
        if self.history is not None:
            self.history[target] = self.history[source].copy()
        for copy in range(self.copies):
            # The prefix moves with its row whatever the length.
            self.cache.move(source * self.copies + copy, target * self.copies + copy, length)
