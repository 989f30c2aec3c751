"""Attention, its merge and the cache write on a GPU."""

from __future__ import annotations

import math

import pytest
import torch

from helicube.kernels.triton.attention import CachedKeys, attend, attend_split
from helicube.kernels.triton.merge import merge
from helicube.kernels.triton.query_key import rotate_and_store, rotate_and_store_plain
from helicube.nn.merge import merge_partials
from helicube.nn.prefix_attention import attend_prefix
from helicube.nn.rotary import rotary_table
from triton_cases import DEVICE, GPU_ONLY, normal, relative_error

pytestmark = GPU_ONLY

LIMITS = {torch.bfloat16: 1e-2, torch.float32: 1e-5}


@pytest.mark.parametrize("dtype", list(LIMITS))
@pytest.mark.parametrize(("heads", "kv_heads", "size"), [(2, 2, 128), (4, 1, 64)])
def test_all_lengths_at_once(heads: int, kv_heads: int, size: int, dtype: torch.dtype) -> None:
    # One row per length from 0 to 1,103, of the same cache.
    most = 1103
    q = normal(most + 1, heads, size).to(dtype)
    k, v = (normal(kv_heads, most, size, seed=s).to(dtype) for s in (1, 2))
    lengths = torch.arange(most + 1, device=DEVICE, dtype=torch.int32)
    o, lse = attend(q, CachedKeys(keys=k, values=v, lengths=lengths, starts=torch.zeros_like(lengths)))
    kk, vv = (t.double().repeat_interleave(heads // kv_heads, dim=0) for t in (k, v))
    scores = torch.einsum("rhd,hmd->rhm", q.double(), kk) / math.sqrt(size)
    scores.masked_fill_(torch.arange(most, device=DEVICE) >= lengths[:, None, None], -torch.inf)
    wanted_lse = scores.logsumexp(dim=-1)
    assert (o[0] == 0).all()
    assert (lse[0] == -torch.inf).all()
    assert torch.allclose(lse[1:].double(), wanted_lse[1:], rtol=0, atol=LIMITS[dtype])
    wanted = torch.einsum("rhm,hmd->rhd", scores[1:].softmax(dim=-1), vv)
    for row in range(most):
        assert relative_error(o[row + 1], wanted[row]) < LIMITS[dtype], f"length {row + 1}"


def test_prefix_shorter_than_its_slots_and_poison_beyond() -> None:
    q, lengths, prefix = normal(3, 12, 128).bfloat16(), [0, 500, 1024], [1, 40, 78]
    k, v = (torch.full((3, 12, 1102, 128), torch.nan, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    for row, (length, filled) in enumerate(zip(lengths, prefix, strict=True)):
        for t in (k, v):
            t[row, :, :filled] = normal(12, filled, 128, seed=row).bfloat16()
            t[row, :, 78 : 78 + length] = normal(12, length, 128, seed=row + 9).bfloat16()
    at = (torch.tensor(n, device=DEVICE, dtype=torch.int32) for n in (lengths, prefix))
    cached = CachedKeys(keys=k, values=v, lengths=next(at), prefix_slots=78, prefix=next(at))
    o, _ = attend(q, cached)
    for row, (length, filled) in enumerate(zip(lengths, prefix, strict=True)):
        kk, vv = (torch.cat([t[row, :, :filled], t[row, :, 78 : 78 + length]], dim=1) for t in (k, v))
        wanted, _ = attend_prefix(q[row][None], kk, vv, [kk.shape[1]], 128**-0.5)
        assert relative_error(o[row], wanted[0]) < LIMITS[torch.bfloat16]


def test_a_long_context_and_the_merge() -> None:
    # 2.2 million keys of 8 heads: more than 2³¹ elements, 64 splits.
    length = 2_200_000
    if torch.cuda.get_device_properties(0).total_memory < 40 << 30:
        pytest.skip("needs 40 GiB of GPU memory")
    torch.manual_seed(0)
    q = normal(1, 32, 128).bfloat16()
    k, v = (torch.randn(8, length, 128, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    at = torch.tensor([length], device=DEVICE, dtype=torch.int32)
    parts = attend_split(q, CachedKeys(keys=k, values=v, lengths=at, starts=torch.zeros_like(at)), num_splits=64)
    (o, lse), (twin, twin_lse) = merge(*parts), merge_partials(*parts)
    assert relative_error(o, twin) < 1e-5
    assert torch.allclose(lse, twin_lse, rtol=0, atol=1e-5)
    wanted, wanted_lse = attend_prefix(q, k, v, [length], 128**-0.5)
    assert relative_error(o, wanted) < LIMITS[torch.bfloat16]
    assert torch.allclose(lse, wanted_lse, rtol=0, atol=1e-2)


@pytest.mark.parametrize("dtype", list(LIMITS))
@pytest.mark.parametrize(("heads", "size"), [(12, 128), (4, 64)])
def test_rotate_and_store(heads: int, size: int, dtype: torch.dtype) -> None:
    qkv = normal(5, 3 * heads * size).to(dtype)
    table = rotary_table(1024, size, 10000.0, DEVICE)
    positions = torch.tensor([0, 1023, -1, 17, 500], device=DEVICE, dtype=torch.int32)
    norm = (normal(size, seed=1).to(dtype), normal(size, seed=2).to(dtype))
    got, wanted = (
        [torch.full((5, heads, 1102, size), torch.nan, device=DEVICE, dtype=dtype) for _ in range(2)] for _ in range(2)
    )
    q = rotate_and_store(qkv, table, positions, *got, num_heads=heads, norm=norm, prefix_slots=78)
    plain = rotate_and_store_plain(qkv, table, positions, *wanted, num_heads=heads, norm=norm, prefix_slots=78)
    assert relative_error(q, plain) < LIMITS[dtype]
    for a, b in zip(got, wanted, strict=True):
        assert torch.equal(a.isnan(), b.isnan())
        assert relative_error(a.nan_to_num(), b.nan_to_num()) < LIMITS[dtype]
