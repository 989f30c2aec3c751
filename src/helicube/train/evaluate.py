"""Every figure of the model card, measured in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from rich.console import Console

from helicube.errors import InputError
from helicube.geometry.pictures import contact_sheet
from helicube.pipelines.measured import check_output, write_measured
from helicube.pipelines.shape_model import DefaultModel
from helicube.pipelines.text_to_shape import load
from helicube.train.catalog import load_catalog
from helicube.train.evaluate_text import (
    ClassTrial,
    Galleries,
    box_figures,
    class_trials,
    most_frequent_classes,
    prompt_figures,
    real_right_shares,
)
from helicube.train.evaluate_tokenizer import RoundTrip, round_trips, summarise
from helicube.train.gallery import Gallery
from helicube.train.items import unseen_mask
from helicube.train.objects import TrainingObject
from helicube.train.procedural import generate_many
from helicube.train.words import with_article

__all__ = ["EvaluateOptions", "evaluate"]


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
    # Seen objects of the tokenizer's figures; at most so many unseen ones, None for all.
    seen: int = 150
    unseen: int | None = None
    # Procedural training objects that prompts may come nearest to, beside the catalogue's.
    procedural: int = 2620


def evaluate(options: EvaluateOptions, console: Console | None = None) -> dict[str, object]:
    """Measure the tokenizer, the prompts and the boxes.

    The figures so far are written after each part, so that an interruption loses one part only.

    Raises:
        InputError: the model has no lattice code to measure, or a file cannot be written where it was asked for.
    """
    check_output(options.output)
    check_output(options.sheet)
    if options.sheet is not None and options.sheet.suffix.lower() != ".png":
        raise InputError(f"cannot write the sheet {options.sheet}: the ending must be .png")
    console = console or Console(stderr=True)
    pipeline = load(options.weights)
    model = pipeline.model
    if not isinstance(model, DefaultModel):
        raise InputError(f"model {model.name!r} is a published one; evaluate measures models trained here")
    catalog = list(load_catalog(options.data))
    train = [o for o in catalog if o.split == "train"]
    test = [o for o in catalog if o.split == "test"][: options.unseen]
    if not train:
        raise InputError(f"{options.data} has no objects of the split train; prompts are compared with those")
    figures: dict[str, object] = {"model": model.name}

    def keep(found: dict[str, object]) -> None:
        figures.update(found)
        if options.output is not None:
            write_measured(figures, options.output)

    classes = most_frequent_classes(train, options.classes)
    procedural = list(generate_many(options.procedural, 0))
    galleries = Galleries(catalog=Gallery(train), procedural=Gallery(procedural))
    trials = class_trials(pipeline, galleries, classes, range(options.seeds))
    if options.sheet is not None:
        write_sheet(trials, options.sheet)
    keep(prompt_figures(trials))
    # A catalogue may have no unseen objects; what they would tell is left out then.
    if test:
        keep({**real_right_shares(galleries, test)})
    keep(box_figures(pipeline, classes[:12]))
    keep(tokenizer_figures(model, train, test, options.seen))
    console.print_json(data=figures)
    return figures


def tokenizer_figures(
    model: DefaultModel, train: Sequence[TrainingObject], test: Sequence[TrainingObject], num_seen: int
) -> dict[str, object]:
    """Round trips of unseen objects, and of some that it learnt from; those without volume, or none, are left out."""
    # As `train` splits them: one in forty was kept back from training as well.
    learnt = [source for source, kept in zip(train, unseen_mask(train), strict=True) if not kept]
    seen = [learnt[i] for i in np.random.default_rng(0).choice(len(learnt), min(num_seen, len(learnt)), replace=False)]
    trips = {"tokenizer_unseen": round_trips(model.code, test), "tokenizer_seen": round_trips(model.code, seen)}
    figures: dict[str, object] = {name: summarise(some) for name, some in trips.items() if some}
    return figures | ({"codes_used_share": codes_used(model, list(chain(*trips.values())))} if figures else {})


def codes_used(model: DefaultModel, trips: Sequence[RoundTrip]) -> float:
    """Share of the shape codes that occur at all."""
    num_codes = model.code.first_color
    ids = np.concatenate([trip.ids for trip in trips])
    return len(np.unique(ids[ids < num_codes])) / num_codes


def write_sheet(trials: Sequence[ClassTrial], path: Path) -> None:
    """A picture of the first object of each class."""
    shown = [t for t in trials if t.seed == 0 and t.mesh is not None]
    contact_sheet([t.mesh for t in shown if t.mesh is not None], [with_article(t.class_name) for t in shown], path)
