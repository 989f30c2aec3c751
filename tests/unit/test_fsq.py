"""Finite scalar quantisation."""

from __future__ import annotations

import pytest
import torch

from helicube.nn.fsq import FSQ


def test_ids_and_codes_are_a_bijection() -> None:
    fsq = FSQ((8, 5, 4))
    ids = torch.arange(fsq.num_codes)
    codes = fsq.to_codes(ids)
    assert codes.min() == -1
    assert codes.max() == 1
    assert len(torch.unique(codes, dim=0)) == fsq.num_codes == 160
    # atanh of ±1 is infinite, and tanh takes it back.
    assert torch.equal(fsq.to_ids(torch.atanh(codes)), ids)


def test_forward_gives_the_codes_of_its_ids_and_passes_gradients() -> None:
    fsq = FSQ((8, 8, 8)).eval()
    z = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    codes = fsq(z)
    assert torch.allclose(codes, fsq.to_codes(fsq.to_ids(z)), atol=1e-6)
    codes.sum().backward()
    assert z.grad is not None
    assert (z.grad > 0).all()


def test_soft_rows_stay_within_one_level() -> None:
    torch.manual_seed(0)
    fsq = FSQ((4, 4)).train()
    z = torch.randn(1000, 7, 2)
    soft = fsq(z, hardness=0.0)
    u = (soft + 1) / 2 * 3
    assert (u - fsq.bound(z)).abs().max() <= 0.5
    assert u.min() >= 0
    assert u.max() <= 3
    assert torch.equal(fsq(z, hardness=1.0), fsq.eval()(z))


def test_moved_codes_are_neighbours() -> None:
    torch.manual_seed(0)
    fsq = FSQ((8, 5))
    codes = fsq.to_codes(torch.randint(40, (4000,)))
    moved = fsq.moved(codes, 0.25)
    levels = (moved - codes) / 2 * torch.tensor([7, 4])
    assert torch.allclose(levels, levels.round(), atol=1e-5)
    assert levels.abs().max() == pytest.approx(1, abs=1e-5)
    assert moved.abs().max() <= 1
    # Those at an end stay half the time: (6 + 2/2)/8 and (3 + 2/2)/5 of a quarter move.
    share = (levels.abs() > 0.5).float().mean(dim=0)
    assert share.tolist() == pytest.approx([0.25 * 7 / 8, 0.25 * 4 / 5], abs=0.02)
    assert torch.equal(fsq.moved(codes, 0.0), codes)
