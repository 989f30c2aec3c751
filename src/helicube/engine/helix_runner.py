"""A rank of a Helix pool as the engine's runner: prompts in chunks, one cache, slots that are sequences in it.

A slots in use, V vocabulary. Every rank runs the same engine on the same requests; the logits that it chooses from are
the same bits on all of them, so no id has to be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

import torch
from torch import Tensor

from helicube.errors import DecodeError
from helicube.parallel.helix import HelixDecoder
from helicube.parallel.kv_shard import Sequence

__all__ = ["HelixRunner", "Prefill"]


class Prefill:
    """A prompt on its way into the cache.

    Args:
        ids: the prompt; its last id is not cached here but fed by the first step.
        chunk: tokens at a time; the memory of a chunk's activations is all that a long prompt adds to its cache.
    """

    def __init__(self, decoder: HelixDecoder, sequence: Sequence, ids: Seq[int], chunk: int) -> None:
        assert ids, "a prompt has at least one id, which the first step feeds"
        self.decoder, self.sequence, self.ids, self.chunk = decoder, sequence, tuple(ids), chunk

    @property
    def done(self) -> bool:
        return self.sequence.length == len(self.ids) - 1

    def advance(self) -> None:
        """Cache the next chunk."""
        first = self.sequence.length
        piece = self.ids[first : min(first + self.chunk, len(self.ids) - 1)]
        self.decoder.take_in([self.sequence], torch.tensor([piece], device=self.decoder.options.device))


class HelixRunner:
    """Sequences in slots.

    Args:
        num_slots: requests decoded side by side at most; the cache may allow fewer.
        chunk: prompt tokens per step of a prefill.
    """

    copies = 1
    # `open` tells.
    max_tokens: int | None = None
    # Its own kind is the decoder's.
    cache = None

    def __init__(self, decoder: HelixDecoder, *, num_slots: int = 8, chunk: int = 512) -> None:
        self.decoder, self.num_slots, self.chunk = decoder, num_slots, chunk
        self.sequences: list[Sequence] = []
        # What the steps so far have cost this rank, prefills excluded.
        self.num_steps = 0
        self.bytes_read = 0.0
        self.bytes_sent = 0
        # Called with the logits (A, V) of each step.
        self.on_logits: Callable[[Tensor], None] | None = None

    @property
    def weight_bytes(self) -> int:
        """Of this rank; of routed experts a step reads fewer, see `HelixDecoder.read_bytes`."""
        return self.decoder.weight_bytes

    def open(self, ids: Seq[int], num_tokens: int) -> Prefill | None:
        """Reserve the cache of a request; None while others hold it.

        Raises:
            DecodeError: longer than the model's context, or than the whole cache.
        """
        total, longest = len(ids) + num_tokens, self.decoder.config.most_tokens
        if longest and total > longest:
            raise DecodeError(
                f"{len(ids)} prompt tokens and {num_tokens} more exceed the context of {longest} tokens of "
                f"{self.decoder.config.name}; shorten the prompt or generate less"
            )
        # The last id chosen is never fed.
        sequence = self.decoder.cache.allocate(total - 1)
        return Prefill(self.decoder, sequence, ids, self.chunk) if sequence is not None else None

    def close(self, prefill: Prefill) -> None:
        """Give up a request that has not been started."""
        self.decoder.cache.free(prefill.sequence)

    def start(self, slot: int, prompt: object) -> int:
        assert isinstance(prompt, Prefill), f"a Helix runner takes a Prefill, not {type(prompt).__name__}"
        assert prompt.done, "the prompt is not in the cache yet"
        assert slot == len(self.sequences), f"slot {slot} is not the next of {len(self.sequences)}"
        self.sequences.append(prompt.sequence)
        return prompt.ids[-1]

    def step(self, ids_A: Tensor, lengths: Seq[int]) -> Tensor:
        assert len(lengths) == len(self.sequences), f"{len(lengths)} slots, but {len(self.sequences)} sequences"
        sent = self.decoder.collectives.traffic.total
        logits = self.decoder.step(self.sequences, ids_A[:, None])
        self.num_steps += 1
        self.bytes_read += self.decoder.read_bytes(self.sequences)
        self.bytes_sent += self.decoder.collectives.traffic.total - sent
        if self.on_logits is not None:
            self.on_logits(logits)
        return logits

    def move(self, source: int, target: int, length: int) -> None:  # noqa: ARG002 - the interface
        self.decoder.cache.free(self.sequences[target])
        self.sequences[target] = self.sequences.pop(source)

    def free(self, slots: Seq[int]) -> None:
        for _ in slots:
            self.decoder.cache.free(self.sequences.pop())

    def forget(self, slot: int) -> None:
        """Nothing to do: a sequence reads its own tokens alone, never masked ones of others."""

    def seek(self, slot: int, step: int) -> None:  # noqa: ARG002 - the interface
        assert step == 0, "sequences of a pool cannot be made up"
