"""Norm, rotation and cache write of a new token equal the layers of nn and their twin."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from helicube.kernels.triton.query_key import rotate_and_store, rotate_and_store_plain
from helicube.nn.norm import RMSNorm
from helicube.nn.rotary import apply_rotary, rotary_table
from triton_cases import DEVICE, TOLERANCE, error, normal


def caches(rows: int, heads: int, slots: int, size: int) -> tuple[Tensor, Tensor]:
    """Every slot poisoned, so that a stray write or read shows."""
    return tuple(torch.full((rows, heads, slots, size), torch.nan, device=DEVICE) for _ in range(2))  # type: ignore[return-value]


def test_equals_the_layers_of_nn() -> None:
    heads, size, prefix, positions = 2, 64, 7, [0, 12, 5]
    qkv = normal(3, 3 * heads * size)
    table = rotary_table(13, size, 10000.0, DEVICE)
    norms = RMSNorm(size, 1e-5).to(DEVICE), RMSNorm(size, 1e-5).to(DEVICE)
    for i, norm in enumerate(norms):
        norm.weight.data = normal(size, seed=i)
    keys, values = caches(3, heads, prefix + 13, size)
    q = rotate_and_store(
        qkv,
        table,
        torch.tensor(positions, device=DEVICE),
        keys,
        values,
        num_heads=heads,
        norm=(norms[0].weight.data, norms[1].weight.data),
        prefix_slots=prefix,
    )
    rows_q, rows_k, rows_v = qkv.view(3, 3, heads, size).unbind(1)
    for row, position in enumerate(positions):
        at = table[position : position + 1]
        with torch.no_grad():
            assert error(q[row], apply_rotary(norms[0](rows_q[row])[:, None], at)[:, 0]) < TOLERANCE
            assert (
                error(keys[row, :, prefix + position], apply_rotary(norms[1](rows_k[row])[:, None], at)[:, 0])
                < TOLERANCE
            )
        assert torch.equal(values[row, :, prefix + position], rows_v[row])
    for t in (keys, values):
        assert int((~t.isnan()).sum()) == 3 * heads * size


@pytest.mark.parametrize(("heads", "kv_heads", "size"), [(3, 1, 24), (4, 2, 32)])
@pytest.mark.parametrize("with_norm", [True, False])
def test_equals_its_twin(heads: int, kv_heads: int, size: int, with_norm: bool) -> None:
    qkv = normal(4, (heads + 2 * kv_heads) * size)
    table = rotary_table(9, size, 10000.0, DEVICE)
    # A row that is not in use has position −1 and keeps its cache.
    positions = torch.tensor([8, -1, 0, 3], device=DEVICE, dtype=torch.int32)
    norm = (normal(size, seed=1), normal(size, seed=2)) if with_norm else None
    got, wanted = caches(5, kv_heads, 11, size), caches(5, kv_heads, 11, size)
    q = rotate_and_store(qkv, table, positions, *got, num_heads=heads, norm=norm, prefix_slots=2)
    plain = rotate_and_store_plain(qkv, table, positions, *wanted, num_heads=heads, norm=norm, prefix_slots=2)
    assert error(q, plain) < TOLERANCE
    for a, b in zip(got, wanted, strict=True):
        assert torch.equal(a.isnan(), b.isnan())
        assert a[1].isnan().all()
        assert error(a.nan_to_num(), b.nan_to_num()) < TOLERANCE
