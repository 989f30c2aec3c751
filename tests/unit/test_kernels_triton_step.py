"""An engine whose whole steps are kernels chooses the ids of the plain one."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from helicube.kernels.triton import tiles
from helicube.models.cube.formats import is_matrix
from helicube.nn.quantize import WeightFormat, dequantize, quantize
from launch_cases import ids_of, launching_engine, make_decoder, make_requests, plain_engine, runner_of
from triton_cases import DEVICE, TOLERANCE, relative_error


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes some milliseconds per program; the table's tiles would make hundreds."""
    monkeypatch.setattr(tiles, "tile_for", lambda _: tiles.Tile(block_n=128, block_k=128))


@pytest.mark.parametrize(("weights", "lengths"), [("auto", (3, 1, 2)), ("int8", (2,))])
def test_ids_of_the_plain_engine(weights: str, lengths: tuple[int, ...]) -> None:
    decoder = make_decoder(n_head=1).to(DEVICE)
    requests = make_requests(decoder, lengths)
    engine = launching_engine(decoder, 2, implementation="triton", steps_per_launch=2, weights=weights)
    got = ids_of(engine, requests)
    # What the kernels read, not what the decoder holds: bytes in place of floats, but for scales.
    matrices = sum(t.numel() for name, t in decoder.state_dict().items() if is_matrix(name) and ".pre_c." not in name)
    share = runner_of(engine).weight_bytes / matrices
    assert 4 <= share < 4.1 if weights == "auto" else 1 < share < 1.3
    if weights == "int8":
        # The plain decoder on the numbers that int8 stands for.
        stream, form = ("pre_x", "post_1", "single_blocks", "lm_head"), WeightFormat(name="int8")
        for name, layer in decoder.named_modules():
            if isinstance(layer, torch.nn.Linear) and any(part in name for part in stream):
                layer.weight.copy_(dequantize(*quantize(layer.weight, form), form, layer.in_features))
    assert got == ids_of(plain_engine(decoder), requests)
    assert len({tuple(row) for row in got}) == len(lengths)


@torch.inference_mode()
def test_the_plain_step_is_the_twin_of_the_step_of_kernels() -> None:
    decoder = make_decoder(n_head=1).to(DEVICE)
    requests = make_requests(decoder, (5, 4, 3))
    engines = [launching_engine(decoder, 4, implementation=kind, steps_per_launch=1) for kind in ("triton", "torch")]
    for engine in engines:
        for request in requests:
            engine.join(request)
        engine.step()
        # One slot is freed, and the last takes its place.
        engine.leave(1)
        engine.step()
    got, wanted = (runner_of(engine) for engine in engines)
    for f in dataclasses.fields(got.state):
        assert torch.equal(getattr(got.state, f.name), getattr(wanted.state, f.name)), f.name
    for a, b in zip(got.runner.cache.keys, wanted.runner.cache.keys, strict=True):
        # Rows of the two slots in use; a free row's first place is written by the plain step alone.
        assert relative_error(a[:4], b[:4]) < TOLERANCE
