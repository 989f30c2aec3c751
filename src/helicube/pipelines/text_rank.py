"""One rank's share of `helicube run`: join the pool, load, decode, and on rank 0 print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from helicube.engine.helix_runner import HelixRunner
from helicube.engine.sampling import SamplingConfig
from helicube.engine.text import TextEngine, TextRequest, TextResult
from helicube.errors import DecodeError
from helicube.models.chat import Chat
from helicube.models.loading_open import OpenModel, open_model
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.parallel.pool import join_pool
from helicube.parallel.round_robin import RoundRobin
from helicube.pipelines.run_text import RunOptions
from helicube.specs.layout import HelixLayout

__all__ = ["cache_slots", "run_rank"]

# Requests side by side.
NUM_SLOTS = 16


def run_rank(options: RunOptions, layout: HelixLayout) -> None:
    """Decode the prompts of `options`; every rank calls this.

    Raises:
        HelicubeError: see `run_text`.
    """
    opened = open_model(options.model)
    layout.validate(opened.spec)
    pool = join_pool([layout], options.timeout)
    chat = opened.chat()
    requests = _requests(options, chat)
    helix = _helix_options(options, layout, opened, requests, pool.device)
    runner = _runner(options, opened, helix, pool.collectives)
    logits = _record(runner) if options.check else []
    pool.ready("loaded")
    engine = TextEngine(runner)
    printer = _Printer(chat, len(requests)) if pool.collectives.rank == 0 else None
    results = engine.run(requests, printer.token if printer else None)
    table = _totals(runner, pool.collectives)
    pool.ready("done")
    pool.leave()
    if printer is None:
        return
    printer.finish(results)
    errors = [r.error for r in results if r.error]
    if len(errors) < len(results):
        _print_numbers(results, requests, helix, table, engine.engine.decode_s)
        padding = layout.padding(opened.spec)
        if padding:
            sys.stderr.write(f"padded with zeros, which changes no result: {padding}\n")
    if errors:
        raise DecodeError(errors[0])
    if options.check:
        _check(options, opened, (requests[0], results[0], logits), pool.device)


def cache_slots(placement: RoundRobin, lengths: Sequence[int]) -> int:
    """Tokens that each KVP rank must be able to hold for sequences of these lengths side by side."""
    return sum(placement.most_held(n) for n in lengths)


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
        for i, text in enumerate(options.texts())
    ]


def _helix_options(
    options: RunOptions, layout: HelixLayout, opened: OpenModel, requests: Sequence[TextRequest], device: torch.device
) -> HelixOptions:
    placement = RoundRobin(num_shards=layout.kvp, block=options.block)
    longest = opened.config.max_context or sys.maxsize
    lengths = sorted((min(len(r.ids) + r.num_tokens, longest) for r in requests), reverse=True)[:NUM_SLOTS]
    asked = options.cache_tokens
    return HelixOptions(
        layout=layout,
        cache_slots=placement.most_held(asked) if asked is not None else cache_slots(placement, lengths),
        block=options.block,
        overlap_parts=options.hopb,
        dtype=_dtype(options.dtype, device),
        device=device,
    )


def _dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    return torch.float32 if name == "float32" else torch.bfloat16


def _runner(options: RunOptions, opened: OpenModel, helix: HelixOptions, collectives: Collectives) -> HelixRunner:
    decoder = HelixDecoder(opened.config, opened.source, helix, collectives)
    return HelixRunner(decoder, num_slots=NUM_SLOTS, chunk=options.chunk)


def _record(runner: HelixRunner) -> list[Tensor]:
    """The logits (A, V) of every step from now on."""
    logits: list[Tensor] = []
    runner.on_logits = lambda found: logits.append(found.cpu())
    return logits


class _Printer:
    """Text to standard output: as it comes for one prompt, text by text for several."""

    def __init__(self, chat: Chat, num_prompts: int) -> None:
        self.chat, self.say = chat, chat.stream()
        self.live = num_prompts == 1
        self.written = ""

    def token(self, index: int, token: int) -> None:  # noqa: ARG002 - the engine's signature
        if self.live:
            self._write(self.say(token))

    def finish(self, results: Sequence[TextResult]) -> None:
        if self.live and results[0].error:
            return
        if self.live:
            # A character that was never finished.
            self._write(self.chat.decode(results[0].ids)[len(self.written) :] + "\n")
            return
        for number, result in enumerate(results, 1):
            self._write(
                f"[{number}] {self.chat.decode(result.ids) if not result.error else 'error: ' + result.error}\n"
            )

    def _write(self, text: str) -> None:
        self.written += text
        sys.stdout.write(text)
        sys.stdout.flush()


def _totals(runner: HelixRunner, collectives: Collectives) -> Tensor:
    """Per rank: bytes of weights, bytes of cache, bytes read by all steps, bytes sent by all steps; (N, 4) float64."""
    decoder = runner.decoder
    mine = [decoder.weight_bytes, decoder.cache.num_bytes, runner.bytes_read, runner.bytes_sent]
    row = torch.tensor(mine, dtype=torch.float64, device=decoder.options.device)
    return collectives.all_gather(row, decoder.grid.pool).cpu()


def _print_numbers(
    results: Sequence[TextResult],
    requests: Sequence[TextRequest],
    helix: HelixOptions,
    table: Tensor,
    decode_s: float,
) -> None:
    """What the run took, to standard error."""
    tokens = sum(len(r.ids) for r in results)
    shape = f"{helix.layout} on {helix.device}, {str(helix.dtype).removeprefix('torch.')}, torch {torch.__version__}"
    finish = ", ".join(dict.fromkeys(r.finish for r in results))
    lines = [f"prompt {sum(len(r.ids) for r in requests)} tokens, answer {tokens} tokens ({finish}); {shape}"]
    if tokens:
        decode_s = max(decode_s, 1e-9)
        ttft, tpot = (max(r.first_s for r in results), max(r.tpot_s for r in results))
        lines.append(
            f"TTFT {ttft:.2f} s   TPOT {tpot * 1e3:.1f} ms   {tokens / decode_s:.1f} tokens/s   "
            f"{float(table[:, 2].sum()) / decode_s / 1e9:.2f} GB/s read"
        )
        megabytes = [f"{w / 1e6:.1f}+{c / 1e6:.1f}" for w, c in table[:, :2].tolist()]
        sent = f"; {float(table[:, 3].max()) / tokens / 1e3:.1f} kB sent per token" if len(table) > 1 else ""
        lines.append(f"MB of weights+cache per rank: {', '.join(megabytes)} ({helix.cache_slots} tokens a rank){sent}")
    sys.stderr.write("\n".join(lines) + "\n")


def _check(
    options: RunOptions,
    opened: OpenModel,
    decoded: tuple[TextRequest, TextResult, Sequence[Tensor]],
    device: torch.device,
) -> None:
    """Decode the same prompt on one device and compare.

    Args:
        decoded: the request, what the layout made of it, and the logits of its steps.

    Raises:
        DecodeError: the ids differ.
    """
    request, result, logits = decoded
    one = _helix_options(options, HelixLayout(), opened, [request], device)
    runner = _runner(options, opened, one, SoloCollectives())
    expected = _record(runner)
    [alone] = TextEngine(runner).run([request])
    common = next((i for i, (a, b) in enumerate(zip(result.ids, alone.ids, strict=False)) if a != b), None)
    steps = min(len(logits), len(expected)) if common is None else common + 1
    worst = max((float((a - b).abs().max()) for a, b in zip(logits[:steps], expected[:steps], strict=True)), default=0)
    same = result.ids == alone.ids
    says = "identical" if same else f"different from token {common if common is not None else steps} on"
    sys.stdout.write(f"check: ids {says} over {len(alone.ids)} tokens, largest difference of logits {worst:.2e}\n")
    sys.stdout.flush()
    if not same:
        raise DecodeError("the layout's ids differ from one device's; in float32 that is an error of helicube")
