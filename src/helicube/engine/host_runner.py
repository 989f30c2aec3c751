"""Slots whose ids the host chooses, one step at a time, from the logits of any model: the plain path.

A slots in use (always the first A), C rows per slot, R = A·C rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import LogitsRunner
from helicube.engine.sampling import SamplingConfig, request_keys
from helicube.kernels.sampling import draw, scores

__all__ = ["HostRunner"]


@dataclass(slots=True, kw_only=True)
class _Choices:
    """What was chosen in a slot."""

    sampling: SamplingConfig
    # Strength of guidance, and ids to choose in all.
    guidance: float
    num_tokens: int
    # Ids that are given, −1 where the model chooses.
    forced: list[int] | None
    # 32-bit hash of the seed.
    key: int
    # Id to feed next.
    next_id: int
    chosen: list[int] = field(default_factory=list)
    # 1 + the step whose logits were not finite; 0 while all is well.
    failed: int = 0


class HostRunner:
    """A model's slots, and the choice of their ids.

    Args:
        model: gives logits.
        plan: which ids may stand where.
        device: where the logits are.
    """

    reads_freely = True

    def __init__(self, model: LogitsRunner, plan: IdPlan, *, device: torch.device | str = "cpu") -> None:
        self.model, self.plan, self.device = model, plan, device
        self.num_slots, self.copies, self.max_tokens = model.num_slots, model.copies, model.max_tokens
        self.num_ids = max(high for _, high in plan.ranges)
        self.slots: list[_Choices] = []

    @property
    def cache(self) -> KVCache | None:
        return self.model.cache

    @property
    def weight_bytes(self) -> int:
        return self.model.weight_bytes

    def start(self, slot: int, request: Request) -> None:
        assert slot <= len(self.slots), f"slot {slot} is beyond the next of {len(self.slots)}"
        first = self.model.start(slot, request.prompt)
        sampling, forced = request.sampling, request.forced
        # The engine says which slots are in use: what stood here, or beyond, was lost with a failure.
        self.slots[slot:] = [
            _Choices(
                sampling=sampling,
                guidance=sampling.guidance_scale,
                num_tokens=request.num_tokens,
                forced=None if forced is None else forced.tolist(),
                key=int(request_keys([sampling])),
                next_id=first,
            )
        ]

    def launch(self, num_slots: int, limit: int) -> int:  # noqa: ARG002 - one step at a time
        assert num_slots == len(self.slots), f"{num_slots} slots of {len(self.slots)} in use"
        fed = torch.tensor([slot.next_id for slot in self.slots], device=self.device)
        steps = [len(slot.chosen) for slot in self.slots]
        chosen, sound = self._choose(self.model.step(fed, steps), steps)
        for slot, step, value, finite in zip(self.slots, steps, chosen.tolist(), sound.tolist(), strict=True):
            if not finite:
                slot.failed = slot.failed or step + 1
            given = -1 if slot.forced is None else slot.forced[step]
            slot.next_id = given if given >= 0 else value
            slot.chosen.append(slot.next_id)
        return 1

    def has_failed(self, slot: int) -> bool:
        return self.slots[slot].failed > 0

    def read(self, slot: int, since: int) -> tuple[list[int], int]:
        held = self.slots[slot]
        return held.chosen[since : held.failed - 1 if held.failed else None], held.failed

    def move(self, source: int, target: int, length: int) -> None:
        self.model.move(source, target, length)
        assert source == len(self.slots) - 1, f"slot {source} is not the last of {len(self.slots)}"
        self.slots[target] = self.slots.pop()

    def free(self, slots: Sequence[int]) -> None:
        del self.slots[len(self.slots) - len(slots) :]
        self.model.free(slots)

    def forget(self, slot: int) -> None:
        self.model.forget(slot)

    def seek(self, slot: int, step: int) -> None:
        self.model.seek(slot, step)
        self.slots[slot].chosen = [0] * step

    def _choose(self, logits_RV: Tensor, steps: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Ids (A,), and whether each slot's logits were finite (A,)."""
        last = self.plan.num_steps - 1
        ranges = [self.plan.ranges[min(step, last)] for step in steps]
        low, high = min(a for a, _ in ranges), max(b for _, b in ranges)
        bounds = torch.tensor(ranges, device=self.device) if len(set(ranges)) > 1 else None
        weighed, sound = scores(logits_RV[:, low:high], self._gamma(steps), bounds, low)
        configs = [slot.sampling for slot in self.slots]
        if all(c.temperature == 0 for c in configs):
            return weighed.argmax(dim=-1) + low, sound
        ids = draw(
            weighed,
            keys_A=torch.tensor([slot.key for slot in self.slots], device=self.device),
            steps_A=torch.tensor(steps),
            temperature_A=torch.tensor([float(c.temperature) for c in configs], device=self.device),
            top_p_A=torch.tensor([float(c.top_p) for c in configs], device=self.device),
            first_id=low,
        )
        return ids, sound

    def _gamma(self, steps: Sequence[int]) -> Tensor | None:
        """Weight of each slot's guidance at its step, (A,); None where there are no rows for it."""
        if self.copies == 1:
            return None
        held = zip(self.slots, steps, strict=True)
        gamma = [slot.guidance * (slot.num_tokens - step) / slot.num_tokens for slot, step in held]
        return torch.tensor(gamma, device=self.device)
