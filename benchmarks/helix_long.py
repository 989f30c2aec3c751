"""A long context of a tiny model over a Helix pool against one device: same ids, same logits, a share of the memory.

    python benchmarks/helix_long.py [--context 131072] [--ranks 4] [--output benchmarks/results/helix_long.json]

The pool and the one device run one after the other, in processes of their own; each takes in the whole prompt in chunks
and then decodes greedily. Attention over 131,072 tokens is 8.6·10⁹ scores per head and layer, so this takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from helicube.engine.helix_runner import HelixRunner
from helicube.engine.text import TextEngine, TextRequest
from helicube.models.loading_open import language_config
from helicube.models.tiny import TINY, random_source
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.parallel.launch import launch
from helicube.parallel.launched import as_rank
from helicube.parallel.pool import join_pool
from helicube.parallel.round_robin import RoundRobin
from helicube.pipelines.measured import write_measured
from helicube.specs.layout import HelixLayout

MODEL = dict(TINY["tiny-gqa"]) | {
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 1 << 20,
    "rope_theta": 1e6,
}
NEW_TOKENS, CHUNK, TIMEOUT_S = 16, 512, 600.0


def rank(context: int, folder: Path) -> None:
    """One rank of a pool with KVP = all ranks, or the one device."""
    size = int(os.environ["WORLD_SIZE"])
    layout = HelixLayout(kvp=size, tpf=size)
    pool = join_pool([layout], TIMEOUT_S)
    config = language_config(MODEL, "tiny-long")
    slots = RoundRobin(num_shards=size).most_held(context + NEW_TOKENS)
    options = HelixOptions(layout=layout, cache_slots=slots)
    decoder = HelixDecoder(config, random_source(config), options, pool.collectives)
    runner = HelixRunner(decoder, chunk=CHUNK)
    logits: list[torch.Tensor] = []
    runner.on_logits = logits.append
    prompt = torch.randint(2, config.vocab_size, (context,), generator=torch.Generator().manual_seed(0)).tolist()
    pool.ready("loaded")
    started = time.perf_counter()
    [result] = TextEngine(runner).run([TextRequest(ids=tuple(prompt), num_tokens=NEW_TOKENS)])
    found = {
        "ids": list(result.ids),
        "ttft_s": result.first_s,
        "tpot_s": result.tpot_s,
        "wall_s": time.perf_counter() - started,
        "cache_bytes": decoder.cache.num_bytes,
        "tokens_held": decoder.cache.held(context + NEW_TOKENS - 1),
        "sent_bytes_per_token": runner.bytes_sent // runner.num_steps,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    number = pool.collectives.rank
    (folder / f"{size}-{number}.json").write_text(json.dumps(found))
    if number == 0:
        torch.save(torch.cat(logits), folder / f"{size}.pt")
    pool.ready("done")
    pool.leave()


def measure(context: int, ranks: int) -> dict[str, Any]:
    """Run the pool and the one device, and compare."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in (ranks, 1):
            launch([sys.executable, __file__, "--context", str(context), "--folder", name], size)
        pool = [json.loads((folder / f"{ranks}-{r}.json").read_text()) for r in range(ranks)]
        alone = json.loads((folder / "1-0.json").read_text())
        difference = (torch.load(folder / f"{ranks}.pt") - torch.load(folder / "1.pt")).abs().max()
    return {
        "command": f"python benchmarks/helix_long.py --context {context} --ranks {ranks}",
        "model": MODEL,
        "same_ids": all(rank["ids"] == alone["ids"] for rank in pool),
        "largest_difference_of_logits": float(difference),
        "pool": pool,
        "one_device": alone,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, default=131_072)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if "RANK" in os.environ:
        as_rank(lambda: rank(options.context, options.folder))
        return
    found = measure(options.context, options.ranks)
    pool, alone = found["pool"], found["one_device"]
    print(f"ids {'identical' if found['same_ids'] else 'DIFFERENT'} over {NEW_TOKENS} tokens after {options.context}")
    print(f"largest difference of logits {found['largest_difference_of_logits']:.2e}")
    for number, one in enumerate(pool):
        share = one["cache_bytes"] / alone["cache_bytes"]
        print(f"rank {number}: {one['tokens_held']} tokens, cache {share:.4f} of one device's")
    print(f"TTFT {pool[0]['ttft_s']:.0f} s (one device {alone['ttft_s']:.0f} s)")
    print(f"TPOT {pool[0]['tpot_s']:.3f} s (one device {alone['tpot_s']:.3f} s)")
    if options.output is not None:
        write_measured(found, options.output)


if __name__ == "__main__":
    main()
