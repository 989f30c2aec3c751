"""Predict measured serving rows, all rows of one model, GPU, precision and engine at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array
from helicube.planner.constants import EngineConstants, GpuConstants
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow
from helicube.planner.serving import Serving, predict_serving
from helicube.planner.serving_table import ServingRow, row_formats
from helicube.planner.setting import Formats, Setting
from helicube.specs.hardware import HardwareSpec
from helicube.specs.model import ModelSpec

__all__ = ["RowGroup", "group_rows", "predict_group"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowGroup:
    """Rows that share model, GPU, formats and engine; arrays are (rows,)."""

    model: ModelSpec
    hardware: HardwareSpec
    engine: str
    formats: Formats
    index: NDArray[np.intp]
    # Positions in the table.
    layouts: LayoutArrays
    concurrency: Array
    prompt: Array
    output: Array
    measured_s: Array


def _layouts(rows: Sequence[ServingRow]) -> LayoutArrays:
    def family(row: ServingRow) -> int:
        return FAMILIES.index("pp" if row.pp > 1 else "dp" if row.dp > 1 else "tp")

    return LayoutArrays.stack([
        LayoutRow(family(r), pp=r.pp, dp=r.dp, tpa=r.tpa, tpf=r.tpf, ep=r.ep) for r in rows
    ])  # fmt: skip


def group_rows(rows: Sequence[ServingRow]) -> list[RowGroup]:
    """Group rows for prediction."""
    keys: dict[tuple[str, str, str, Formats], list[int]] = {}
    for i, row in enumerate(rows):
        keys.setdefault((row.model.name, row.hardware.name, row.engine, row_formats(row)), []).append(i)
    groups = []
    for (_, _, engine, formats), index in keys.items():
        chosen = [rows[i] for i in index]
        columns = np.array([(r.concurrency, r.prompt, r.output, r.tpot_s) for r in chosen]).T
        groups.append(RowGroup(
            model=chosen[0].model, hardware=chosen[0].hardware, engine=engine, formats=formats,
            index=np.array(index, dtype=np.intp), layouts=_layouts(chosen), concurrency=columns[0], prompt=columns[1],
            output=columns[2], measured_s=columns[3],
        ))  # fmt: skip
    return groups


def predict_group(group: RowGroup, gpu: GpuConstants, engine: EngineConstants) -> Serving:
    """Predict all rows of a group with given constants."""
    setting = Setting(
        model=group.model, hardware=group.hardware, gpu=gpu, engine=engine, formats=group.formats, kind="fitted"
    )
    return predict_serving(
        setting, group.layouts, concurrency=group.concurrency, prompt=group.prompt, output=group.output
    )
