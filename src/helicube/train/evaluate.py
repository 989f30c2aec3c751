"""Every figure of the model card, measured in one go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from helicube.errors import InputError
from helicube.geometry.pictures import contact_sheet
from helicube.pipelines.shape_model import DefaultModel
from helicube.pipelines.text_to_shape import MeshOptions, TextToShape, load
from helicube.train.evaluate_text import ClassTrial, Gallery, class_trials, most_frequent_classes
from helicube.train.evaluate_tokenizer import RoundTrip, round_trips, summarise
from helicube.train.objects import load_catalog
from helicube.train.words import with_article

__all__ = ["EvaluateOptions", "evaluate"]

# Boxes that no class has by nature, to see whether proportions that are asked for are met.
BOXES = ((1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (1.0, 2.0, 1.0), (1.0, 1.0, 2.0), (3.0, 1.0, 2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """What is measured."""

    # Folder with objects.npz and catalog.jsonl.
    data: Path
    # Folder of the model; None is the bundled one.
    weights: str | None = None
    # Figures as JSON, and a contact sheet of one object per class.
    output: Path | None = None
    sheet: Path | None = None
    # Classes by frequency, and seeds of each.
    classes: int = 60
    seeds: int = 4
    # Seen objects of the tokenizer's figures.
    seen: int = 150


def evaluate(options: EvaluateOptions, console: Console | None = None) -> dict[str, object]:
    """Measure the tokenizer, the prompts and the boxes.

    Raises:
        InputError: the model has no lattice code to measure.
    """
    console = console or Console(stderr=True)
    pipeline = load(options.weights)
    model = pipeline.model
    if not isinstance(model, DefaultModel):
        raise InputError(f"model {model.name!r} is a published one; evaluate measures models trained here")
    catalog = list(load_catalog(options.data))
    train = [o for o in catalog if o.split == "train"]
    test = [o for o in catalog if o.split == "test"]
    seen = [train[i] for i in np.random.default_rng(0).choice(len(train), min(options.seen, len(train)), replace=False)]
    unseen_trips, seen_trips = round_trips(model.code, test), round_trips(model.code, seen)
    classes = most_frequent_classes(train, options.classes)
    trials = class_trials(pipeline, Gallery(train), classes, range(options.seeds))
    figures: dict[str, object] = {
        "model": model.name,
        "tokenizer_unseen": summarise(unseen_trips),
        "tokenizer_seen": summarise(seen_trips),
        "codes_used_share": codes_used(model, [*unseen_trips, *seen_trips]),
        **prompt_figures(trials),
        "box_error_mean": box_error(pipeline, classes[:12]),
    }
    if options.sheet is not None:
        write_sheet(trials, options.sheet)
    if options.output is not None:
        partial = options.output.with_name(options.output.name + ".partial")
        partial.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        partial.replace(options.output)
    console.print_json(data=figures)
    return figures


def codes_used(model: DefaultModel, trips: Sequence[RoundTrip]) -> float:
    """Share of the shape codes that occur at all."""
    num_codes = model.code.first_color
    ids = np.concatenate([trip.ids for trip in trips])
    return len(np.unique(ids[ids < num_codes])) / num_codes


def prompt_figures(trials: Sequence[ClassTrial]) -> dict[str, object]:
    """Shares over all trials, and the classes that fare worst."""
    classes = sorted({t.class_name for t in trials})
    by_class = {c: float(np.mean([t.right for t in trials if t.class_name == c])) for c in classes}
    return {
        "prompts": len(trials),
        "right_class_share": float(np.mean([t.right for t in trials])),
        "watertight_share": float(np.mean([t.watertight for t in trials])),
        "single_component_share": float(np.mean([t.components == 1 for t in trials])),
        "worst_prompts": dict(sorted(by_class.items(), key=lambda item: item[1])[:10]),
    }


def box_error(pipeline: TextToShape, classes: Sequence[str]) -> float:
    """Mean relative error of the two aspect ratios asked for."""
    errors = []
    for box in BOXES:
        prompts = [with_article(name) for name in classes]
        made = pipeline.generate_many(
            prompts, [pipeline.model.sampling] * len(prompts), box=box, options=MeshOptions(cells=64)
        )
        for generated in made:
            got = generated.mesh.extents / generated.mesh.extents[0]
            asked = np.array(box) / box[0]
            errors += [abs(got[axis] / asked[axis] - 1) for axis in (1, 2)]
    return float(np.mean(errors))


def write_sheet(trials: Sequence[ClassTrial], path: Path) -> None:
    """A picture of the first object of each class."""
    shown = [t for t in trials if t.seed == 0 and t.mesh is not None]
    contact_sheet([t.mesh for t in shown if t.mesh is not None], [with_article(t.class_name) for t in shown], path)
