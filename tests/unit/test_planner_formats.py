"""Number formats: every precision on every GPU is planned, or refused with the legal ones."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from helicube.errors import InputError
from helicube.planner.choose_formats import choose_formats
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow
from helicube.planner.setting import Formats, make_setting
from helicube.planner.step import decode_phases, total_time
from helicube.specs.catalog import get_model
from helicube.specs.hardware import list_hardware, read_hardware
from helicube.specs.precision import PRECISIONS

ONE = LayoutArrays.stack([LayoutRow(FAMILIES.index("tp"), 1, 1, 1, 8, 8, 1, False)])


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-r1", "gpt-oss-120b", "kimi-k2.5"])
def test_every_precision_is_planned_or_refused(model: str) -> None:
    spec, planned, messages = get_model(model), 0, list[str]()
    choices = (None, *PRECISIONS)
    for gpu, weights, cache, both in itertools.product(list_hardware(), choices, choices, choices):
        try:
            formats, _ = choose_formats(spec, gpu, precision=both, weights=weights, cache=cache)
            s = make_setting(spec, gpu, engine="vllm", formats=formats)
        except InputError as error:
            messages.append(str(error))
            continue
        seconds = float(total_time(decode_phases(s, ONE, np.array([4.0]), 4096.0))[0])
        assert np.isfinite(seconds)
        assert seconds > 0
        planned += 1
    assert planned > 100
    assert len(messages) > 100
    assert all("choose bf16" in message for message in messages)


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_a_cache_that_no_table_holds_is_refused(precision: str) -> None:
    formats = Formats(attention="bf16", ffn="bf16", experts="bf16", cache=precision)
    gpu = next(g for g in list_hardware() if g.name == "h100")
    with pytest.raises(InputError, match=f"cover {precision} for the cache; choose bf16, fp8, fp4"):
        make_setting(get_model("llama-3.1-8b"), gpu, engine="vllm", formats=formats)


def test_borrowed_constants_without_fp4(tmp_path: Path) -> None:
    """A GPU with fp4 arithmetic that borrows the constants of one without it."""
    path = tmp_path / "mine.toml"
    path.write_text(
        "hbm_bytes_per_s = 8e12\nhbm_bytes = 180e9\nbf16_flops = 2e15\nfp8_flops = 4e15\nfp4_flops = 8e15\n"
        'link_bytes_per_s = 9e11\nlink_domain = 8\ncalibrated_as = "h100"\n'
    )
    formats = Formats(attention="fp4", ffn="fp4", experts="fp4", cache="fp8")
    with pytest.raises(InputError, match="no kernel constants of h100 cover fp4 for attention weights"):
        make_setting(get_model("llama-3.1-8b"), read_hardware(path), engine="vllm", formats=formats)
