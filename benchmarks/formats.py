"""What weight formats do to a decoder: error of logits, divergence and agreement of choices, sizes.

    python benchmarks/formats.py [--weights FOLDER] [--prompts 24] [--output benchmarks/results/formats.json]

The model decodes prompts in float32 as it is used; each format then sees the same ids and is asked for the logits
of every step, guided as in decoding. KL is that of the distribution in bfloat16 weights from the format's, in nats per
id. Figures of whole objects (volume IoU, class adherence) come from `helicube evaluate` on quantized folders.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from helicube.engine.options import EngineOptions
from helicube.engine.request import Request
from helicube.kernels.sampling import guide
from helicube.nn.module_bytes import module_bytes
from helicube.pipelines.measured import write_measured
from helicube.pipelines.shape_model import DefaultModel, load_model
from helicube.pipelines.text_to_shape import TextToShape

FORMATS = ("float32", "bfloat16", "int8", "int4-g32", "int4", "int4-g128")
NOUNS = ("chair", "table", "car", "airplane", "lamp", "tree", "dog", "house", "sword", "boat", "mug", "guitar")
COLORS = ("red", "dark blue", "wooden", "white")


def prompts_of(count: int) -> list[str]:
    return [f"a {COLORS[i % 4]} {NOUNS[i % len(NOUNS)]}" for i in range(count)]


def load(weights: str | None, form: str) -> TextToShape:
    model = load_model(weights, form=form)
    assert isinstance(model, DefaultModel), "published decoders are measured on published weights, which are not here"
    return TextToShape(model, EngineOptions(weights=form))


@torch.inference_mode()
def logits_of(pipeline: TextToShape, prompts: list[str], ids_BN: Tensor) -> list[Tensor]:
    """Guided logits of each step's own ids; a list over kinds of ids of (B, steps, ids of that kind)."""
    model = pipeline.model
    conditioned = model.condition(prompts, None).prompts
    bos = torch.full((len(ids_BN), 1), model.decoder.config.bos_id)
    fed = torch.cat([bos, ids_BN[:, :-1]], dim=1)
    steps = ids_BN.shape[1]
    # Guidance falls linearly to nothing.
    gamma = model.sampling.guidance_scale * (1 - torch.arange(steps) / steps)[:, None]
    rows = [
        guide(*(model.decoder(fed[b : b + 1], c[None])[0].float() for c in (p.cond, p.uncond)), gamma)
        for b, p in enumerate(conditioned)
    ]
    whole, kinds = torch.stack(rows), []
    ranges = model.plan.ranges
    for kind in dict.fromkeys(ranges):
        places = [i for i, r in enumerate(ranges) if r == kind]
        kinds.append(whole[:, places, kind[0] : kind[1]])
    return kinds


def compare(found: list[Tensor], base: list[Tensor]) -> dict[str, float]:
    error = kl = same = count = power = 0.0
    for ours, theirs in zip(found, base, strict=True):
        centred, wanted = (x - x.mean(dim=-1, keepdim=True) for x in (ours, theirs))
        error += float((centred - wanted).square().sum())
        power += float(wanted.square().sum())
        p, q = theirs.log_softmax(dim=-1), ours.log_softmax(dim=-1)
        kl += float((p.exp() * (p - q)).sum())
        same += float((ours.argmax(dim=-1) == theirs.argmax(dim=-1)).sum())
        count += theirs[..., 0].numel()
    return {"logit_error": (error / power) ** 0.5, "kl_nats_per_id": kl / count, "same_likeliest": same / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights")
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    prompts = prompts_of(options.prompts)
    pipeline = load(options.weights, "float32")
    requests = [
        Request(prompt=p, num_tokens=pipeline.model.plan.num_steps, sampling=replace(pipeline.model.sampling, seed=i))
        for i, p in enumerate(pipeline.model.condition(prompts, None).prompts)
    ]
    results = pipeline.engine(min(16, len(requests)), True).generate(requests).results
    ids = torch.stack([r.ids for r in results])
    base = logits_of(load(options.weights, "bfloat16"), prompts, ids)
    rows: dict[str, Any] = {}
    for form in FORMATS:
        made = load(options.weights, form)
        size = module_bytes(made.model.decoder.step_modules()) / 2**20
        rows[form] = {"step_mib": size, **compare(logits_of(made, prompts, ids), base)}
    table = Table("weights", "MiB per step", "error of logits", "KL to bfloat16", "same likeliest id")
    for form, r in rows.items():
        table.add_row(form, f"{r['step_mib']:.1f}", f"{r['logit_error']:.2%}", f"{r['kl_nats_per_id']:.2e}",
                      f"{r['same_likeliest']:.2%}")  # fmt: skip
    Console().print(table)
    if options.output:
        write_measured(
            {"weights": options.weights or "default", "prompts": len(prompts), "formats": rows}, options.output
        )


if __name__ == "__main__":
    main()
