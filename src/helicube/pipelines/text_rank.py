"""One rank's share of `helicube run`: join the pool, load, decode, and on rank 0 print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from helicube.engine.faults import device_faults
from helicube.engine.helix_runner import HelixRunner
from helicube.engine.sampling import SamplingConfig
from helicube.engine.text import TextEngine, TextRequest, TextResult
from helicube.errors import DecodeError, InputError
from helicube.models.chat import Chat
from helicube.models.loading_open import OpenModel, open_model
from helicube.models.loading_sources import WatchedSource
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.parallel.pool import Pool, join_pool
from helicube.parallel.round_robin import RoundRobin
from helicube.pipelines.cache_room import cache_slots, check_room, slot_bytes
from helicube.pipelines.run_options import RunOptions
from helicube.pipelines.text_check import Decoded, compare
from helicube.pipelines.text_report import TextPrinter, say_numbers
from helicube.specs.layout import HelixLayout

__all__ = ["run_rank", "totals"]

# Requests side by side.
NUM_SLOTS = 16


def run_rank(options: RunOptions, layout: HelixLayout) -> None:
    """Decode the prompts of `options`, which have been read; every rank calls this.

    Raises:
        HelicubeError: see `run_text`.
        OSError: standard output is gone or full.
    """
    pool = join_pool([layout], options.timeout)
    rank = pool.collectives.rank
    opened = open_model(options.model)
    layout.validate(opened.spec)
    chat = opened.chat()
    pool.beat()
    requests = _requests(options, chat)
    helix = _helix_options(options, layout, opened, requests, pool.device)
    runner = _runner(options, opened, helix, pool)
    logits = _record(runner) if options.check and rank == 0 else []
    pool.ready("loaded")
    engine = TextEngine(runner)
    printer = TextPrinter(chat, len(requests)) if rank == 0 else None
    results = engine.run(requests, printer.token if printer else None)
    table = totals(runner, pool.collectives)
    pool.ready("done")
    pool.leave()
    if printer is None:
        return
    printer.finish(results)
    errors = [r.error for r in results if r.error]
    if len(errors) < len(results):
        say_numbers(results, requests, helix, table, engine.engine.decode_s)
        padding = layout.padding(opened.spec)
        if padding:
            sys.stderr.write(f"padded with zeros, which changes no result: {padding}\n")
    if errors:
        raise DecodeError(errors[0])
    if options.check:
        _check(options, opened, requests[0], (results[0], logits), pool.device)


def _requests(options: RunOptions, chat: Chat) -> list[TextRequest]:
    """The prompts as ids; each has a seed of its own, counted up."""
    plain = replace(chat, template=None) if options.raw else chat
    return [
        TextRequest(
            ids=plain.prompt_ids(text),
            num_tokens=options.max_tokens,
            sampling=SamplingConfig(
                guidance_scale=0.0, temperature=options.temperature, top_p=options.top_p, seed=options.seed + i
            ),
            stop_ids=chat.stop_ids,
        )
        for i, text in enumerate(options.prompts)
    ]


def _helix_options(
    options: RunOptions, layout: HelixLayout, opened: OpenModel, requests: Sequence[TextRequest], device: torch.device
) -> HelixOptions:
    placement = RoundRobin(num_shards=layout.kvp, block=options.block)
    # What is longer than the context fails alone, when its turn comes.
    longest = opened.config.most_tokens or sys.maxsize
    lengths = sorted((min(len(r.ids) + r.num_tokens, longest) for r in requests), reverse=True)[:NUM_SLOTS]
    asked = options.cache_tokens
    return HelixOptions(
        layout=layout,
        cache_slots=placement.most_held(asked) if asked is not None else cache_slots(placement, lengths),
        block=options.block,
        overlap_parts=options.hopb,
        dtype=_dtype(options, device),
        weights=_weights(options, device),
        device=device,
    )


def _dtype(options: RunOptions, device: torch.device) -> torch.dtype:
    if options.dtype == "auto":
        return torch.float32 if device.type == "cpu" or options.check else torch.bfloat16
    return torch.float32 if options.dtype == "float32" else torch.bfloat16


def _weights(options: RunOptions, device: torch.device) -> str:
    """Format of the linear layers.

    Raises:
        InputError: one that saves nothing on the device.
    """
    if options.weight_format != "auto" and device.type != "cpu":
        raise InputError(
            f"--weight-format {options.weight_format} of language models is for CPUs, not {device.type}; choose "
            "--dtype bfloat16"
        )
    return options.weight_format


def _runner(options: RunOptions, opened: OpenModel, helix: HelixOptions, pool: Pool | None) -> HelixRunner:
    """A rank of the pool, or one device."""
    ranks_here = 1
    if pool is not None and torch.device(helix.device).type == "cpu":
        ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", helix.layout.num_ranks))
    check_room(helix.cache_slots, slot_bytes(opened.config, helix.layout, helix.dtype), helix.device, ranks_here)
    source = opened.source if pool is None else WatchedSource(opened.source, pool.beat)
    collectives = pool.collectives if pool is not None else SoloCollectives()
    with device_faults("loading the model"):
        decoder = HelixDecoder(opened.config, source, helix, collectives)
    return HelixRunner(decoder, num_slots=NUM_SLOTS, chunk=options.chunk)


def _record(runner: HelixRunner) -> list[Tensor]:
    """The logits (A, V) of every step from now on."""
    logits: list[Tensor] = []
    runner.on_logits = lambda found: logits.append(found.cpu())
    return logits


def totals(runner: HelixRunner, collectives: Collectives) -> Tensor:
    """Per rank: bytes of weights, bytes of cache, bytes read by all steps, bytes sent by all steps; (N, 4) float64."""
    decoder = runner.decoder
    mine = [decoder.weight_bytes, decoder.cache.num_bytes, runner.bytes_read, runner.bytes_sent]
    row = torch.tensor(mine, dtype=torch.float64, device=decoder.options.device)
    return collectives.all_gather(row, decoder.grid.pool).cpu()


def _check(
    options: RunOptions,
    opened: OpenModel,
    request: TextRequest,
    pool: tuple[TextResult, Sequence[Tensor]],
    device: torch.device,
) -> None:
    """Decode the same prompt on one device and compare.

    Args:
        pool: what the layout made of it, and the logits of its steps.

    Raises:
        DecodeError: the layout is wrong.
    """
    result, logits = pool
    runner = _runner(options, opened, _helix_options(options, HelixLayout(), opened, [request], device), None)
    expected = _record(runner)
    [alone] = TextEngine(runner).run([request])
    greedy = options.temperature == 0
    line = compare(Decoded(ids=result.ids, logits=logits), Decoded(ids=alone.ids, logits=expected), greedy=greedy)
    sys.stderr.write(f"{line}\n")
