"""Serving at a fixed number of concurrent requests: decode steps with other requests' prefill between them.

In the steady state each of b decoding requests leaves after `output` steps and is replaced, so that a decoding request
waits b/output times per step for the prefill of another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.planner.arrays import Array, Number
from helicube.planner.layouts import LayoutArrays
from helicube.planner.memory import memory_of
from helicube.planner.prefill import prefill_time
from helicube.planner.setting import Setting
from helicube.planner.step import decode_phases, total_time

__all__ = ["Serving", "predict_serving"]

_ROUNDS = 3
# Phases of a decode step that a mixed prefill chunk pays for as well.
_SHARED_PHASES = ("qkv", "output", "ffn", "experts", "kernels", "host")


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    """Prediction for n points; seconds."""

    tpot_s: Array
    # Mean time per output token after the first.
    step_s: Array
    # Decode step alone.
    prefill_s: Array
    # Prefill of one prompt alone; TTFT without queueing.
    batch: Array
    # Requests that decode at a time.
    capacity: Array
    # Requests whose cache fits.


def predict_serving(s: Setting, x: LayoutArrays, *, concurrency: Number, prompt: Number, output: Number) -> Serving:
    """Predict TPOT at a concurrency.

    Args:
        s: model, accelerator, engine, formats.
        x: (n,) layouts.
        concurrency: (n,) requests in flight.
        prompt: (n,) mean prompt tokens.
        output: (n,) mean output tokens.
    """
    limit, mean = np.asarray(concurrency, dtype=np.float64), np.asarray(output, dtype=np.float64)
    context = prompt + mean / 2.0
    capacity = cache_capacity(s, x, context)
    ceiling = np.minimum(limit, capacity)
    batch = ceiling
    prefill = prefill_time(s, x, prompt)
    # Latency of a prompt alone, of which it is a share with several copies or stages.
    alone = prefill * x.pp * x.dp
    step = tpot = prefill
    for _ in range(_ROUNDS):
        phases = decode_phases(s, x, np.maximum(batch, 1.0), context)
        step = total_time(phases)
        # Prompts of others per decode step; one's own is no part of TPOT.
        prompts = s.engine.interleave * batch * (1.0 - 1.0 / ceiling) / mean
        tpot = step + prompts * prefill
        if s.engine.chunked_prefill:
            # A chunk that rides in a decode step finds the weights read and the kernels launched.
            ridden = total_time({name: phases[name] for name in _SHARED_PHASES})
            tpot = tpot - np.minimum(prompts, 1.0) * ridden
        # Little's law: a request spends its own prefill outside the decoding batch.
        decoding = mean * tpot
        batch = ceiling * decoding / (decoding + alone)
    return Serving(tpot_s=tpot, step_s=step, prefill_s=alone, batch=batch, capacity=capacity)


def cache_capacity(s: Setting, x: LayoutArrays, context: Number) -> Array:
    """(n,) requests of `context` tokens whose cache fits, at least 1."""
    one = memory_of(s, x, x.dp * x.pp, context)
    per_request = one.cache / (x.dp * x.pp)
    return np.maximum(1.0, (one.free + one.cache) / per_request)
