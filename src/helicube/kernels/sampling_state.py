"""What a step on the device reads and advances: one slot per request.

A slots, C rows of logits per slot (1, or 2 with guidance: conditioned, then unconditioned), N ids per request at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

__all__ = ["SamplingState"]

# Fields with C entries per slot.
PER_ROW = ("tokens", "positions", "lengths")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingState:
    """Tensors on the device, none of which is replaced while a graph refers to it."""

    # (A,) int32: place of the id to choose; a slot is left alone where that is negative or at num_tokens.
    steps: Tensor
    # (A,) int32: ids to choose in all.
    num_tokens: Tensor
    # (A,) float64, because the plain engine weighs guidance in double precision.
    guidance: Tensor
    # (A,) float32.
    temperature: Tensor
    top_p: Tensor
    # (A,) int64: 32-bit hash of the seed (engine.sampling.request_keys).
    keys: Tensor
    # (P, 2) int32: first id that may stand at a step, and the one after the last; the last entry serves later steps.
    ranges: Tensor
    # (A, N) int64: ids that are given, −1 where the model chooses.
    forced: Tensor
    # (A, N) int64: ids chosen.
    ids: Tensor
    # (A·C,) int64: id to feed next.
    tokens: Tensor
    # (A·C,) int32: place of the next token, −1 in a free slot; and keys that it will see, itself included, 0 in one.
    positions: Tensor
    lengths: Tensor
    # (A,) int32: 1 + the first step whose logits were not finite; 0 while all is well.
    failed: Tensor

    @classmethod
    def empty(
        cls,
        num_slots: int,
        copies: int,
        max_tokens: int,
        ranges: Sequence[tuple[int, int]],
        device: torch.device | str = "cpu",
    ) -> SamplingState:
        """Free slots.

        Args:
            copies: C.
            max_tokens: N.
            ranges: per step, the first id that may stand there and the one after the last.
        """
        rows, i32, i64 = num_slots * copies, torch.int32, torch.int64
        # Ordinary tensors wherever this is called: slots are freed outside of inference mode too.
        with torch.inference_mode(mode=False), torch.device(device):
            return cls(
                steps=torch.full((num_slots,), -1, dtype=i32),
                num_tokens=torch.zeros(num_slots, dtype=i32),
                guidance=torch.zeros(num_slots, dtype=torch.float64),
                temperature=torch.zeros(num_slots),
                top_p=torch.ones(num_slots),
                keys=torch.zeros(num_slots, dtype=i64),
                ranges=torch.tensor(ranges, dtype=i32),
                forced=torch.full((num_slots, max_tokens), -1, dtype=i64),
                ids=torch.full((num_slots, max_tokens), -1, dtype=i64),
                tokens=torch.zeros(rows, dtype=i64),
                positions=torch.full((rows,), -1, dtype=i32),
                lengths=torch.zeros(rows, dtype=i32),
                failed=torch.zeros(num_slots, dtype=i32),
            )

    def start(
        self,
        slot: int,
        first_id: int,
        num_tokens: int,
        *,
        guidance: float = 0.0,
        temperature: float = 0.0,
        top_p: float = 1.0,
        key: int = 0,
        forced: Tensor | None = None,
    ) -> None:
        """Take a request into a slot, whose prefix is in the cache.

        Args:
            first_id: fed first, at position 0.
            num_tokens: at most N.
            forced: (num_tokens,) given ids, −1 where the model chooses.
        """
        assert 0 < num_tokens <= self.ids.shape[1], f"{num_tokens} ids in a state for {self.ids.shape[1]}"
        copies = len(self.tokens) // len(self.steps)
        rows = slice(slot * copies, (slot + 1) * copies)
        self.num_tokens[slot] = num_tokens
        self.guidance[slot], self.temperature[slot], self.top_p[slot] = guidance, temperature, top_p
        self.keys[slot] = key
        self.forced[slot] = -1
        if forced is not None:
            # From page-locked memory the copy takes its place in the queue; otherwise the host would wait for it.
            given = forced.pin_memory() if self.forced.is_cuda and not forced.is_cuda else forced
            self.forced[slot, :num_tokens].copy_(given[:num_tokens], non_blocking=True)
        self.ids[slot] = -1
        self.failed[slot] = 0
        self.tokens[rows], self.positions[rows], self.lengths[rows] = first_id, 0, 1
        self.steps[slot] = 0

    def first(self, num_slots: int) -> SamplingState:
        """The same tensors, of the first slots alone."""
        copies = len(self.tokens) // len(self.steps)
        cut = {f.name: getattr(self, f.name)[:num_slots] for f in fields(self) if f.name not in {"ranges", *PER_ROW}}
        cut |= {name: getattr(self, name)[: num_slots * copies] for name in PER_ROW}
        return SamplingState(ranges=self.ranges, **cut)

    def move(self, source: int, target: int) -> None:
        """Copy a slot over another."""
        copies = len(self.tokens) // len(self.steps)
        for f in fields(self):
            if f.name != "ranges":
                slots = getattr(self, f.name)
                if f.name in PER_ROW:
                    slots = slots.unflatten(0, (-1, copies))
                slots[target].copy_(slots[source])

    def stop(self, slot: int) -> None:
        """Free a slot."""
        copies = len(self.tokens) // len(self.steps)
        rows = slice(slot * copies, (slot + 1) * copies)
        self.steps[slot] = -1
        self.positions[rows], self.lengths[rows] = -1, 0
