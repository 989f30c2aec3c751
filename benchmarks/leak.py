"""Ten thousand objects in a row: memory stays where it was.

    python benchmarks/leak.py [--objects 10000] [--slots 16] [--steps 24] [--options plain,native,graph] [--output FILE]

A decoder of random weights, requests of changing lengths and samplings, one that is damaged now and then. Resident
memory is read after each fiftieth part; the benchmark ends with status 1 where the second half grew by more than 2 MiB.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch

from helicube.engine.build import make_engine
from helicube.engine.metrics import resident_bytes
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan, Request
from helicube.engine.runner import Conditioning
from helicube.engine.sampling import SamplingConfig
from helicube.errors import DecodeError
from helicube.models.cube.decoder import DecoderConfig
from helicube.pipelines.measured import write_measured
from helicube.pipelines.random_weights import random_decoder

CONFIG = DecoderConfig(n_layer=2, n_head=2, n_embd=64, shape_model_vocab_size=509, text_model_embed_dim=16)
NUM_TEXT, PARTS, ALLOWED = 8, 50, 2 << 20
OPTIONS = {
    "plain": EngineOptions(graph=False, kernels="plain", weights="float32"),
    "native": EngineOptions(graph=False, weights="int8"),
    "graph": EngineOptions(weights="int8"),
}


def run(name: str, objects: int, slots: int, steps: int) -> dict[str, Any]:
    options = OPTIONS[name]
    decoder = random_decoder(CONFIG, "cpu", options.weights, native=name != "plain")
    plan = IdPlan(ranges=((0, 509),) * steps)
    engine = make_engine(decoder, decoder.cache_spec(NUM_TEXT, steps), plan, num_slots=slots, options=options)
    seen: list[int] = []
    started, done, failures, size = time.perf_counter(), 0, 0, -(-objects // PARTS)
    while done < objects:
        # New conditioning each time, as each call of `generate` has.
        states = torch.randn(size + 1, NUM_TEXT, CONFIG.text_model_embed_dim).to(decoder.dtype)
        with torch.inference_mode():
            cond = decoder.condition(states)
        requests = [
            Request(
                prompt=Conditioning(cond=cond[i], uncond=cond[-1]),
                num_tokens=1 + (done + i) % steps,
                sampling=SamplingConfig(temperature=float(i % 2), top_p=0.9, seed=done + i),
            )
            for i in range(size)
        ]
        engine.generate(requests)
        broken = Conditioning(cond=cond[0] * torch.nan, uncond=cond[-1])
        try:
            engine.generate([Request(prompt=broken, num_tokens=steps)])
        except DecodeError:
            failures += 1
        done += size
        seen.append(resident_bytes())
    grown = max(seen[len(seen) // 2 :]) - seen[len(seen) // 2]
    return {"objects": done, "failed_on_purpose": failures, "seconds": time.perf_counter() - started,
            "resident_mib": [round(b / 2**20, 2) for b in seen], "second_half_grew_mib": grown / 2**20}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--options", default="plain,native,graph")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    found = {}
    for name in arguments.options.split(","):
        found[name] = run(name, arguments.objects, arguments.slots, arguments.steps)
        r = found[name]
        print(
            f"{name}: {r['objects']} objects in {r['seconds']:.0f} s, {r['resident_mib'][0]} to "
            f"{r['resident_mib'][-1]} MiB, second half grew by {r['second_half_grew_mib']:.2f} MiB"
        )
    if arguments.output:
        write_measured(found, arguments.output)
    return int(any(r["second_half_grew_mib"] * 2**20 > ALLOWED for r in found.values()))


if __name__ == "__main__":
    sys.exit(main())
