"""One rank of `helicube bench helix`: every layout of the pool's size, one after the other."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace

import torch

from helicube.engine.faults import device_faults
from helicube.parallel.environment import pool_size
from helicube.parallel.launched import given, leave_answer
from helicube.parallel.pool import join_pool
from helicube.pipelines.bench_layout import Work, measure_all, open_bench_model
from helicube.specs.layout import legal_layouts

__all__ = ["bench_rank"]


def bench_rank() -> None:
    """Measure what `bench_helix` gave; rank 0 leaves the rows."""
    asked = torch.load(io.BytesIO(given()), weights_only=True)
    model = open_bench_model(asked["model"])
    layouts = legal_layouts(model.spec, pool_size())
    pool = join_pool(layouts, asked["timeout_s"])
    work = Work(**(asked["work"] | {"lengths": tuple(asked["work"]["lengths"])}))
    pool.ready("loaded")
    with device_faults("measuring a layout"):
        here = replace(model, device=pool.device, is_shared=pool.device.type == "cpu")
        rows = measure_all(work, here, layouts, pool.collectives, asked["alone"])
    if pool.collectives.rank == 0:
        leave_answer(json.dumps([asdict(row) for row in rows]).encode())
    pool.ready("done")
    pool.leave()
