"""Whole objects on a CPU: 64 prompts at once, and one of the published size down to its surface."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from helicube.engine.build import make_engine
from helicube.engine.engine import Engine
from helicube.engine.metrics import resident_bytes
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning
from helicube.engine.sampling import SamplingConfig
from helicube.geometry.surface import SurfaceOptions, extract_surface
from helicube.models.cube.checkpoint import PUBLISHED
from helicube.models.cube.decoder import CubeDecoder
from helicube.models.cube.quick_field import point_field
from helicube.models.cube.tokenizer import CubeTokenizer
from helicube.pipelines.ablation_subject import Subject
from helicube.pipelines.random_weights import random_decoder
from helicube.pipelines.shape_model import fastest_dtype, quick_field

TEXT_STATES = 77


def objects_per_minute(subject: Subject, repeats: int) -> dict[str, Any]:
    """Prompts taken in and all ids chosen, one at a time and 64 at once, in turns; sampled as `generate` samples."""
    found: dict[str, Any] = {}
    for name, options in (
        ("plain", EngineOptions(graph=False, kernels="plain", weights="float32")),
        ("float32", EngineOptions(weights="float32")),
        ("int8", EngineOptions(weights="int8")),
    ):
        rates: dict[int, list[float]] = {1: [], 64: []}
        tpot: dict[int, list[float]] = {1: [], 64: []}
        decoder = subject.decoder(options)
        engines = {n: _engine(subject, decoder, options, n) for n in rates}
        # The plain path is there to compare with, and slow.
        for _ in range(1 if name == "plain" else repeats):
            for slots, count in ((1, 3), (64, 64)):
                batch = engines[slots].generate(_requests(subject, decoder, count))
                rates[slots].append(60 * count / (batch.prefill_s + batch.decode_s))
                tpot[slots].append(1e3 * batch.tpot_s)
        median = {n: statistics.median(values) for n, values in rates.items()}
        found[name] = {
            "one_at_a_time": median[1],
            "64_at_once": median[64],
            "ratio": median[64] / median[1],
            "tpot_ms_of_one_and_64": [statistics.median(tpot[1]), statistics.median(tpot[64])],
        }
    return found


def _engine(subject: Subject, decoder: CubeDecoder, options: EngineOptions, slots: int) -> Engine:
    return make_engine(decoder, subject.cache_spec, subject.plan, num_slots=slots, options=options)


def _requests(subject: Subject, decoder: CubeDecoder, count: int) -> list[Request]:
    num_text = subject.cache_spec.layers[0].num_prefix - int(decoder.config.use_bbox)
    prompts = _prompts(decoder, num_text, count)
    samplings = [SamplingConfig(temperature=1.0, top_p=0.9, seed=i) for i in range(count)]
    return [
        Request(prompt=prompt, num_tokens=subject.plan.num_steps, sampling=sampling)
        for prompt, sampling in zip(prompts, samplings, strict=True)
    ]


def whole_object(form: str, cells: int = 256) -> dict[str, Any]:
    """An object of cube-v0.5 from conditioning tokens to its surface; random weights of the real size.

    Random weights have no surface, so that of a chair of boxes is looked for, with the network's answer computed at
    every point that is asked about.
    """
    config, tokens = PUBLISHED["v0.5"]
    started = time.perf_counter()
    decoder = random_decoder(config, "cpu", form, native=True)
    tokenizer = _random_tokenizer()
    quick = quick_field(tokenizer, form, "auto")
    made_s = time.perf_counter() - started
    plan = IdPlan(ranges=((0, config.shape_model_vocab_size),) * tokens.num_latents)
    spec = decoder.cache_spec(TEXT_STATES, plan.num_steps)
    engine = make_engine(decoder, spec, plan, num_slots=1, options=EngineOptions(weights=form))
    times: dict[str, float] = {}
    began = time.perf_counter()
    batch = engine.generate([Request(prompt=_prompts(decoder, TEXT_STATES, 1)[0], num_tokens=plan.num_steps)])
    times |= {"prefill_s": batch.prefill_s, "tokens_s": batch.decode_s}
    with torch.inference_mode():
        latents = tokenizer.decode(batch.results[0].ids[None] % tokens.num_codes)
    times["latents_s"] = time.perf_counter() - began - batch.prefill_s - batch.decode_s
    surface_began = time.perf_counter()
    field = _Chair(point_field(tokenizer.occupancy_decoder, latents, quick))
    mesh = extract_surface(field, SurfaceOptions(cells=cells, bound=1.05)).mesh
    times |= {"surface_s": time.perf_counter() - surface_began, "total_s": time.perf_counter() - began}
    return times | {
        "weights": form,
        "tokens": plan.num_steps,
        "tpot_ms": 1e3 * batch.tpot_s,
        "cells": cells,
        "field_queries": field.num_points,
        "field": str(latents.dtype) if quick is None else "int8",
        "faces": mesh.num_faces,
        "making_random_weights_s": made_s,
        "resident_gib": resident_bytes() / 2**30,
    }


def _random_tokenizer() -> CubeTokenizer:
    dtype = fastest_dtype("cpu")
    with torch.device("meta"):
        tokenizer = CubeTokenizer(PUBLISHED["v0.5"][1])
    generator = torch.Generator().manual_seed(0)
    tokenizer = tokenizer.to_empty(device="cpu").to(dtype).eval().requires_grad_(False)
    for parameter in tokenizer.parameters():
        if parameter.dim() > 1:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * parameter.shape[-1] ** -0.5)
        else:
            parameter.fill_(0.5)
    for buffer in tokenizer.buffers():
        if buffer.is_floating_point():
            buffer.normal_(generator=generator)
    return tokenizer


def _prompts(decoder: CubeDecoder, num_text: int, count: int) -> list[Conditioning]:
    """Conditioning tokens of random text states."""
    shape = (count + 1, num_text, decoder.config.text_model_embed_dim)
    states = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(decoder.dtype)
    with torch.inference_mode():
        cond = decoder.condition(states)
    return [Conditioning(cond=row, uncond=cond[-1]) for row in cond[:-1]]


class _Chair:
    """Seat, back and four legs as a field, with the network computed beside it."""

    BOXES = np.array(
        [[(-0.6, -0.05, -0.6), (0.6, 0.08, 0.6)], [(-0.6, 0.08, -0.6), (0.6, 0.96, -0.45)]]
        + [[(x - 0.08, -0.96, z - 0.08), (x + 0.08, -0.05, z + 0.08)] for x in (-0.5, 0.5) for z in (-0.5, 0.5)]
    )

    def __init__(self, field: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> None:
        self.field, self.num_points = field, 0

    def __call__(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        self.num_points += len(points)
        logits = self.field(points)
        assert len(logits) == len(points), "one answer per point"
        inside = np.minimum(points - self.BOXES[:, None, 0], self.BOXES[:, None, 1] - points).min(axis=2).max(axis=0)
        return np.asarray(inside, dtype=np.float32)
