"""What decides an object decides its id too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from small import small_pipeline

from helicube.models.cube.text_static import StaticTextEncoder
from helicube.pipelines.object_steps import _sampled, fingerprint
from helicube.pipelines.text_to_shape import TextToShape


def fresh() -> TextToShape:
    pipeline = small_pipeline()
    codes = torch.arange(12, dtype=torch.int8).reshape(3, 4).numpy().copy()
    pipeline.model.text = StaticTextEncoder(["chair", "lamp", "##s"], codes, torch.ones(3).numpy())  # type: ignore[attr-defined]
    return pipeline


def text(pipeline: TextToShape) -> StaticTextEncoder:
    found: StaticTextEncoder = pipeline.model.text  # type: ignore[attr-defined]
    return found


def a_code(pipeline: TextToShape) -> None:
    text(pipeline)._codes[2, 3] += 1


def a_weight(pipeline: TextToShape) -> None:
    text(pipeline)._weights[1] = 0.5


def an_entry(pipeline: TextToShape) -> None:
    row = text(pipeline)._vocabulary._row
    row["table"] = row.pop("lamp")


def a_parameter(pipeline: TextToShape) -> None:
    pipeline.model.decoder.lm_head.weight.data += 1e-3


def the_kernels(pipeline: TextToShape) -> None:
    object.__setattr__(pipeline.resolved.kernels, "implementation", "other")


@pytest.mark.parametrize("change", [a_code, a_weight, an_entry, a_parameter, the_kernels])
def test_each_part_counts(change: Callable[[TextToShape], None]) -> None:
    pipeline = fresh()
    assert fingerprint(pipeline) == fingerprint(fresh())
    before = fingerprint(pipeline)
    change(pipeline)
    assert fingerprint(pipeline) != before


def test_large_tensors_are_looked_at_to_their_end_and_not_beyond() -> None:
    # Of the size of the published token table, without its memory.
    table = torch.zeros(1).expand(16_387 * 1_536)
    assert _sampled(table, 256) == bytes(256 * 4)
    assert _sampled(torch.arange(1_000_001.0), 3) == torch.tensor([0.0, 500_000, 1_000_000]).numpy().tobytes()
