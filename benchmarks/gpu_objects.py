"""Whole objects on a GPU through the engine that users get: prompts in, ids and a mesh out.

Weights are random, of the real size. A random field has no surface worth the name, so the tokenizer is evaluated at
every point that is asked for, and its answer replaced by a chair's: as many points as an object takes, at their cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from helicube.engine.build import make_engine
from helicube.engine.engine import Engine
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning
from helicube.engine.sampling import SamplingConfig
from helicube.models.cube.decoder import CubeDecoder
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig

DEVICE, DTYPE = "cuda", torch.bfloat16
NUM_TEXT = 77
# Weights and objects at once.
CASES = (("bfloat16", 1), ("bfloat16", 16), ("fp8", 1), ("int4", 1), ("int8", 1), ("int8", 16))
CELLS = 256


def engine_for(decoder: CubeDecoder, tokens: int, batch: int, options: EngineOptions) -> Engine:
    plan = IdPlan(ranges=((0, decoder.config.shape_model_vocab_size),) * tokens)
    return make_engine(decoder, decoder.cache_spec(NUM_TEXT, tokens), plan, num_slots=batch, options=options)


def requests_for(decoder: CubeDecoder, tokens: int, batch: int) -> list[Request]:
    states = torch.randn(batch + 1, NUM_TEXT, decoder.config.text_model_embed_dim, device=DEVICE, dtype=DTYPE)
    cond = decoder.condition(states, torch.zeros(batch + 1, 3, device=DEVICE))
    return [
        Request(
            prompt=Conditioning(cond=row, uncond=cond[-1]),
            num_tokens=tokens,
            sampling=SamplingConfig(temperature=1.0, seed=seed),
        )
        for seed, row in enumerate(cond[:-1])
    ]


def setup_seconds(engine: Engine) -> float:
    """Compilation, warm-up and capture of all batch sizes; 0 where nothing is captured."""
    return getattr(engine.runner.steps, "setup_s", 0.0) if isinstance(engine.runner, LaunchRunner) else 0.0


def time_setup(decoder: CubeDecoder, tokens: int) -> Iterator[dict[str, Any]]:
    """The same engine twice: the first compiles what no earlier run left in Triton's cache."""
    for turn in ("first", "again"):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before, started = torch.cuda.memory_allocated(), time.perf_counter()
        engine = engine_for(decoder, tokens, 16, EngineOptions())
        yield {
            "turn": turn,
            "sizes": list(engine.runner.steps.sizes),
            "graphs_s": setup_seconds(engine),
            "engine_s": time.perf_counter() - started,
            "bytes": torch.cuda.memory_allocated() - before,
        }
        del engine
        torch.cuda.empty_cache()


def time_objects(decoder: CubeDecoder, tokens: int) -> Iterator[dict[str, Any]]:
    """Prefill, all tokens, ids on the host; median of three after one to warm up."""
    alone: dict[str, float] = {}
    for weights, batch in CASES:
        engine = engine_for(decoder, tokens, batch, EngineOptions(weights=weights))
        requests = requests_for(decoder, tokens, batch)
        seconds, again = [], set()
        for _ in range(4):
            torch.cuda.synchronize()
            started = time.perf_counter()
            batch_of = engine.generate(requests)
            seconds.append(time.perf_counter() - started)
            again.add(tuple(tuple(r.ids.tolist()) for r in batch_of.results))
        assert len(again) == 1, "the same requests gave different ids"
        median = statistics.median(seconds[1:])
        alone.setdefault(weights, median)
        yield {
            "weights": weights,
            "batch": batch,
            "tokens": tokens,
            "seconds": median,
            "tpot_ms": 1e3 * median / tokens,
            "times_one": median / alone[weights],
            "graphs_s": setup_seconds(engine),
        }
        del engine
        torch.cuda.empty_cache()


def random_tokenizer(tokens: int) -> CubeTokenizer:
    with torch.device("meta"):
        tokenizer = CubeTokenizer(TokenizerConfig(num_encoder_latents=tokens)).to(DTYPE)
    tokenizer = tokenizer.to_empty(device=DEVICE).eval().requires_grad_(False)
    for p in tokenizer.parameters():
        p.normal_(std=0.02) if p.dim() > 1 else p.fill_(1.0)
    return tokenizer


def chair(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Above 0 inside a seat, a back and four legs; (n, 3) to (n,)."""
    boxes = [((0, 0, 0), (0.5, 0.04, 0.5)), ((0, 0.45, -0.46), (0.5, 0.45, 0.03))]
    boxes += [((x, -0.45, z), (0.025, 0.45, 0.025)) for x in (-0.45, 0.45) for z in (-0.45, 0.45)]
    parts = []
    for centre, half in boxes:
        q = np.abs(points - np.asarray(centre, dtype=np.float32)) - np.asarray(half, dtype=np.float32)
        parts.append(-(np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(axis=1), 0)))
    return np.asarray(np.max(parts, axis=0), dtype=np.float32)


class CountedField:
    """The tokenizer at every point, and a chair's answer; the chair's own time is kept apart."""

    def __init__(self, tokenizer: CubeTokenizer, ids: Tensor) -> None:
        self.head = tokenizer.occupancy_decoder
        self.keys_values = self.head.attn_out.keys_values(tokenizer.decode(ids[None].to(DEVICE)))
        self.num_points = 0
        self.head_s = self.chair_s = 0.0

    def __call__(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        started = time.perf_counter()
        # The road of pipelines.shape_model: points up, logits down.
        on_device = torch.from_numpy(points)[None].to(DEVICE)
        logits = self.head(on_device, self.keys_values)[0, :, 0].float().cpu().numpy()
        assert logits.shape == (len(points),)
        answered = time.perf_counter()
        inside = chair(points)
        self.num_points += len(points)
        self.head_s += answered - started
        self.chair_s += time.perf_counter() - answered
        return inside


def time_mesh(decoder: CubeDecoder, tokens: int) -> Iterator[dict[str, Any]]:
    """One prompt to a surface at 2⁸ cells, stage by stage, for two weight formats."""
    from helicube.geometry.surface import SurfaceOptions, extract_surface

    tokenizer = random_tokenizer(tokens)
    for weights in ("bfloat16", "fp8"):
        engine = engine_for(decoder, tokens, 1, EngineOptions(weights=weights))
        for turn in ("warm-up", "measured"):
            torch.cuda.synchronize()
            started = time.perf_counter()
            ids = engine.generate(requests_for(decoder, tokens, 1)).results[0].ids
            tokens_s = time.perf_counter() - started
            field = CountedField(tokenizer, ids)
            mesh = extract_surface(field, SurfaceOptions(cells=CELLS)).mesh
            # The chair's own arithmetic is no part of an object.
            total_s = time.perf_counter() - started - field.chair_s
            if turn == "measured":
                yield {
                    "weights": weights, "total_s": total_s, "tokens_s": tokens_s, "surface_s": total_s - tokens_s,
                    "field_s": field.head_s, "points": field.num_points, "faces": len(mesh.faces), **clean_up(mesh),
                }  # fmt: skip


def clean_up(mesh: Any) -> dict[str, Any]:
    """Repair and triangle budget, where their packages are installed."""
    try:
        from helicube.geometry.budget import simplify
        from helicube.geometry.repair import repair
    except ImportError as error:
        return {"clean_up_s": None, "clean_up": f"left out: {error}"}
    started = time.perf_counter()
    simplify(repair(mesh).mesh, 20_000)
    return {"clean_up_s": time.perf_counter() - started}
