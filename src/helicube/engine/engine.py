"""The decode loop: conditioning in, ids out.

B requests, R rows (two per request with guidance: conditioned rows first), n steps, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from helicube.engine.kv_cache import KVCache
from helicube.engine.sampling import SamplingConfig, guidance_weight, guide, gumbel, request_keys, sample
from helicube.errors import DecodeError
from helicube.nn.cache import CacheSpec, LayerCache

__all__ = ["DecodeModel", "Decoded", "Engine", "IdPlan"]

Progress = Callable[[int, int], None]


class DecodeModel(Protocol):
    """What the engine asks of a model."""

    def prefill(self, cond_BSD: Tensor, /) -> list[tuple[Tensor, Tensor]]:
        """Conditioning keys and values of the first layers."""
        ...

    def decode(self, ids_BL: Tensor, rotary: Tensor, caches: Sequence[LayerCache], /) -> Tensor:
        """Logits (B, L, V) after new ids, whose keys and values go to the caches."""
        ...

    def rotary(self, length: int, device: torch.device | str = "cpu", /) -> Tensor:
        """Rotary table of the positions 0 … length − 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IdPlan:
    """What may stand at each step of a sequence of fixed length."""

    # Id that starts every sequence.
    bos_id: int
    # Per step, the first id that may be chosen and the one after the last.
    ranges: tuple[tuple[int, int], ...]

    @property
    def num_steps(self) -> int:
        return len(self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Ids of a batch and what it took."""

    # (B, n) int64.
    ids: Tensor
    # Seconds of the prefill and of all steps.
    prefill_s: float
    decode_s: float

    @property
    def tpot_s(self) -> float:
        """Time per output token of the batch, seconds."""
        return self.decode_s / self.ids.shape[1]


class Engine:
    """Decodes batches of requests with one model.

    Args:
        model: in evaluation mode.
        cache_spec: what the model keeps per row.
        plan: which ids may stand where.
        cache: False recomputes the whole sequence at each step: slow, and the reference that the cache must equal.
    """

    def __init__(
        self,
        model: DecodeModel,
        cache_spec: CacheSpec,
        plan: IdPlan,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        cache: bool = True,
    ) -> None:
        self.model, self.spec, self.plan = model, cache_spec, plan
        self.device, self.dtype, self.use_cache = device, dtype, cache

    @torch.inference_mode()
    def generate(
        self,
        cond_BSD: Tensor,
        uncond_BSD: Tensor | None,
        configs: Sequence[SamplingConfig],
        *,
        forced_BN: Tensor | None = None,
        on_step: Progress | None = None,
    ) -> Decoded:
        """Decode one sequence per request.

        Args:
            cond_BSD: conditioning tokens of each request.
            uncond_BSD: the same of the empty prompt; None where no request is guided.
            configs: one per request.
            forced_BN: ids that are given (−1 where the model chooses), such as the box that was asked for.
            on_step: called with (steps done, steps in all).

        Raises:
            DecodeError: a logit is not finite.
        """
        started = time.perf_counter()
        guided = uncond_BSD is not None
        rows = torch.cat([cond_BSD, uncond_BSD]) if uncond_BSD is not None else cond_BSD
        cache = KVCache(self.spec, len(rows), device=self.device, dtype=self.dtype)
        cache.fill_prefix(self.model.prefill(rows))
        prefilled = time.perf_counter()
        chooser = _Chooser(configs, self.plan, guided, self.device)
        table = self.model.rotary(self.plan.num_steps, self.device)
        ids = torch.full((len(configs), self.plan.num_steps + 1), self.plan.bos_id, device=self.device)
        for step in range(self.plan.num_steps):
            logits = self._step(ids, step, cache, table, 2 if guided else 1)
            chosen = chooser(logits, step)
            if forced_BN is not None:
                given = forced_BN[:, step].to(chosen)
                chosen = torch.where(given >= 0, given, chosen)
            ids[:, step + 1] = chosen
            if on_step is not None:
                on_step(step + 1, self.plan.num_steps)
        done = time.perf_counter()
        return Decoded(ids=ids[:, 1:], prefill_s=prefilled - started, decode_s=done - prefilled)

    def _step(self, ids: Tensor, step: int, cache: KVCache, table: Tensor, copies: int) -> Tensor:
        """Logits (R, V) that choose the id at `step`."""
        first = step if self.use_cache else 0
        if not self.use_cache:
            cache.num_tokens = 0
        new = ids[:, first : step + 1].repeat(copies, 1)
        num_new = new.shape[1]
        logits = self.model.decode(new, table[first : step + 1], cache.layers(num_new))
        cache.advance(num_new)
        return logits[:, -1]


class _Chooser:
    """Guidance and sampling of a batch, step by step."""

    def __init__(
        self, configs: Sequence[SamplingConfig], plan: IdPlan, guided: bool, device: torch.device | str
    ) -> None:
        self.plan, self.guided = plan, guided
        self.scale = torch.tensor([c.guidance_scale for c in configs], device=device)
        self.temperature = torch.tensor([float(c.temperature) for c in configs], device=device)
        self.top_p = torch.tensor([float(c.top_p) for c in configs], device=device)
        self.keys = request_keys(configs).to(device)
        self.greedy = all(c.temperature == 0 for c in configs)

    def __call__(self, logits_RV: Tensor, step: int) -> Tensor:
        low, high = self.plan.ranges[step]
        logits = logits_RV[:, low:high].float()
        if self.guided:
            cond, uncond = logits.chunk(2)
            gamma = self.scale * guidance_weight(1.0, step, self.plan.num_steps)
            logits = guide(cond, uncond, gamma[:, None])
        if not bool(torch.isfinite(logits).all()):
            raise DecodeError(f"logits are not finite at step {step}; the weights are damaged or the format too coarse")
        if self.greedy:
            return logits.argmax(dim=-1) + low
        noise = gumbel(self.keys, step, high - low)
        return sample(logits, self.temperature, self.top_p, noise) + low
