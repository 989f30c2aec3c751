"""The ablation: rows for every batch, consistent numbers, unknown models named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny import tiny_weights

from helicube.engine.request import IdPlan
from helicube.errors import InputError
from helicube.pipelines.ablation import Subject, ablate, load_subject, random_decoder, table, write_json


def test_rows_are_consistent(tmp_path: Path) -> None:
    weights = tiny_weights()
    plan = IdPlan(ranges=weights.code.ranges)
    subject = Subject(name="tiny", decoder=weights.decoder, plan=plan, num_text=8, random=True)
    found = ablate(subject, batches=(1, 2), num_steps=5)
    assert [(r.batch, r.name) for r in found.rows] == [(b, n) for b in (1, 2) for n in ("no cache", "+ cache")]
    for row in found.rows:
        assert row.num_steps == 5
        assert row.tpot_s <= row.tpot_p95_s
        assert row.object_s == pytest.approx(row.tpot_s * 15 / row.batch)
        assert row.bandwidth_share == pytest.approx(row.read_bytes_per_s / found.bandwidth_bytes_per_s)
    assert found.rows[0].speedup == found.rows[2].speedup == 1
    assert table(found).row_count == 4
    write_json(found, tmp_path / "rows.json")
    written = json.loads((tmp_path / "rows.json").read_text())
    assert len(written["rows"]) == 4
    assert written["machine"]["torch"] == torch.__version__


def test_random_decoder_has_the_type_asked_for_and_finite_logits() -> None:
    decoder = random_decoder(tiny_weights().config.decoder, "cpu", torch.bfloat16)
    assert {p.dtype for p in decoder.parameters()} == {torch.bfloat16}
    with torch.no_grad():
        cond = decoder.condition(torch.zeros(1, 3, 12, dtype=torch.bfloat16))
        assert torch.isfinite(decoder(torch.tensor([[1, 2, 3]]), cond)).all()


def test_unknown_models_are_named() -> None:
    for name in ("cube-v9", "v0.5", "nonsense"):
        with pytest.raises(InputError, match=r"choose from default, cube-v0\.1, cube-v0\.5"):
            load_subject(name)
