"""What `helicube run` prints: the text to standard output, what it took to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from helicube.engine.text import TextRequest, TextResult
from helicube.models.chat import Chat
from helicube.parallel.helix import HelixOptions
from helicube.parallel.round_robin import RoundRobin
from helicube.pipelines.text_writer import TextWriter

__all__ = ["TextPrinter", "idle_ranks", "say_numbers", "tokens_dealt"]


class TextPrinter:
    """Text as it comes for one prompt, text by text for several."""

    def __init__(self, chat: Chat, num_prompts: int) -> None:
        self.chat, self.say, self.writer = chat, chat.stream(), TextWriter()
        self.live = num_prompts == 1
        self.written = ""

    def token(self, index: int, token: int) -> None:  # noqa: ARG002 - the engine's signature
        if self.live:
            self._write(self.say(token))

    def finish(self, results: Sequence[TextResult]) -> None:
        """Write what is left and wait until all is out."""
        if self.live:
            # A character that was never finished.
            rest = self.chat.decode(results[0].ids)[len(self.written) :]
            if self.written or not results[0].error:
                self._write(rest + "\n")
        else:
            for number, result in enumerate(results, 1):
                said = f"error: {result.error}" if result.error else self.chat.decode(result.ids)
                self._write(f"[{number}] {said}\n")
        self.writer.close()

    def _write(self, text: str) -> None:
        self.written += text
        self.writer.write(text)


def tokens_dealt(helix: HelixOptions, requests: Sequence[TextRequest], results: Sequence[TextResult]) -> list[int]:
    """Tokens that each KVP rank was dealt, of all requests together; the last id of each is never cached."""
    placement = RoundRobin(num_shards=helix.layout.kvp, block=helix.block)
    lengths = [len(a.ids) + len(b.ids) - 1 for a, b in zip(requests, results, strict=True) if b.ids]
    return [sum(placement.held(n, shard) for n in lengths) for shard in range(helix.layout.kvp)]


def idle_ranks(helix: HelixOptions, dealt: Sequence[int]) -> str:
    """A line on KVP ranks that had nothing to attend to; empty if there were none."""
    idle = [str(shard) for shard, count in enumerate(dealt) if not count]
    if not idle:
        return ""
    return (
        f"KVP rank {', '.join(idle)} of {len(dealt)} held no token, as tokens are dealt in blocks of {helix.block}: a "
        "longer prompt, or a smaller --block, spreads them over all\n"
    )


def formats(helix: HelixOptions) -> str:
    """Of activations and cache, and of weights where these have one of their own."""
    dtype = str(helix.dtype).removeprefix("torch.")
    return dtype if helix.weights == "auto" else f"{dtype} with {helix.weights} weights"


def say_numbers(
    results: Sequence[TextResult],
    requests: Sequence[TextRequest],
    helix: HelixOptions,
    table: Tensor,
    decode_s: float,
) -> None:
    """What the run took.

    Args:
        table: (N, 4), see `text_rank.totals`.
        decode_s: seconds of all steps together.
    """
    tokens = sum(len(r.ids) for r in results)
    shape = f"{helix.layout} on {helix.device}, {formats(helix)}, torch {torch.__version__}"
    finish = ", ".join(dict.fromkeys(r.finish for r in results))
    lines = [f"prompt {sum(len(r.ids) for r in requests)} tokens, answer {tokens} tokens ({finish}); {shape}"]
    dealt = tokens_dealt(helix, requests, results)
    if tokens:
        decode_s = max(decode_s, 1e-9)
        ttft, tpot = (max(r.first_s for r in results), max(r.tpot_s for r in results))
        whose = "" if len(table) == 1 else " by all ranks together"
        lines.append(
            f"TTFT {ttft:.2f} s   TPOT {tpot * 1e3:.1f} ms   {tokens / decode_s:.1f} tokens/s   "
            f"{float(table[:, 2].sum()) / decode_s / 1e9:.2f} GB/s read{whose}"
        )
        megabytes = [f"{w / 1e6:.1f}+{c / 1e6:.1f}" for w, c in table[:, :2].tolist()]
        sent = f"; {float(table[:, 3].max()) / tokens / 1e3:.1f} kB sent per token" if len(table) > 1 else ""
        room = f"room for {helix.cache_slots} tokens a rank, dealt {'/'.join(map(str, dealt))}"
        lines.append(f"MB of weights+cache per rank: {', '.join(megabytes)} ({room}){sent}")
    sys.stderr.write("\n".join(lines) + "\n" + (idle_ranks(helix, dealt) if tokens else ""))
