"""The convolutions over a feature volume, by way of planes for a batch of one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from helicube.models.cube.lattice import convolved


@pytest.mark.parametrize("shape", [(1, 4, 6, 6, 6), (1, 4, 1, 5, 7), (2, 4, 6, 6, 6)])
def test_planes_give_what_the_volume_gives(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    conv, volume = nn.Conv3d(4, 3, 3, padding=1), torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(convolved(conv, volume), conv(volume), atol=1e-5, rtol=1e-5)


def test_gradients_come_from_the_volume_itself() -> None:
    conv, volume = nn.Conv3d(4, 3, 3, padding=1), torch.randn(1, 4, 5, 5, 5)
    assert torch.equal(convolved(conv, volume), conv(volume))
